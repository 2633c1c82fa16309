//! From a URL to tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chio_a2a_adapter::{A2aAdapter, A2aAdapterConfig, A2aPartnerPolicy};
use chio_core::manifest::ToolManifest;
use chio_kernel::ToolServerConnection as _;
use serde_json::{Value, json};

use crate::agent::{RPC, Speaks, card, model, whole, with};
use crate::server::{Reply, Server};
use crate::support::{TestClock, World, config, with_card, with_model};

async fn manifest(card: impl Fn(&str) -> Value + Send + Sync + 'static) -> Arc<ToolManifest> {
    let server = with_card(card).await;
    A2aAdapter::connect(config(&server)).await.unwrap().manifest()
}

// covers: A2A-001, A2A-006, A2A-035
#[tokio::test]
async fn each_skill_is_a_tool_of_its_own() {
    let server = with_card(|base| {
        let card = card(base, RPC);
        with(card, "/skills/0/examples", json!(["Summarise x", "Find y"]))
    })
    .await;
    let adapter = A2aAdapter::connect(config(&server)).await.unwrap();
    let manifest = adapter.manifest();
    manifest.check().unwrap();
    assert_eq!(manifest.server_id, format!("a2a:{}", server.address));
    assert_eq!(manifest.name, "Model (A2A)");
    assert_eq!(manifest.version, "0.1.0");
    let key = chio_testkit::key(5);
    assert_eq!(manifest.public_key, *key.public_key());
    let names: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["research", "other"]);
    let tool = &manifest.tools[0];
    assert!(tool.has_side_effects);
    for words in ["Finds out.", "find", "Summarise x | Find y"] {
        assert!(tool.description.contains(words), "{}", tool.description);
    }
    assert!(!format!("{adapter:?}").contains("Summarise"));
}

#[tokio::test]
async fn a_server_can_be_named_and_numbered_otherwise() {
    let server = with_card(|base| card(base, RPC)).await;
    let config = config(&server).with_server_id("partner").with_server_version("2.1.0");
    let manifest = A2aAdapter::connect(config).await.unwrap().manifest();
    assert_eq!((manifest.server_id.as_str(), manifest.version.as_str()), ("partner", "2.1.0"));
}

#[tokio::test]
async fn the_schema_of_a_tool_and_its_parser_agree() {
    let full = manifest(|base| card(base, RPC)).await;
    let bare = manifest(|base| {
        let card = card(base, RPC);
        let card = with(card, "/capabilities", json!({}));
        with(card, "/defaultInputModes", json!(["text"]))
    })
    .await;
    let push =
        json!({"task_id": "t", "url": "https://h.example", "authentication": {"scheme": "Bearer"}});
    for (arguments, in_full, in_bare) in [
        (json!({"message": "x"}), true, true),
        (json!({"data": null}), true, false),
        (json!({"message": "x", "data": [1], "context_id": "c"}), true, false),
        (json!({"message": "x", "stream": true}), true, false),
        (json!({"message": "x", "history_length": 1}), true, false),
        (json!({"message": "x", "metadata": {"a": 1}, "return_immediately": true}), true, true),
        (json!({"get_task": {"id": "t", "history_length": 2}}), true, true),
        (json!({"subscribe_task": {"id": "t"}}), true, false),
        (json!({"cancel_task": {"id": "t", "metadata": {}}}), true, true),
        (json!({"create_push_notification_config": push}), true, false),
        (json!({"list_push_notification_configs": {"task_id": "t"}}), true, false),
        (json!({"delete_push_notification_config": {"task_id": "t", "id": "c"}}), true, false),
        (json!({}), false, false),
        (json!({"context_id": "c"}), false, false),
        (json!({"message": "x", "get_task": {"id": "t"}}), false, false),
        (json!({"get_task": {"id": "t"}, "cancel_task": {"id": "t"}}), false, false),
        (json!({"message": "x", "skill": "y"}), false, false),
        (json!({"get_task": {"id": "t", "skill": "y"}}), false, false),
        (json!({"get_task": {}}), false, false),
        (json!({"message": 1}), false, false),
    ] {
        for (manifest, expected) in [(&full, in_full), (&bare, in_bare)] {
            let schema = Value::Object(manifest.tools[0].input_schema.clone());
            let found = jsonschema::validator_for(&schema).unwrap().is_valid(&arguments);
            assert_eq!(found, expected, "{arguments}");
        }
    }
    let streams =
        |manifest: &ToolManifest| manifest.tools[0].input_schema["x-chio-streaming"].clone();
    assert_eq!((streams(&full), streams(&bare)), (json!(true), json!(false)));
}

#[tokio::test]
async fn skills_that_take_neither_text_nor_json_are_left_out() {
    let manifest = manifest(|base| {
        let card = card(base, RPC);
        with(card, "/skills/0/inputModes", json!(["image/png"]))
    })
    .await;
    assert_eq!(manifest.tools.len(), 1);
    assert_eq!(manifest.tools[0].name, "other");
}

