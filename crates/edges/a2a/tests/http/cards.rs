//! Agent cards, and skills that come and go.

use serde_json::{Value, json};

use crate::world::{Beginning, World, message};

const CARD: &str = "/.well-known/agent-card.json";

async fn card(world: &World, mount: &str) -> Value {
    world.ask("GET", &format!("{mount}{CARD}")).send().await.is(200).value()
}

// covers: BRIDGE-060..BRIDGE-069, BRIDGE-103
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
    assert_eq!(card["defaultInputModes"], json!(["text"]));
    let echo = json!({
        "id": "echo", "name": "echo", "description": "Does echo", "tags": [],
        "inputModes": ["text"], "outputModes": ["text"],
        "bridgeFidelity": {"kind": "lossless"},
    });
    assert_eq!(card["skills"][0], echo);
    assert_eq!(card["skills"][1]["bridgeFidelity"]["kind"], "adapted");
    assert_eq!(card["skills"].as_array().unwrap().len(), 2);
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
