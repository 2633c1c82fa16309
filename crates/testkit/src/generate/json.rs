//! Random JSON.

use proptest::prelude::*;
use serde_json::Value;

/// Texts with everything that a writer must get right.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,8}",
        "\\PC{0,6}",
        proptest::collection::vec(any::<char>(), 0..6)
            .prop_map(|chars| chars.into_iter().collect()),
        // Either side of the places where UTF-8 and UTF-16 disagree on order.
        "[\u{7f}-\u{9f}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}\u{0}-\u{1f}\"\\\\]{0,4}",
    ]
}

/// JSON of a few levels.
pub fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1_000_000i64..1_000_000).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        (-1e9f64..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
