//! Agent cards, and skills that come and go.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::world::{Beginning, World, message};

const CARD: &str = "/.well-known/agent-card.json";

async fn card(world: &World, mount: &str) -> Value {
    world.ask("GET", &format!("{mount}{CARD}")).send().await.is(200).value()
}

// covers: BRIDGE-060, BRIDGE-061, BRIDGE-063..BRIDGE-072, BRIDGE-074, BRIDGE-103
#[tokio::test]
async fn the_root_card_is_the_one_of_the_documents_with_what_older_clients_look_for() {
    let tools = vec!["echo", "writes", "approved", "hidden"];
    let world = Beginning { servers: vec![("srv", tools)], ..Beginning::default() }.start().await;
    let card = card(&world, "").await;
    let url = format!("http://{}", world.address);
    assert_eq!(card["name"], "Chio A2A Edge");
    assert_eq!(card["protocolVersion"], "0.3.0");
    assert_eq!((&card["url"], &card["preferredTransport"]), (&json!(url), &json!("JSONRPC")));
    let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    assert_eq!(card["supportedInterfaces"], json!([interface]));
    let none = json!({
        "streaming": false, "pushNotifications": false, "stateTransitionHistory": false,
    });
    assert_eq!(card["capabilities"], none);
    let modes = json!(["text"]);
    assert_eq!((&card["defaultInputModes"], &card["defaultOutputModes"]), (&modes, &modes));
    let echo = json!({
        "id": "echo", "name": "echo", "description": "Does echo", "tags": [],
        "inputModes": ["text"], "outputModes": ["text"],
        "bridgeFidelity": {"kind": "lossless"},
    });
    assert_eq!(card["skills"][0], echo);
    assert_eq!(card["skills"][1]["bridgeFidelity"]["kind"], "adapted");
    assert_eq!(card["skills"].as_array().unwrap().len(), 2);
}

// covers: BRIDGE-061, BRIDGE-062, BRIDGE-073
#[tokio::test]
async fn the_card_says_what_the_operator_says_of_the_agent_and_its_skills() {
    let own = Beginning {
        servers: vec![("srv", vec!["echo", "lookup"])],
        options: |options| {
            options.agent_name = "Tides".to_owned();
            options.agent_description = "Knows when the water comes".to_owned();
            options.agent_version = "2.4.0-rc.1+build.7".to_owned();
            let tags = vec!["sea".to_owned(), "time".to_owned()];
            options.tags = BTreeMap::from([("lookup".to_owned(), tags)]);
        },
        ..Beginning::default()
    };
    let world = own.start().await;
    for mount in ["", "/strict", "/skills/lookup"] {
        let card = card(&world, mount).await;
        assert_eq!(card["name"], "Tides", "{mount}");
        assert_eq!(card["description"], "Knows when the water comes", "{mount}");
        assert_eq!(card["version"], "2.4.0-rc.1+build.7", "{mount}");
        let skills = card["skills"].as_array().unwrap();
        let lookup = skills.iter().find(|skill| skill["id"] == "lookup").unwrap();
        assert_eq!(lookup["tags"], json!(["sea", "time"]), "{mount}");
    }
    assert_eq!(card(&world, "").await["skills"][0]["tags"], json!([]));
}

/// What the card says of each kind of tool.
// covers: BRIDGE-005..BRIDGE-009, BRIDGE-013, BRIDGE-017, BRIDGE-026, BRIDGE-029, BRIDGE-075
// covers: BRIDGE-098..BRIDGE-102, BRIDGE-104..BRIDGE-107, CROSS-059, CROSS-062
#[tokio::test]
async fn every_tool_is_rated_as_the_card_shows_and_what_cannot_be_shown_is_not_there() {
    const SHOWN: [(&str, Option<&str>); 9] = [
        ("echo", None),
        ("writes", Some("change things")),
        ("streams", Some("stream")),
        ("cancels", Some("cancel")),
        ("parts", Some("partial")),
        ("read_file", Some("filesystem")),
        ("run_shell", Some("terminal")),
        ("open_browser", Some("browser")),
        ("lookup", None),
    ];
    let hidden = ["approved", "hidden"];
    let tools = SHOWN.iter().map(|(name, _)| *name).chain(hidden).collect();
    let world = Beginning { servers: vec![("srv", tools)], ..Beginning::default() }.start().await;
    let root = card(&world, "").await;
    let strict = card(&world, "/strict").await;
    let ratings = strict["capabilities"]["extensions"][0]["params"]["skills"].as_array().unwrap();
    let skills = root["skills"].as_array().unwrap();
    assert_eq!((skills.len(), ratings.len()), (SHOWN.len(), SHOWN.len()));
    for (name, caveat) in SHOWN {
        let skill = skills.iter().find(|skill| skill["id"] == name).unwrap();
        let rating = &skill["bridgeFidelity"];
        match caveat {
            None => assert_eq!(*rating, json!({"kind": "lossless"}), "{name}"),
            Some(words) => {
                assert_eq!(rating["kind"], "adapted", "{name}: {rating}");
                let caveats = rating["caveats"].to_string();
                assert!(caveats.contains(words), "{name}: {caveats}");
            }
        }
        assert!(ratings.contains(&json!({"id": name, "fidelity": rating})), "{name} in both");
    }
    for name in hidden {
        for card in [&root, &strict] {
            let skills = card["skills"].as_array().unwrap();
            assert!(skills.iter().all(|skill| skill["id"] != name), "{name}");
        }
        world.ask("GET", &format!("/skills/{name}{CARD}")).send().await.is(404);
        let mut params = message("x");
        params["metadata"] = json!({"chio": {"targetSkillId": name}});
        world.rpc("SendMessage", params).send().await.error(-32602);
    }
    assert_eq!(world.told.runs(), 0);
}

