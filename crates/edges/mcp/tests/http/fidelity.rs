//! Which tools are shown, and how honestly.

use chio_testkit::mcp::receipt_of;
use serde_json::{Value, json};

use crate::world::{Beginning, Tools};

// covers: BRIDGE-005, BRIDGE-006, BRIDGE-008, BRIDGE-009, CROSS-059, CROSS-062
#[test]
fn a_tool_that_is_not_published_is_neither_listed_nor_called_and_the_others_are_rated() {
    let tools = Tools::also("unpublished,supervised,slow_stream");
    let world = Beginning { tools, ..Beginning::default() }.start();
    let session = world.door.open();
    let names = session.tools();
    let listed = |name: &str| names.iter().any(|it| it == name);
    assert!(!listed("unpublished") && listed("supervised") && listed("slow_stream"), "{names:?}");
    let entries = session.request("tools/list", &json!({}))["result"]["tools"].clone();
    let rating = |name: &str| {
        let mut entries = entries.as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["name"] == name).unwrap();
        entry["_meta"]["chio"]["bridgeFidelity"].clone()
    };
    assert_eq!(rating("echo"), json!({"kind": "lossless"}));
    assert_eq!(rating("supervised"), json!({"kind": "lossless"}));
    let streams = rating("slow_stream");
    assert_eq!(streams["kind"], "adapted", "{streams}");
    assert_eq!(streams["caveats"].as_array().map(Vec::len), Some(2), "{streams}");

    let call = |name: &str| {
        let params = json!({"name": name, "arguments": {}});
        session.request("tools/call", &params)
    };
    // As a tool that does not exist.
    let [unknown, withheld] = ["no_such_tool", "unpublished"].map(|name| {
        let mut message = call(name);
        message["id"] = Value::Null;
        message.to_string().replace(name, "NAME")
    });
    assert!(withheld.contains("-32602") && withheld.contains("found `NAME`"), "{withheld}");
    assert_eq!(withheld, unknown);
    receipt_of(&call("slow_stream")["result"]);
    world.check_calls(&[("slow_stream", "allow")]);
}
