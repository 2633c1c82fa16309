//! What is predicted is never less than what is done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jsonschema::{Keyword, ValidationError};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Stands in every part of a schema, and counts how often the part is asked.
const COUNTED: &str = "x-counted";

struct Count(Arc<AtomicU64>);

impl<'i> Keyword<'i> for Count {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// How often parts of a schema are asked about a value.
fn asked(schema: &Value, value: &Value) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let of_keyword = Arc::clone(&count);
    let options = jsonschema::options().offline().with_keyword(COUNTED, move |_, _, _| {
        Ok(Box::new(Count(Arc::clone(&of_keyword))) as Box<dyn for<'i> Keyword<'i>>)
    });
    let validator = options.build(schema).unwrap();
    // What validates panics at some schemas of references in circles. A guard that panics denies.
    let _ = catch_unwind(AssertUnwindSafe(|| validator.is_valid(value)));
    count.load(Ordering::Relaxed)
}

fn steps(schema: &Value, value: &Value) -> Result<u64, Unbounded> {
    Graph::of(schema).unwrap().steps(value, value.to_string().len(), &Work::long())
}

fn counted(mut members: Map<String, Value>) -> Value {
    members.insert(COUNTED.to_owned(), json!(true));
    Value::Object(members)
}

/// A part: a test of its own, a reference, or an applicator of other parts.
fn part() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!({"type": "object"})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"pattern": "^(a|b)*$"})),
        (0..4_u8).prop_map(|to| json!({"$ref": format!("#/$defs/d{to}")})),
        (0..4_u8).prop_map(|to| json!({"$dynamicRef": format!("#a{to}")})),
        Just(json!({"$ref": "#"})),
    ];
    let leaf = leaf.prop_map(|leaf| counted(leaf.as_object().cloned().unwrap_or_default()));
    leaf.prop_recursive(4, 24, 3, |part| {
        let (list, one) = (prop::collection::vec(part.clone(), 1..4), part.clone());
        let lists = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        let ones = prop::sample::select(vec![
            "not",
            "if",
            "then",
            "else",
            "items",
            "contains",
            "additionalProperties",
            "unevaluatedProperties",
            "unevaluatedItems",
            "propertyNames",
        ]);
        let maps =
            prop::sample::select(vec!["properties", "patternProperties", "dependentSchemas"]);
        let keyword = prop_oneof![
            (lists, list).prop_map(|(keyword, parts)| (keyword, Value::Array(parts))),
            (ones, one).prop_map(|(keyword, part)| (keyword, part)),
            (maps, part.clone(), part)
                .prop_map(|(keyword, one, other)| { (keyword, json!({"a": one, "b": other})) }),
        ];
        prop::collection::vec(keyword, 1..4).prop_map(|keywords| {
            counted(keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
    })
}

fn schema() -> impl Strategy<Value = Value> {
    (part(), prop::collection::vec(part(), 4)).prop_map(|(root, parts)| {
        let mut root = root.as_object().cloned().unwrap_or_default();
        let parts = parts.into_iter().enumerate().map(|(place, mut part)| {
            part["$dynamicAnchor"] = json!(format!("a{place}"));
            (format!("d{place}"), part)
        });
        root.insert("$defs".to_owned(), Value::Object(parts.collect()));
        Value::Object(root)
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), "[abc]{0,4}".prop_map(Value::String)];
    leaf.prop_recursive(3, 16, 3, |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[abc]", value), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parts_are_never_asked_more_often_than_was_predicted(schema in schema(), value in value()) {
        match steps(&schema, &value) {
            // More is never done.
            Ok(steps) if steps > 1_000_000 => {}
            Ok(steps) => prop_assert!(asked(&schema, &value) <= steps),
            Err(why) => prop_assert_eq!(why, Unbounded::TooDeep),
        }
    }
}

fn pairs(levels: usize, below: impl Fn(Value) -> Value) -> Value {
    let mut parts = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        parts.insert(format!("d{level}"), json!({"allOf": [below(next.clone()), below(next)]}));
    }
    parts.insert(format!("d{levels}"), json!({}));
    json!({"$ref": "#/$defs/d0", "$defs": parts})
}

#[test]
fn what_doubles_is_found_without_being_done() {
    let value = json!({"a": {"a": {"a": {"a": {}}}}});
    let twice = json!([{"$ref": "#"}, {"$ref": "#"}]);
    assert!(steps(&pairs(60, |part| part), &json!({})).unwrap() > 1 << 60);
    assert!(steps(&pairs(60, |part| json!({"not": part})), &json!({})).unwrap() > 1 << 60);
    assert!(steps(&pairs(2, |part| part), &value).unwrap() <= FEW);
    let down = |levels: usize| {
        let value = (0..levels).fold(json!({}), |value, _| json!({ "a": value }));
        steps(&json!({"properties": {"a": {"allOf": twice}}}), &value).unwrap()
    };
    assert!(down(40) > 1 << 40 && down(3) <= FEW);
    let names = json!({"propertyNames": pairs(60, |part| part)["$defs"]["d60"]});
    assert!(steps(&names, &value).unwrap() <= FEW);
}

#[test]
fn parts_that_apply_themselves_come_to_an_end() {
    for schema in [
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"$dynamicAnchor": "x", "anyOf": [{"$dynamicRef": "#x"}]}),
        json!({"properties": {"next": {"$ref": "#"}}}),
    ] {
        assert!(steps(&schema, &json!({"next": {"next": {}}})).unwrap() <= FEW, "{schema}");
    }
    assert_eq!(steps(&pairs(300, |part| part), &json!("x")), Err(Unbounded::TooDeep));
    let again = json!({"allOf": [{"anyOf": [{"$ref": "#"}], "allOf": [{"$ref": "#"}]}],
        "unevaluatedProperties": {}});
    assert_eq!(steps(&again, &json!({})), Err(Unbounded::TooDeep));
    // As many ways as there are orders of twelve.
    let others: Vec<Value> = (0..12).map(|to| json!({"$ref": format!("#/$defs/d{to}")})).collect();
    let parts: Map<String, Value> =
        (0..12).map(|place| (format!("d{place}"), json!({ "allOf": others }))).collect();
    let all = json!({"$ref": "#/$defs/d0", "$defs": parts});
    assert_eq!(steps(&all, &json!({})), Err(Unbounded::Spent));
}

#[test]
fn what_nobody_can_look_at_is_refused() {
    let wide: Vec<Value> = (0..=MAX_NODES).map(|_| json!({})).collect();
    assert!(Graph::of(&json!({ "anyOf": wide })).is_err());
    assert!(Graph::of(&json!({"$ref": "http://elsewhere.example/schema"})).is_err());
    assert!(Graph::of(&json!({"$ref": "http://json-schema.org/draft-07/schema#"})).is_ok());
    let named = json!({"$id": "http://a.example/root", "properties": {"a": {"$ref": "part#/$defs/x"}},
        "$defs": {"p": {"$id": "part", "$defs": {"x": {"$anchor": "y"}}}, "q": {"$ref": "#y"}}});
    assert_eq!(Graph::of(&named).unwrap().len(), 3);
}

#[test]
fn a_pattern_takes_what_it_may_take() {
    let steps = |pattern: &str| steps(&json!({ "pattern": pattern }), &json!("a".repeat(1000)));
    assert!(steps("^[a-z]+$").unwrap() <= FEW);
    assert!(steps("^[a-z]{1,500}$").unwrap() < 1_000_000);
    assert!(steps("^(a{1,200}){1,50}$").unwrap() > 1_000_000);
    assert!(steps("^(?=.*a)a+$").unwrap() > 100_000);
}
