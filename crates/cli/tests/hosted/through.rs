//! Several servers behind one edge: what they have in common is told apart.

use chio_testkit::process::mcp_fixture;
use serde_json::{Value, json};

use crate::support::World;

const WATCHED: &str = "test://watched-resource";
const UPDATED: &str = "notifications/resources/updated";

#[test]
fn resources_of_the_same_uri_are_told_apart_by_their_server() {
    let world = World::new();
    let command = json!([mcp_fixture(), "--also", "through"]);
    let config = format!(
        "store: s\nservers: [{{id: first, command: {command}}}, {{id: second, command: {command}}}]\n\
         policy: permissive\nlisteners: {{http: {{listen: \"127.0.0.1:0\", anonymous: default}}}}\nedges: \
         {{mcp: {{}}}}\n"
    );
    world.folder.write("chio.yaml", config);
    let served = world.start(&["serve"]);
    let session = served.door.open();
    assert_eq!(session.welcome["serverInfo"]["name"], "chio");
    let ask = |method: &str, params: &Value| session.request(method, params);
    let listed = ask("resources/list", &json!({}))["result"]["resources"].clone();
    let uris: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["uri"].as_str().unwrap()).collect();
    for server in ["first", "second"] {
        let uri = format!("chio://{server}/{WATCHED}");
        assert!(uris.contains(&uri.as_str()), "{uris:?}");
        let read = ask("resources/read", &json!({"uri": uri}));
        assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
    }
    assert!(!uris.contains(&WATCHED), "{uris:?}");
    let unclear = ask("resources/read", &json!({"uri": WATCHED}));
    let message = unclear["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("chio://second/{WATCHED}")), "{unclear}");
    // Changes come under the name that the client has.
    let mut stream = session.listen();
    let uri = format!("chio://second/{WATCHED}");
    let watching = ask("resources/subscribe", &json!({"uri": uri}));
    assert!(watching.get("result").is_some(), "{watching}");
    session.call("second__touch_watched", &json!({}));
    assert_eq!(stream.hears(UPDATED)["params"]["uri"], uri);
    // A method that is no part of MCP names its server as a tool does.
    let echoed = ask("second__fixture/echo", &json!({"a": 1}));
    assert_eq!(echoed["result"]["params"]["a"], 1, "{echoed}");
    assert_eq!(ask("fixture/echo", &json!({}))["error"]["code"], -32601);
    session.notify("second__notifications/cancelled", &json!({"requestId": 1}));
    session.notify("second__notifications/fixture/saved", &json!({"b": 2}));
    let heard = session.call("second__heard", &json!({}));
    let heard: Value = serde_json::from_str(heard["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(heard, json!([{"method": "notifications/fixture/saved", "params": {"b": 2}}]));
    world.audit();
}