#[tokio::test]
async fn the_strict_card_has_nothing_that_the_schema_does_not_know() {
    let world = World::with(&["echo", "writes"]).await;
    let strict = card(&world, "/strict").await;
    let mut members: Vec<&str> = strict.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = [
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "description",
        "name",
        "skills",
        "supportedInterfaces",
        "version",
    ];
    assert_eq!(members, expected);
    let url = format!("http://{}/strict", world.address);
    assert_eq!(strict["supportedInterfaces"][0]["url"], url);
    for skill in strict["skills"].as_array().unwrap() {
        let mut members: Vec<&str> =
            skill.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_unstable();
        let expected = ["description", "id", "inputModes", "name", "outputModes", "tags"];
        assert_eq!(members, expected);
        assert!(!skill["tags"].as_array().unwrap().is_empty());
        assert_eq!(skill["inputModes"], json!(["text/plain", "text", "application/json"]));
    }
    let ratings = &strict["capabilities"]["extensions"][0]["params"]["skills"];
    assert_eq!(ratings[0], json!({"id": "echo", "fidelity": {"kind": "lossless"}}));
    assert_eq!(ratings[1]["fidelity"]["kind"], "adapted");
    let one = card(&world, "/skills/writes").await;
    assert_eq!(one["skills"].as_array().unwrap().len(), 1);
    assert_eq!(one["skills"][0]["id"], "writes");
    let url = format!("http://{}/skills/writes", world.address);
    assert_eq!(one["supportedInterfaces"][0]["url"], url);
    world.ask("GET", &format!("/skills/nothing{CARD}")).send().await.is(404);
}

#[tokio::test]
async fn a_card_names_what_the_door_asks_for_and_is_for_everybody() {
    let world = Beginning { closed: true, ..Beginning::default() }.start().await;
    let strict = card(&world, "/strict").await;
    let bearer = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}});
    assert_eq!(strict["securitySchemes"]["bearer"], bearer);
    assert!(strict["securitySchemes"]["capability"]["apiKeySecurityScheme"].is_object());
    let requirements = &strict["securityRequirements"];
    assert_eq!(requirements[0], json!({"schemes": {"bearer": {"list": []}}}));
    let main = card(&world, "").await;
    assert_eq!(main["securityRequirements"], strict["securityRequirements"]);
    assert_eq!(main["security"][0], json!({"bearer": []}), "for clients of 0.3");
}

#[tokio::test]
async fn a_card_is_sent_once_and_again_when_it_has_changed() {
    let world = World::with(&["echo"]).await;
    let get = || world.ask("GET", CARD);
    let first = get().send().await.is(200);
    let tag = first.header("etag").unwrap().to_owned();
    assert!(first.header("cache-control").unwrap().contains("max-age"));
    let again = get().with("If-None-Match", &tag).send().await.is(304);
    assert_eq!((again.body.as_str(), again.header("etag")), ("", Some(tag.as_str())));
    get().with("If-None-Match", "\"other\"").send().await.is(200);
    let since = first.header("last-modified").unwrap().to_owned();
    assert!(since.ends_with(" GMT"), "{since}");
    get().with("If-Modified-Since", &since).send().await.is(304);
    let tags_decide = get().with("If-Modified-Since", &since).with("If-None-Match", "\"other\"");
    tags_decide.send().await.is(200);
    get().with("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT").send().await.is(200);
    world.offer(&["echo", "lookup"]);
    let changed = get().with("If-None-Match", &tag).send().await.is(200).value();
    assert_eq!(changed["skills"][1]["id"], "lookup");
}

#[tokio::test]
async fn skills_come_and_go_with_the_tools() {
    let world = World::with(&["echo"]).await;
    world.task("x").await;
    world.offer(&["lookup"]);
    // The only one is another now.
    let task = world.task("tides").await;
    assert_eq!(task["artifacts"][0]["parts"][0]["data"], json!({"query": "tides"}));
    let mut params = message("x");
    params["metadata"] = json!({"chio": {"targetSkillId": "echo"}});
    world.rpc("SendMessage", params.clone()).send().await.error(-32602);
    world.offer(&["echo", "lookup"]);
    world.rpc("SendMessage", params).send().await.result();
}

#[tokio::test]
async fn only_the_servers_that_are_offered_are_shown_and_called() {
    let some = Beginning {
        servers: vec![("srv", vec!["echo"]), ("other", vec!["lookup"])],
        options: |options| options.servers = vec!["srv".to_owned()],
        ..Beginning::default()
    };
    let world = some.start().await;
    assert_eq!(card(&world, "").await["skills"].as_array().unwrap().len(), 1);
    let mut params = message("x");
    params["metadata"] = json!({"chio": {"targetSkillId": "lookup"}});
    world.rpc("SendMessage", params).send().await.error(-32602);
    world.task("x").await;
}
