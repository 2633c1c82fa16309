//! Input schemas as servers write them, put right where it is plain what was meant: dialects of
//! before, types of programming languages, what serializers make of nothing. What a schema refers to
//! and does not have is left to the server to judge. Everything else stays as it is.

use serde_json::{Map, Value, json};

/// How many parts of a schema are looked at, and how deep they may lie.
const MAX_PARTS: usize = 4096;
const MAX_DEPTH: usize = 64;
/// How many repairs of one schema are told.
const MAX_TOLD: usize = 3;
/// Schemas of schemas, without how they are fetched.
const DIALECTS: [(&str, Dialect); 5] = [
    ("json-schema.org/draft/2020-12/schema", Dialect::Newest),
    ("json-schema.org/draft/2019-09/schema", Dialect::Newer),
    ("json-schema.org/draft-07/schema", Dialect::Old),
    ("json-schema.org/draft-06/schema", Dialect::Old),
    ("json-schema.org/draft-04/schema", Dialect::Oldest),
];
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];
/// What programming languages call these types.
const OTHER_TYPES: &[(&str, &str)] = &[
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("bool", "boolean"),
    ("list", "array"),
    ("tuple", "array"),
    ("dict", "object"),
    ("map", "object"),
    ("none", "null"),
    ("nil", "null"),
];
/// Keywords whose value is a part, a list of parts, or a map of parts.
const OF_ONE: [&str; 11] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
];
const OF_LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const OF_MAPS: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords that may be null.
const NULLABLE: [&str; 2] = ["default", "const"];

/// Which keywords there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dialect {
    /// Draft 4: exclusive limits are true or false.
    Oldest,
    /// Drafts 6 and 7.
    Old,
    /// Draft 2019-09.
    Newer,
    /// Draft 2020-12, also where a schema does not say: `items` is one part.
    Newest,
}

/// Puts a schema right. Tells what it took.
pub(crate) fn repair(schema: &mut Map<String, Value>) -> Vec<String> {
    let mut repairs = Repairs {
        whole: Value::Object(schema.clone()),
        dialect: Dialect::Newest,
        parts: 0,
        place: String::new(),
        told: Vec::new(),
    };
    repairs.name_dialect(schema);
    repairs.part(schema, 0);
    let mut told = repairs.told;
    if told.len() > MAX_TOLD {
        let more = told.len() - MAX_TOLD;
        told.truncate(MAX_TOLD);
        told.push(format!("{more} more"));
    }
    told
}

struct Repairs {
    /// The schema as it was.
    whole: Value,
    dialect: Dialect,
    parts: usize,
    /// Where the part lies that is looked at.
    place: String,
    told: Vec<String>,
}

impl Repairs {
    fn tell(&mut self, what: &str) {
        let place = if self.place.is_empty() { "/" } else { &self.place };
        self.told.push(format!("`{place}`: {what}"));
    }

    /// Sees which dialect it is. One that is not known is left out.
    fn name_dialect(&mut self, schema: &mut Map<String, Value>) {
        let Some(named) = schema.get("$schema") else { return };
        let text = named.as_str().unwrap_or_default().trim_end_matches('#').to_owned();
        let bare = text.trim_start_matches("https://").trim_start_matches("http://");
        let Some((name, dialect)) = DIALECTS.iter().find(|(known, _)| *known == bare) else {
            schema.remove("$schema");
            return self.tell("a `$schema` that is not known is left out");
        };
        self.dialect = *dialect;
        let scheme = if *dialect < Dialect::Newer { "http" } else { "https" };
        let name = format!("{scheme}://{name}");
        if text != name {
            schema.insert("$schema".to_owned(), json!(name));
            self.tell("`$schema` is named as it is known");
        }
    }

