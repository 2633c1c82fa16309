//! Cards as they are sent.

use std::collections::BTreeMap;

use super::*;
use crate::catalog::skills::tests::{catalog, manifest, tool};

fn options() -> A2aEdgeConfig {
    A2aEdgeConfig::new(vec!["srv".to_owned()], "https://agent.example/a2a")
}

fn card_of(mount: &Mount, auth: AuthRequirements) -> Option<Value> {
    let tools = vec![tool("a b/c", json!({}), true), tool("plain", json!({}), false)];
    let catalog = catalog(vec![manifest("srv", tools)], &BTreeMap::new());
    let card = Card::new(mount, &options(), &catalog, auth, 7)?;
    assert_eq!(card.tag, format!("\"{}\"", sha256_hex(card.text.as_bytes())));
    Some(serde_json::from_str(&card.text).unwrap())
}

// covers: BRIDGE-074, BRIDGE-100, BRIDGE-104
#[test]
fn the_root_card_tells_every_caveat() {
    let card =
        card_of(&Mount::Root, AuthRequirements { required: true, capabilities: true }).unwrap();
    assert_eq!(card["version"], env!("CARGO_PKG_VERSION"));
    let caveats = &card["skills"][0]["bridgeFidelity"]["caveats"];
    assert!(!caveats.as_array().unwrap().is_empty());
    assert_eq!(card["skills"][1]["outputModes"], json!(["text"]));
    let open =
        card_of(&Mount::Root, AuthRequirements { required: false, capabilities: true }).unwrap();
    assert!(open.get("securitySchemes").is_none() && open.get("security").is_none());
}

#[test]
fn cards_that_old_clients_read_write_each_scheme_in_both_forms() {
    for mount in [Mount::Root, Mount::Skill("plain".to_owned())] {
        let card =
            card_of(&mount, AuthRequirements { required: true, capabilities: true }).unwrap();
        assert_eq!(
            card["securitySchemes"],
            json!({
                "bearer": {
                    "httpAuthSecurityScheme": {"scheme": "Bearer"},
                    "type": "http", "scheme": "bearer",
                },
                "capability": {
                    "apiKeySecurityScheme": {"location": "header", "name": "X-Chio-Capability"},
                    "type": "apiKey", "in": "header", "name": "X-Chio-Capability",
                },
            })
        );
        assert_eq!(card["security"], json!([{"bearer": []}, {"capability": []}]));
        let schemes = json!([
            {"schemes": {"bearer": {"list": []}}},
            {"schemes": {"capability": {"list": []}}},
        ]);
        assert_eq!(card["securityRequirements"], schemes);
    }
}

#[test]
fn the_address_of_a_skill_is_written_as_urls_are() {
    let card = card_of(&Mount::Skill("a b/c".to_owned()), AuthRequirements::default()).unwrap();
    let url = "https://agent.example/a2a/skills/a%20b%2Fc";
    assert_eq!(card["supportedInterfaces"][0]["url"], url);
    assert_eq!(card_of(&Mount::Skill("nothing".to_owned()), AuthRequirements::default()), None);
}

#[test]
fn a_strict_card_asks_for_what_the_listener_asks_for() {
    for (required, capabilities, schemes) in
        [(false, true, 0), (true, false, 1), (true, true, 2), (false, false, 0)]
    {
        let card = card_of(&Mount::Strict, AuthRequirements { required, capabilities }).unwrap();
        let found = card.get("securitySchemes").and_then(Value::as_object);
        assert_eq!(found.map_or(0, Map::len), schemes);
        let requirements = card.get("securityRequirements").and_then(Value::as_array);
        assert_eq!(requirements.map_or(0, Vec::len), schemes, "any one of them will do");
        assert!(!card.to_string().contains("bridgeFidelity"));
    }
}
