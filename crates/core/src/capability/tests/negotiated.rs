//! Features that peers agree on.

use super::*;

#[test]
fn feature_names_are_short_and_plain() {
    let profile = |name: &str| CapabilityNegotiation {
        schema: NEGOTIATION_SCHEMA.to_owned(),
        features: [(name.to_owned(), true)].into(),
    };
    for name in ["a", "9", "_.-", "accepts_anchor_batch_v1", &"a".repeat(96)] {
        assert_eq!(profile(name).check(), Ok(()), "{name}");
    }
    for name in ["", "A", "a b", "a/b", "é", "a\u{0}", "a\n", &"a".repeat(97)] {
        assert!(profile(name).check().is_err(), "{name:?}");
    }
    let other = CapabilityNegotiation { schema: "other".to_owned(), ..profile("a") };
    let expected = "expected schema `chio.capabilities.v1`, found `other`";
    assert_eq!(other.check(), Err(ArtifactError::Malformed(expected.to_owned())));
    let empty = CapabilityNegotiation { features: [].into(), ..profile("a") };
    assert_eq!(empty.check(), Ok(()));
}

#[test]
fn a_feature_is_off_unless_it_is_said_to_be_on() {
    let profile: CapabilityNegotiation = read(&json!({
        "schema": NEGOTIATION_SCHEMA,
        "features": {"accepts_hybrid_signatures": true, "threshold_governed_approvals": false},
    }));
    for (feature, on) in [
        ("accepts_hybrid_signatures", true),
        ("threshold_governed_approvals", false),
        ("aggregate_invocation_budget", false),
        ("cumulative_approval_budget", false),
        ("delegation_chain_binding", true),
        ("never_heard_of", false),
    ] {
        assert_eq!(profile.has(feature), on, "{feature}");
    }
    let off: CapabilityNegotiation = read(&json!({
        "schema": NEGOTIATION_SCHEMA, "features": {"delegation_chain_binding": false},
    }));
    assert!(!off.has("delegation_chain_binding"));
}

#[test]
fn a_negotiation_profile_is_strict_and_leaves_out_an_empty_list() {
    let bare = json!({"schema": NEGOTIATION_SCHEMA});
    let profile: CapabilityNegotiation = read(&bare);
    assert_eq!(serde_json::to_value(&profile).unwrap(), bare);
    for refused in [
        json!({}),
        json!({"schema": NEGOTIATION_SCHEMA, "extra": 1}),
        json!({"schema": NEGOTIATION_SCHEMA, "features": {"a": 1}}),
        json!({"schema": NEGOTIATION_SCHEMA, "features": {"a": null}}),
    ] {
        assert!(!reads::<CapabilityNegotiation>(&refused), "{refused}");
    }
}