    fn part(&mut self, part: &mut Map<String, Value>, depth: usize) {
        self.parts += 1;
        if self.parts > MAX_PARTS || depth > MAX_DEPTH {
            return;
        }
        let before = part.len();
        part.retain(|name, value| !value.is_null() || NULLABLE.contains(&name.as_str()));
        if part.len() != before {
            self.tell("keywords that are null are left out");
        }
        self.kinds(part);
        self.required(part);
        if self.dialect > Dialect::Oldest {
            self.limit(part, "exclusiveMinimum", "minimum");
            self.limit(part, "exclusiveMaximum", "maximum");
        }
        if self.dialect == Dialect::Newest && part.get("items").is_some_and(Value::is_array) {
            if let Some(items) = part.remove("items") {
                part.insert("prefixItems".to_owned(), items);
            }
            if let Some(rest) = part.remove("additionalItems") {
                part.insert("items".to_owned(), rest);
            }
            self.tell("a list of `items` is `prefixItems`");
        }
        self.reference(part);
        for name in OF_MAPS {
            match part.get_mut(name) {
                Some(Value::Object(parts)) => {
                    parts
                        .iter_mut()
                        .for_each(|(member, part)| self.below(&[name, member], part, depth));
                }
                // Some serializers write an empty map so.
                Some(empty @ Value::Array(_)) if *empty == json!([]) => {
                    *empty = json!({});
                    self.tell(&format!("`{name}` is an empty map"));
                }
                _ => {}
            }
        }
        for name in OF_ONE {
            if let Some(one) = part.get_mut(name) {
                self.below(&[name], one, depth);
            }
        }
        for name in OF_LISTS {
            let parts = part.get_mut(name).and_then(Value::as_array_mut);
            for (number, part) in parts.into_iter().flatten().enumerate() {
                self.below(&[name, &number.to_string()], part, depth);
            }
        }
    }

    fn below(&mut self, names: &[&str], part: &mut Value, depth: usize) {
        let Value::Object(part) = part else { return };
        let length = self.place.len();
        for name in names {
            self.place.push('/');
            self.place.push_str(name);
        }
        self.part(part, depth + 1);
        self.place.truncate(length);
    }

    /// Names types as JSON Schema does; a name that says nothing is left out.
    fn kinds(&mut self, part: &mut Map<String, Value>) {
        let Some(named) = part.get("type") else { return };
        let kinds: Option<Vec<&str>> = match named {
            Value::String(name) => known_type(name).map(|name| vec![name]),
            Value::Array(names) if !names.is_empty() => {
                names.iter().map(|name| known_type(name.as_str()?)).collect()
            }
            _ => None,
        };
        let Some(mut kinds) = kinds else {
            part.remove("type");
            return self.tell("a `type` that is none is left out");
        };
        let mut seen = Vec::new();
        kinds.retain(|kind| {
            !seen.contains(kind) && {
                seen.push(*kind);
                true
            }
        });
        let meant = if named.is_string() { json!(kinds.first()) } else { json!(kinds) };
        if *named != meant {
            part.insert("type".to_owned(), meant);
            self.tell("`type` is named as JSON Schema does");
        }
    }

    /// A member that says of itself that it is required is in the list of its object.
    fn required(&mut self, part: &mut Map<String, Value>) {
        let mut names: Vec<Value> = match part.get("required") {
            Some(Value::Array(names)) => names.clone(),
            Some(Value::String(name)) => vec![json!(name)],
            _ => Vec::new(),
        };
        let properties = part.get("properties").and_then(Value::as_object);
        let says = |member: &Value| member.get("required") == Some(&Value::Bool(true));
        let own = properties.into_iter().flatten().filter(|(_, member)| says(member));
        names.extend(own.map(|(name, _)| json!(name)));
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(name.clone());
                true
            }
        });
        let found = part.remove("required");
        let meant = Some(Value::Array(names))
            .filter(|it| found.as_ref().is_some_and(Value::is_array) || *it != json!([]));
        if found != meant {
            self.tell("`required` is the list of an object");
        }
        part.extend(meant.map(|names| ("required".to_owned(), names)));
    }

    /// An exclusive limit that is true or false speaks of the other limit.
    fn limit(&mut self, part: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
        let Some(Value::Bool(is_exclusive)) = part.get(exclusive) else { return };
        if *is_exclusive && let Some(limit) = part.remove(inclusive) {
            part.insert(exclusive.to_owned(), limit);
        } else {
            part.remove(exclusive);
        }
        self.tell(&format!("`{exclusive}` is a number"));
    }

    /// A reference to what is not there is left to the server to judge.
    fn reference(&mut self, part: &mut Map<String, Value>) {
        let Some(Value::String(reference)) = part.get("$ref") else { return };
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let is_known = if document.is_empty() {
            // Others than plain pointers are looked up by what validates.
            let is_pointer = fragment.starts_with('/') && !fragment.contains('%');
            !is_pointer
                || self.whole.pointer(fragment).is_some()
                || names_document(&self.whole, "", 0)
        } else {
            document.contains("json-schema.org/") || names_document(&self.whole, document, 0)
        };
        if !is_known {
            part.remove("$ref");
            self.tell("a `$ref` to what is not in the schema is left to the server");
        }
    }
}

/// What JSON Schema calls a type.
fn known_type(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let standard = TYPES.iter().find(|known| **known == name).copied();
    standard.or_else(|| OTHER_TYPES.iter().find(|(other, _)| *other == name).map(|(_, it)| *it))
}

