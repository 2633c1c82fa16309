//! Partner admission: a card that is not as expected is no card.

use chio_a2a_adapter::{A2aAdapter, A2aPartnerPolicy};
use chio_kernel::ToolServerConnection as _;
use serde_json::{Value, json};

use crate::agent::{RPC, card, with};
use crate::server::Server;
use crate::support::{World, config, with_card};

/// The card of a partner with a tenant, two schemes and a requirement for one of them.
fn partner_card(base: &str) -> Value {
    let card = with(card(base, RPC), "/supportedInterfaces/0/tenant", json!("tenant-alpha"));
    let schemes = json!({
        "oauthAuth": {"type": "http", "scheme": "bearer"},
        "idle": {"type": "http", "scheme": "basic"},
    });
    let card = with(card, "/securitySchemes", schemes);
    with(card, "/security", json!([{"oauthAuth": []}]))
}

fn policy() -> A2aPartnerPolicy {
    A2aPartnerPolicy::new("design-partner-a")
}

async fn refusal(server: &Server, policy: A2aPartnerPolicy) -> String {
    let outcome = A2aAdapter::connect(config(server).with_partner_policy(policy)).await;
    outcome.map(drop).unwrap_err().to_string()
}

// covers: A2A-060
#[tokio::test]
async fn a_card_that_is_as_expected_is_accepted() {
    let server = with_card(partner_card).await;
    let policy = policy()
        .with_required_tenant("tenant-alpha")
        .require_skill("research")
        .require_skill("other")
        .require_security_scheme("oauthAuth")
        .allow_interface_origin(server.url(""))
        .allow_interface_origin("https://agent.example.com");
    let config = config(&server).with_partner_policy(policy).with_bearer_token("t");
    let world = World::new(config).await;
    crate::support::begin(&world).await;
    assert_eq!(server.last().json()["params"]["tenant"], "tenant-alpha");
}

// covers: A2A-060, A2A-061, A2A-062, A2A-063, A2A-064, A2A-065, A2A-066
#[tokio::test]
async fn each_expectation_that_does_not_hold_is_named() {
    let server = with_card(partner_card).await;
    let prefix = "partner admission failed: partner `design-partner-a`: ";
    for (policy, expected) in [
        (
            policy().with_required_tenant("tenant-beta"),
            "expected tenant `tenant-beta` of interface `",
        ),
        (policy().require_skill("write"), "expected skill `write`, found none"),
        (policy().require_security_scheme("ghost"), "expected security scheme `ghost` among those"),
        (
            policy().require_security_scheme("idle"),
            "expected security scheme `idle` in the card's security requirements",
        ),
        (
            policy().allow_interface_origin("https://agent.example.com"),
            "expected an interface of one of `https://agent.example.com`, found only `http://127",
        ),
    ] {
        let refusal = refusal(&server, policy).await;
        assert!(refusal.starts_with(&format!("{prefix}{expected}")), "{refusal}");
    }
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn a_missing_tenant_is_another_tenant() {
    let server = with_card(|base| card(base, RPC)).await;
    let refusal = refusal(&server, policy().with_required_tenant("tenant-alpha")).await;
    assert!(refusal.ends_with("found none"), "{refusal}");
}

#[tokio::test]
async fn of_several_interfaces_the_one_of_the_tenant_is_chosen() {
    let server = with_card(|base| {
        let interface = |tenant: &str| {
            json!({
                "url": format!("{base}/a2a"), "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0", "tenant": tenant,
            })
        };
        let both = json!([interface("tenant-beta"), interface("tenant-alpha")]);
        with(card(base, RPC), "/supportedInterfaces", both)
    })
    .await;
    let policy = policy().with_required_tenant("tenant-alpha");
    let world = World::new(config(&server).with_partner_policy(policy)).await;
    crate::support::begin(&world).await;
    assert_eq!(server.last().json()["params"]["tenant"], "tenant-alpha");
}

#[tokio::test]
async fn a_required_skill_that_takes_nothing_we_send_is_missing() {
    let server =
        with_card(|base| with(card(base, RPC), "/skills/0/inputModes", json!(["image/png"]))).await;
    let refusal = refusal(&server, policy().require_skill("research")).await;
    assert!(refusal.contains("input modes of skill `research`"), "{refusal}");
}

#[tokio::test]
async fn a_scheme_that_only_a_skill_asks_for_counts() {
    let server = with_card(|base| {
        let schemes = json!({"own": {"type": "http", "scheme": "bearer"}});
        let card = with(card(base, RPC), "/securitySchemes", schemes);
        with(card, "/skills/0/security", json!([{"own": []}]))
    })
    .await;
    let config = config(&server).with_partner_policy(policy().require_security_scheme("own"));
    assert_eq!(A2aAdapter::connect(config).await.unwrap().manifest().tools.len(), 2);
}

#[tokio::test]
async fn blank_expectations_are_none() {
    let server = with_card(|base| card(base, RPC)).await;
    let policy = A2aPartnerPolicy::new(" ")
        .with_required_tenant("")
        .require_skill(" ")
        .require_security_scheme("")
        .allow_interface_origin("");
    A2aAdapter::connect(config(&server).with_partner_policy(policy)).await.unwrap();
}

#[tokio::test]
async fn a_card_that_breaks_the_contract_later_is_not_taken_over() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = with_card(move |base| {
        let first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let card = partner_card(base);
        if first { card } else { with(card, "/skills/0/id", json!("renamed")) }
    })
    .await;
    let config = config(&server).with_partner_policy(policy().require_skill("research"));
    let adapter = A2aAdapter::connect(config).await.unwrap();
    let error = adapter.refresh().await.unwrap_err().to_string();
    assert!(error.contains("expected skill `research`"), "{error}");
    assert_eq!(adapter.manifest().tools[0].name, "research");
}