// covers: A2A-007, A2A-013
#[tokio::test]
async fn the_card_is_fetched_with_what_goes_along_and_without_credentials() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/base/.well-known/agent-card.json" | "/cards/me.json" => {
            Reply::json(&card(&seen.base, RPC))
        }
        _ => Reply::text(404, "no"),
    })
    .await;
    for (path, line) in [
        ("/base/?x=1", "GET /base/.well-known/agent-card.json?q=a+b"),
        ("/cards/me.json?x=1", "GET /cards/me.json?x=1&q=a+b"),
    ] {
        let key = chio_testkit::key(5).public_key().to_hex();
        let config = A2aAdapterConfig::new(server.url(path), key)
            .with_request_header("X-Partner", "design-partner-a")
            .with_request_query("q", "a b")
            .with_request_cookie("c", "d")
            .with_bearer_token("hunter2")
            .with_api_key_header("x-key", "hunter2")
            .with_http_basic("user", "hunter2");
        A2aAdapter::connect(config).await.unwrap();
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.line(), line);
        assert_eq!(seen.header("a2a-version"), Some("1.0"));
        assert_eq!(seen.header("x-partner"), Some("design-partner-a"));
        assert_eq!(seen.header("cookie"), Some("c=d"));
        assert!(!format!("{:?}", seen.headers).contains("hunter2"));
    }
}

#[test]
fn discovery_blocks_wherever_it_is_called() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(with_card(|base| card(base, RPC)));
    let find = || A2aAdapter::discover(config(&server)).unwrap();
    assert_eq!(find().manifest().tools.len(), 2);
    let inside = runtime.block_on(async { find().manifest() });
    assert_eq!(inside.tools.len(), 2);
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let inside = single.block_on(async { find().manifest() });
    assert_eq!(inside.tools.len(), 2);
    let nobody = A2aAdapterConfig::new("http://127.0.0.1:9", "00");
    assert!(A2aAdapter::discover(nobody).is_err());
}

#[tokio::test]
async fn what_discovery_found_can_be_called_afterwards() {
    let server = with_card(|base| card(base, RPC)).await;
    let config = config(&server);
    let adapter = tokio::task::spawn_blocking(|| A2aAdapter::discover(config));
    let adapter = adapter.await.unwrap().unwrap();
    let world = World::new(crate::support::config(&server).with_server_id("unused")).await;
    world.kernel.register_tool_server(Box::new(adapter.clone())).unwrap();
    let server_id = adapter.manifest().server_id.clone();
    let world = World { server_id, ..world };
    crate::support::begin(&world).await;
}

