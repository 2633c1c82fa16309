//! Whether two answers are the same, but for what we say ourselves.

use serde_json::{Value, json};

/// What we offer whatever the server does.
const OURS: [&str; 2] = ["tasks", "logging"];
/// The most of an answer that is shown.
const SHOWN: usize = 400;

/// What is not the same; each answer has a name, and may be one of which only the form counts.
pub(super) fn differences(
    names: &[(&str, bool)],
    direct: &[Value],
    through: &[Value],
) -> Vec<String> {
    let pairs = names.iter().zip(direct.iter().zip(through));
    pairs
        .filter_map(|((name, is_volatile), (direct, through))| {
            let (direct, through) = if *name == "initialize" {
                (welcome(direct, direct), welcome(through, direct))
            } else {
                (without_ours(direct), without_ours(through))
            };
            let same = if *is_volatile {
                form(&direct) == form(&through)
            } else {
                // A list that the server does not have is not asked for.
                direct.is_null() || direct == through
            };
            (!same).then(|| format!("{name}:\n    {}\n    {}", shown(&direct), shown(&through)))
        })
        .collect()
}

/// What of the answer to `initialize` has to be the same. The version is each hop's own, and so is
/// whether lists change.
fn welcome(answer: &Value, direct: &Value) -> Value {
    let result = answer.get("result").unwrap_or(answer);
    let asked = direct.pointer("/result/capabilities").and_then(Value::as_object);
    let names = asked.into_iter().flat_map(|it| it.keys());
    let has =
        |name: &&String| result.pointer("/capabilities").is_some_and(|it| it.get(*name).is_some());
    let names: Vec<&String> = names.filter(|it| !OURS.contains(&it.as_str())).filter(has).collect();
    let experimental =
        |name: &str| result.pointer("/capabilities/experimental").and_then(|it| it.get(name));
    let extensions = direct.pointer("/result/capabilities/experimental").and_then(Value::as_object);
    let extensions = extensions.into_iter().flat_map(|it| it.keys());
    json!({
        "serverInfo": result.get("serverInfo"),
        "instructions": result.get("instructions"),
        "capabilities": names,
        "experimental": extensions.map(|name| experimental(name)).collect::<Vec<_>>(),
    })
}

/// An answer without what we add: the receipt, and that a result is no error, which is what its absence
/// means.
fn without_ours(answer: &Value) -> Value {
    match answer {
        Value::Object(members) => members
            .iter()
            .filter_map(|(name, value)| match (name.as_str(), value) {
                ("isError", Value::Bool(false)) => None,
                ("_meta" | "data", Value::Object(about)) => {
                    let mut about = about.clone();
                    let had_ours = about.remove("chio").is_some();
                    let is_gone = had_ours && about.is_empty();
                    (!is_gone).then(|| (name.clone(), without_ours(&Value::Object(about))))
                }
                _ => Some((name.clone(), without_ours(value))),
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_ours).collect(),
        other => other.clone(),
    }
}

/// The members and kinds of an answer, without what it says.
fn form(answer: &Value) -> Value {
    match answer {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), form(value))).collect()
        }
        Value::Array(items) => items.iter().map(form).collect(),
        Value::String(_) => json!("a text"),
        Value::Number(_) => json!("a number"),
        other => other.clone(),
    }
}

fn shown(answer: &Value) -> String {
    let text = answer.to_string();
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use serde_json::json;

    use super::differences;

    #[test]
    fn only_what_we_add_may_differ() {
        let tool = |meta: serde_json::Value| json!({"result": {"content": [], "_meta": meta}});
        for (direct, through, same) in [
            (json!({"result": {"content": []}}), tool(json!({"chio": {"receiptId": "r"}})), true),
            (tool(json!({"a": 1})), tool(json!({"a": 1, "chio": {}})), true),
            (tool(json!({"a": 1})), tool(json!({"chio": {}})), false),
            (
                tool(json!({})),
                json!({"result": {"content": [], "isError": false, "_meta": {}}}),
                true,
            ),
            (
                json!({"error": {"code": -1, "message": "m"}}),
                json!({"error": {"code": -1, "message": "m", "data": {"chio": {}}}}),
                true,
            ),
            (
                json!({"error": {"code": -1, "message": "m"}}),
                json!({"error": {"code": -2, "message": "m"}}),
                false,
            ),
            (json!({"result": {"content": []}}), json!({"error": {}}), false),
        ] {
            let found = differences(&[("tools/call t", false)], from_ref(&direct), &[through]);
            assert_eq!(found.is_empty(), same, "{direct}");
        }
        let (one, other) = (json!({"text": "12:00", "n": 1}), json!({"text": "12:01", "n": 2}));
        let compare = |is_volatile| {
            differences(&[("c", is_volatile)], from_ref(&one), from_ref(&other)).is_empty()
        };
        assert_eq!((compare(true), compare(false)), (true, false));
    }

    #[test]
    fn what_a_server_says_of_itself_has_to_come_through() {
        let said = |info: &str, capabilities: serde_json::Value| {
            json!({"result": {"protocolVersion": info, "serverInfo": {"name": info},
                "capabilities": capabilities}})
        };
        let direct = said("a", json!({"tools": {}, "experimental": {"x": {}}}));
        let mut through = said(
            "a",
            json!({"tools": {"listChanged": true}, "tasks": {},
            "experimental": {"x": {}, "chioProtocol": {}}}),
        );
        let names = [("initialize", false)];
        let compare = |through: &serde_json::Value| {
            differences(&names, from_ref(&direct), from_ref(through)).is_empty()
        };
        assert!(compare(&through));
        through["result"]["capabilities"]["experimental"] = json!({});
        assert!(!compare(&through));
        assert!(!compare(&said("b", json!({"tools": {}, "experimental": {"x": {}}}))));
        assert!(!compare(&said("a", json!({"experimental": {"x": {}}}))));
    }
}
