//! The receipt of a call, as the commands show it.

use chio_core::receipt::ChioReceipt;
use chio_testkit::mcp::receipt_of;
use serde_json::json;

use crate::support::World;

// covers: CROSS-001, CROSS-013, CROSS-022
#[test]
fn a_result_names_its_receipt_which_tells_of_the_call() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let result = session.call("add", &json!({"a": 1, "b": 2}));
    assert_eq!(result["structuredContent"], json!({"sum": 3.0}));
    assert_eq!(result["isError"], false);
    let receipt = world.receipt(receipt_of(&result));
    assert_eq!(
        (&receipt["tool_server"], &receipt["tool_name"]),
        (&json!("fixture"), &json!("add"))
    );
    assert_eq!(receipt["action"]["parameters"], json!({"a": 1, "b": 2}));
    let chio = &receipt["metadata"]["chio"];
    assert_eq!(chio["authorityPath"], "cross_protocol_orchestrator");
    assert_eq!(chio["bridge"]["sourceProtocol"], "mcp");
    // A caller that knows a session's id is its client, so no receipt repeats it.
    assert!(!receipt.to_string().contains(&session.id));
    let receipt: ChioReceipt = serde_json::from_value(receipt).unwrap();
    receipt.verify().unwrap();
    world.check_calls(&[("add", "allow")]);
    world.audit();
}