// covers: A2A-029, A2A-066
#[tokio::test]
async fn a_card_that_cannot_be_used_is_one_clear_error() {
    type Change = fn(&str) -> Value;
    let cases: [(&str, Change); 9] = [
        ("protocol error: the agent card cannot be read", |_| json!([])),
        ("protocol error: the agent card cannot be read", |_| json!({"name": 1})),
        ("no skills:", |base| with(card(base, RPC), "/skills", json!([]))),
        ("no projectable skills:", |base| {
            with(card(base, RPC), "/defaultInputModes", json!(["image/png"]))
        }),
        ("no supported interfaces:", |base| {
            with(card(base, RPC), "/supportedInterfaces", json!([]))
        }),
        ("unsupported binding: expected JSONRPC or HTTP+JSON of interface", |base| {
            with(card(base, RPC), "/supportedInterfaces/0/protocolBinding", json!("GRPC"))
        }),
        ("unsupported version: expected 1.0 or 0.3 of interface 1 of the card", |base| {
            with(card(base, RPC), "/supportedInterfaces/0/protocolVersion", json!("2.0"))
        }),
        ("invalid URL: interface 1 of the card, at `agent.example`:", |base| {
            let place = json!("http://agent.example/a2a");
            with(card(base, RPC), "/supportedInterfaces/0/url", place)
        }),
        ("expected each tool name once, found `research` twice", |base| {
            with(card(base, RPC), "/skills/1/id", json!("research"))
        }),
    ];
    for (expected, change) in cases {
        let server = with_card(change).await;
        let message = A2aAdapter::connect(config(&server)).await.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn an_agent_without_a_card_is_one_clear_error() {
    let server = Server::start(|_| Reply::text(404, "<h1>hunter2</h1>\n").with("x", "y")).await;
    let config = config(&server).with_request_header("X-Key", "hunter2");
    let message = A2aAdapter::connect(config).await.unwrap_err().to_string();
    let expected = "remote request failed: the agent card: HTTP 404: <h1>[secret]</h1>";
    assert_eq!(message, expected);
}

#[tokio::test]
async fn a_card_elsewhere_is_fetched_without_what_was_for_here() {
    let elsewhere = with_card(|base| card(base, RPC)).await;
    let place = elsewhere.url("/.well-known/agent-card.json");
    let server = Server::start(move |_| Reply::text(302, "").with("location", place.clone())).await;
    let config = config(&server)
        .with_request_header("X-Key", "hunter2")
        .with_request_query("k", "hunter2")
        .with_request_cookie("c", "hunter2");
    let refused = A2aAdapter::connect(config.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("of the card's own origin or an allowed one"), "{refused}");
    let policy = A2aPartnerPolicy::new("p").allow_interface_origin(elsewhere.url(""));
    A2aAdapter::connect(config.with_partner_policy(policy)).await.unwrap();
    let seen = elsewhere.seen().pop().unwrap();
    assert!(!format!("{seen:?}").contains("hunter2"), "{seen:?}");
}

#[tokio::test]
async fn a_refresh_takes_over_what_the_card_says_now() {
    let fetched = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&fetched);
    let server = Server::start(move |seen| {
        if !seen.is_card() {
            return model(seen, RPC);
        }
        let card = card(&seen.base, RPC);
        match counter.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::json(&card),
            1 => Reply::json(&with(card, "/skills/1/id", json!("newer"))),
            _ => Reply::text(500, "no"),
        }
    })
    .await;
    let world = World::new(config(&server)).await;
    let names = || -> Vec<String> {
        world.adapter.manifest().tools.iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(names(), ["research", "other"]);
    world.adapter.refresh().await.unwrap();
    assert_eq!(names(), ["research", "newer"]);
    world.adapter.refresh().await.unwrap_err();
    assert_eq!(names(), ["research", "newer"], "what was known stays");
}

#[tokio::test]
async fn an_agent_that_moved_is_found_again_and_asked_once_more() {
    let moved = Arc::new(AtomicUsize::new(0));
    let flag = Arc::clone(&moved);
    let rest = Speaks { rest: true, old: false };
    let server = Server::start(move |seen| {
        let has_moved = flag.load(Ordering::SeqCst) > 0;
        match (seen.is_card(), has_moved) {
            (true, true) => Reply::json(&card(&seen.base, rest)),
            (false, true) if seen.path == "/a2a" => Reply::text(404, "gone"),
            (false, true) => whole(seen, rest, &json!({"message": {"messageId": "m"}})),
            (_, false) => model(seen, RPC),
        }
    })
    .await;
    let world = World::new(config(&server)).await;
    crate::support::begin(&world).await;
    moved.store(1, Ordering::SeqCst);
    let answer = world.value(json!({"message": "again"})).await;
    assert_eq!(answer, json!({"message": {"messageId": "m"}}));
    let lines: Vec<String> = server.seen().iter().skip(2).map(|seen| seen.line()).collect();
    let expected = ["POST /a2a", "GET /.well-known/agent-card.json", "POST /a2a/message:send"];
    assert_eq!(lines, expected);
    // What was said to another interface is not the new one's business.
    let failure = world.failure(json!({"get_task": {"id": "task-1"}})).await;
    assert!(failure.contains("another binding"), "{failure}");
}

#[tokio::test]
async fn an_agent_that_is_gone_for_good_is_not_looked_for_with_every_call() {
    let (gone, clock) = (Arc::new(AtomicUsize::new(0)), Arc::new(TestClock::default()));
    let flag = Arc::clone(&gone);
    let server = Server::start(move |seen| {
        if !seen.is_card() && flag.load(Ordering::SeqCst) > 0 {
            let error = json!({"code": -32601, "message": "no such method"});
            return Reply::json(
                &json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error}),
            );
        }
        model(seen, RPC)
    })
    .await;
    let world = World::new(config(&server).with_clock(Arc::clone(&clock) as _)).await;
    gone.store(1, Ordering::SeqCst);
    let cards = || server.seen().iter().filter(|seen| seen.is_card()).count();
    for (seconds, expected) in [(0, 2), (0, 2), (29, 2), (1, 3)] {
        clock.advance(seconds);
        let failure = world.failure(json!({"message": "x"})).await;
        assert!(failure.contains("-32601: no such method"), "{failure}");
        assert_eq!(cards(), expected);
    }
    assert_eq!(server.calls().len(), 4, "each call went out once");
}

#[tokio::test]
async fn a_history_is_asked_for_only_where_the_card_or_the_operator_says_so() {
    let bare = |base: &str, speaks| with(card(base, speaks), "/capabilities", json!({}));
    let old = Speaks { rest: false, old: true };
    for (speaks, lifted, allowed) in
        [(RPC, false, false), (RPC, true, true), (old, false, false), (old, true, false)]
    {
        let server = Server::start(move |seen| {
            if seen.is_card() {
                Reply::json(&bare(&seen.base, speaks))
            } else {
                model(seen, speaks)
            }
        })
        .await;
        let world = World::new(config(&server).with_history_length_for_1_0(lifted)).await;
        let arguments = json!({"message": "x", "history_length": 1});
        if allowed {
            world.value(arguments).await;
        } else {
            let failure = world.failure(arguments).await;
            assert!(failure.contains("`capabilities.stateTransitionHistory`"), "{failure}");
        }
        assert_eq!(server.calls().len(), usize::from(allowed));
    }
}

#[tokio::test]
async fn a_tool_that_is_no_skill_is_never_called() {
    let (server, world) = with_model(RPC).await;
    let failure = world.failure_of("forged", json!({"message": "x"})).await;
    assert!(!failure.is_empty());
    assert!(server.calls().is_empty());
}
