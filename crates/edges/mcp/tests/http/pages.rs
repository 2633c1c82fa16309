//! Web pages of other servers: only those that the operator names may call, and read the answers.

use chio_testkit::mcp::{Request, initialize};
use serde_json::json;

use crate::world::{Beginning, Tools, World};

const PAGE: &str = "https://app.example.com";
const LOCAL: &str = "http://localhost:6274";
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate";

fn world(pages: &'static [&'static str]) -> World {
    let token = Some("0123456789abcdef");
    Beginning { tools: Tools::Demo, pages, token, ..Beginning::default() }.start()
}

/// What a browser asks before a page may send something unusual.
fn preflight(origin: &str) -> Request {
    Request::other("OPTIONS")
        .with("Origin", origin)
        .with("Access-Control-Request-Method", "POST")
        .with("Access-Control-Request-Headers", "authorization,content-type,mcp-session-id")
}

#[test]
fn a_page_that_is_named_may_ask_and_read_the_answer() {
    let world = world(&[PAGE, LOCAL]);
    for origin in [PAGE, LOCAL] {
        for path in ["/mcp", "/mcp/"] {
            // Browsers send no credential with it.
            let answer = world.door.send(preflight(origin).at(path)).is(204);
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
            assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
            assert_eq!(answer.header("vary"), Some("Origin"));
            let allowed = answer.header("access-control-allow-headers").unwrap().to_lowercase();
            for header in ["authorization", "content-type", "mcp-session-id", "last-event-id"] {
                assert!(allowed.split(", ").any(|it| it == header), "{allowed}");
            }
            assert_eq!(answer.header("access-control-allow-credentials"), None);
        }
        let request = Request::post(&initialize(&json!({}))).with("Origin", origin);
        let refused = world.door.send(request.clone()).is(401);
        let opened = world.door.with("Authorization", "Bearer 0123456789abcdef").send(request);
        assert!(refused.header("www-authenticate").is_some());
        for answer in [refused, opened.is(200)] {
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
            assert_eq!(answer.header("access-control-expose-headers"), Some(EXPOSED));
        }
    }
}

#[test]
fn any_other_page_is_refused_as_before() {
    for pages in [&[][..], &[PAGE]] {
        let world = world(pages);
        let door = world.door.with("Authorization", "Bearer 0123456789abcdef");
        for origin in [
            "https://app.example.com.evil.example",
            "https://example.com",
            "http://app.example.com",
            "https://app.example.com:8443",
            "null",
            "*",
        ] {
            let asked = door.send(preflight(origin)).is(405);
            let called = door.send(Request::post(&initialize(&json!({}))).with("Origin", origin));
            for answer in [asked, called.is(403)] {
                for header in ["allow-origin", "allow-methods", "expose-headers"] {
                    let name = format!("access-control-{header}");
                    assert_eq!(answer.header(&name), None, "{origin}");
                }
            }
        }
        // Two pages at once are none.
        let both = preflight(PAGE).and("Origin", PAGE);
        door.send(both).is(405);
        // By a name that is not this server's, no page may ask.
        door.send(preflight(PAGE).with("Host", "evil.example")).is(405);
    }
}

#[test]
fn the_path_may_end_with_a_slash() {
    let world = World::demo();
    let session = world.door.open();
    session.send(session.asks("ping", &json!({})).1.at("/mcp/")).is(200);
    session.send(Request::get().at("/mcp/")).is(200);
    session.send(Request::delete().at("/mcp/")).is(204);
    session.send(session.asks("ping", &json!({})).1).is(404);
}