/// Whether some part is a document of this name.
fn names_document(value: &Value, document: &str, depth: usize) -> bool {
    let goes_on = |value: &Value| depth < MAX_DEPTH && names_document(value, document, depth + 1);
    match value {
        Value::Object(members) => {
            let is_named = |name: &&str| {
                let id = members.get(*name).and_then(Value::as_str);
                id.is_some_and(|id| {
                    !id.is_empty() && (id.ends_with(document) || document.ends_with(id))
                })
            };
            ["$id", "id"].iter().any(is_named) || members.values().any(goes_on)
        }
        Value::Array(items) => items.iter().any(goes_on),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value, told: usize) {
        let mut repaired = schema.as_object().unwrap().clone();
        let repairs = repair(&mut repaired);
        assert_eq!(Value::Object(repaired.clone()), *expected, "{schema}");
        assert_eq!(repairs.len(), told, "{schema}: {repairs:?}");
        assert_eq!(repair(&mut repaired), [""; 0], "what was repaired is right");
    }

    fn of_a(part: &Value) -> Value {
        json!({"type": "object", "properties": {"a": part}})
    }

    #[test]
    fn what_is_right_stays_as_it_is() {
        for schema in [
            json!({}),
            json!({"type": ["string", "null"], "required": [], "x-chio-foo": true}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                "$defs": {"a": {"$anchor": "here"}}, "properties": {"type": {"$ref": "#/$defs/a"},
                "required": {"$ref": "#here"}, "b": {"const": null, "default": null}},
                "required": ["type"], "prefixItems": [{}], "items": false}),
            json!({"$schema": "http://json-schema.org/draft-07/schema", "items": [{}, {}]}),
            json!({"$schema": "http://json-schema.org/draft-04/schema", "minimum": 1,
                "exclusiveMinimum": true}),
            json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"$defs": {"x": {"$id": "https://a.example/x.json"}}, "$ref": "x.json"}),
            json!({"enum": [{"type": "str", "required": true}], "examples": [{"$ref": "a"}]}),
        ] {
            check(&schema, &schema, 0);
        }
    }

    #[test]
    fn what_was_plainly_meant_is_put_right() {
        for (schema, expected) in [
            (
                json!({"properties": {"a": {"type": "string", "required": true},
                    "b": {"required": false}}, "required": ["c"]}),
                json!({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["c", "a"]}),
            ),
            (json!({"required": "a"}), json!({"required": ["a"]})),
            (json!({"required": ["a", "a"]}), json!({"required": ["a"]})),
            (of_a(&json!({"type": "str"})), of_a(&json!({"type": "string"}))),
            (of_a(&json!({"type": "Int64"})), of_a(&json!({"type": "integer"}))),
            (
                of_a(&json!({"type": ["String", "None"]})),
                of_a(&json!({"type": ["string", "null"]})),
            ),
            (of_a(&json!({"type": "file"})), of_a(&json!({}))),
            (of_a(&json!({"type": 7})), of_a(&json!({}))),
            (
                of_a(&json!({"items": [{"type": "int"}], "additionalItems": false})),
                of_a(&json!({"prefixItems": [{"type": "integer"}], "items": false})),
            ),
            (
                of_a(&json!({"minimum": 1, "exclusiveMinimum": true})),
                of_a(&json!({"exclusiveMinimum": 1})),
            ),
            (of_a(&json!({"maximum": 1, "exclusiveMaximum": false})), of_a(&json!({"maximum": 1}))),
            (of_a(&json!({"description": null, "enum": null})), of_a(&json!({}))),
            (
                json!({"type": "object", "properties": []}),
                json!({"type": "object", "properties": {}}),
            ),
            (of_a(&json!({"$ref": "https://example.com/a.json"})), of_a(&json!({}))),
            (
                of_a(&json!({"anyOf": [{"$ref": "#/definitions/gone"}, {}]})),
                of_a(&json!({"anyOf": [{}, {}]})),
            ),
            (json!({"$schema": "http://json-schema.org/draft-03/schema#"}), json!({})),
            (json!({"$schema": "urn:mine"}), json!({})),
            (
                json!({"$schema": "https://json-schema.org/draft-07/schema#"}),
                json!({"$schema": "http://json-schema.org/draft-07/schema"}),
            ),
        ] {
            let mut repaired = schema.as_object().unwrap().clone();
            let told = repair(&mut repaired).len();
            assert!(told >= 1, "{schema}");
            check(&schema, &expected, told);
        }
    }

    #[test]
    fn a_schema_without_end_is_left_as_it_is_at_some_depth() {
        let deep = (0..500).fold(json!({"type": "str"}), |part, _| json!({"items": part}));
        check(&deep, &deep, 0);
    }
}
