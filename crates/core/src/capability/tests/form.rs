//! What tokens and grants look like, and what is refused.

use super::*;

#[test]
fn a_full_token_is_written_as_it_was_read() {
    let value = full_value();
    let token: CapabilityToken = read(&value);
    assert_eq!(serde_json::to_value(&token).unwrap(), value);
    let canonical = canonical::to_string(&value).unwrap();
    assert_eq!(canonical::to_string(&token).unwrap(), canonical);
}

#[test]
fn unknown_members_are_dropped_where_the_format_may_grow() {
    let original: CapabilityToken = read(&full_value());
    for pointer in [
        "",
        "/scope",
        "/scope/grants/0",
        "/scope/resource_grants/0",
        "/scope/prompt_grants/0",
        "/delegation_chain/0",
        "/delegation_chain/0/attenuations/0",
        "/delegation_chain/0/attenuations/1",
        "/scope_attenuations/2",
    ] {
        let token: CapabilityToken = read(&with_unknown_member(pointer));
        assert_eq!(token, original, "{pointer}");
        let written = canonical::to_string(&token).unwrap();
        assert!(!written.contains("never_heard_of"), "{pointer}");
    }
}

#[test]
fn unknown_members_are_refused_where_the_format_may_not_grow() {
    for pointer in [
        "/scope/grants/0/max_cost_per_invocation",
        "/scope/grants/0/max_total_cost",
        "/scope/grants/0/constraints/0",
        "/scope/grants/0/constraints/1",
        "/scope/grants/0/constraints/1/value",
        "/scope/grants/0/constraints/2/value",
        "/scope/grants/0/constraints/2/value/threshold",
        "/scope/grants/0/constraints/3/value",
        "/scope/grants/0/constraints/4",
        "/aggregate_invocation_budget",
        "/aggregate_invocation_budget/root_binding",
        "/aggregate_invocation_budget/root_binding/body",
        "/delegation_chain/0/aggregate_budget",
        "/delegation_chain/0/attenuations/1/constraint",
        "/delegation_chain/0/attenuations/2/max_total_cost",
        "/attenuation_proof",
        "/attenuation_proof/normalizedSubsetProof",
        "/attenuation_proof/normalizedSubsetProof/subsetRelations/0",
    ] {
        assert!(!reads::<CapabilityToken>(&with_unknown_member(pointer)), "{pointer}");
    }
}

#[test]
fn null_stands_for_an_optional_member_that_is_absent() {
    for pointer in [
        "/aggregate_invocation_budget",
        "/aggregate_invocation_budget/root_binding",
        "/aggregate_invocation_budget/root_binding/algorithm",
        "/algorithm",
        "/scope_attenuations",
        "/attenuation_proof",
        "/attenuation_proof/normalizedSubsetProof/aggregateBudget",
        "/attenuation_proof/normalizedSubsetProof/cumulativeApproval",
        "/budget_share_bps",
        "/scope/grants/0/max_invocations",
        "/scope/grants/0/max_cost_per_invocation",
        "/scope/grants/0/max_total_cost",
        "/scope/grants/0/dpop_required",
        "/delegation_chain/0/scope_hash",
        "/delegation_chain/0/aggregate_budget",
        "/delegation_chain/0/cumulative_approval",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = full_value();
        value.pointer_mut(parent).unwrap()[name] = Value::Null;
        let with_null: CapabilityToken = read(&value);
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert_eq!(with_null, read(&value), "{pointer}");
        assert_eq!(serde_json::to_value(&with_null).unwrap(), value, "{pointer}");
    }
}

#[test]
fn required_members_are_required() {
    for pointer in [
        "/id",
        "/issuer",
        "/subject",
        "/scope",
        "/issued_at",
        "/expires_at",
        "/signature",
        "/scope/grants/0/server_id",
        "/scope/grants/0/tool_name",
        "/scope/grants/0/operations",
        "/scope/grants/0/constraints/0/type",
        "/scope/grants/0/constraints/0/value",
        "/scope/resource_grants/0/uri_pattern",
        "/scope/resource_grants/0/operations",
        "/scope/prompt_grants/0/prompt_name",
        "/scope/prompt_grants/0/operations",
        "/scope/grants/0/max_total_cost/units",
        "/scope/grants/0/max_total_cost/currency",
        "/delegation_chain/0/capability_id",
        "/delegation_chain/0/delegator",
        "/delegation_chain/0/delegatee",
        "/delegation_chain/0/timestamp",
        "/delegation_chain/0/signature",
        "/delegation_chain/0/attenuations/0/type",
        "/delegation_chain/0/attenuations/0/server_id",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = full_value();
        value.pointer_mut(parent).unwrap()[name] = Value::Null;
        assert!(!reads::<CapabilityToken>(&value), "null at {pointer}");
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert!(!reads::<CapabilityToken>(&value), "nothing at {pointer}");
    }
}

#[test]
fn members_of_the_wrong_kind_fail_the_whole_token() {
    for (pointer, wrong) in [
        ("/scope/grants/0/constraints/0/type", json!("path_suffix")),
        ("/scope/grants/0/constraints/0/type", json!("PathPrefix")),
        ("/scope/grants/0/constraints/0/value", json!(7)),
        ("/scope/grants/0/constraints/1/value/threshold_units", json!(-1)),
        ("/scope/grants/0/constraints/1/value/threshold_units", json!(1.0)),
        ("/scope/grants/0/constraints/3/value/min_safety_tier", json!("medium")),
        ("/scope/grants/0/operations/0", json!("execute")),
        ("/scope/grants/0/operations/0", json!("Invoke")),
        ("/scope/grants/0/max_invocations", json!(4_294_967_296_u64)),
        ("/scope/grants/0/max_invocations", json!(1.0)),
        ("/scope/grants/0/dpop_required", json!("true")),
        ("/scope/grants/0/max_total_cost/units", json!(0.5)),
        ("/issued_at", json!(1.0)),
        ("/issued_at", json!(-1)),
        ("/issued_at", json!("1700000000")),
        ("/expires_at", json!(18_446_744_073_709_551_616_f64)),
        ("/delegation_chain/0/attenuations/0/type", json!("add_tool")),
        ("/algorithm", json!("rsa")),
        ("/issuer", json!("00")),
        ("/signature", json!("0".repeat(64))),
        ("/aggregate_invocation_budget/scope", json!("family")),
    ] {
        let mut value = full_value();
        *value.pointer_mut(pointer).unwrap() = wrong.clone();
        assert!(!reads::<CapabilityToken>(&value), "{wrong} at {pointer}");
    }
}

#[test]
fn optional_members_are_left_out_and_false_is_written() {
    let bare = serde_json::to_value(token()).unwrap();
    let names: Vec<&str> = bare.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected =
        ["schema", "id", "issuer", "subject", "scope", "issued_at", "expires_at", "signature"];
    expected.sort_unstable();
    assert_eq!({ names }, expected);
    assert_eq!(canonical::to_string(&ChioScope::default()).unwrap(), "{}");
    let written = canonical::to_string(&grant("t", &[])).unwrap();
    assert_eq!(written, r#"{"operations":[],"server_id":"srv","tool_name":"t"}"#);
    for (value, expected) in
        [(false, r#""dpop_required":false"#), (true, r#""dpop_required":true"#)]
    {
        let grant = ToolGrant { dpop_required: Some(value), ..grant("t", &[]) };
        assert!(canonical::to_string(&grant).unwrap().contains(expected));
    }
}

#[test]
fn keys_and_signatures_in_another_spelling_are_the_same_token() {
    let token = token();
    let mut value = serde_json::to_value(&token).unwrap();
    for member in ["issuer", "subject", "signature"] {
        let text = value[member].as_str().unwrap().to_uppercase();
        value[member] = json!(format!("0x{text}"));
    }
    let parsed: CapabilityToken = read(&value);
    assert_eq!(parsed, token);
    assert_eq!(verify(&parsed, START), Ok(SignatureForm::Current));
    assert_eq!(canonical::to_vec(&parsed), canonical::to_vec(&token));
}

#[test]
fn patterns_of_resources_and_prompts_cover_by_prefix() {
    for (parent, child, covered) in [
        ("*", "anything", true),
        ("*", "*", true),
        ("*", "", true),
        ("file:///a/*", "file:///a/b", true),
        ("file:///a/*", "file:///a/", true),
        ("file:///a/*", "file:///a/*", true),
        ("file:///a/*", "file:///a/b/*", true),
        ("file:///a/*", "file:///a", false),
        ("file:///a/*", "file:///b", false),
        ("file:///a/*", "*", false),
        ("file:///a", "file:///a", true),
        ("file:///a", "file:///A", false),
        ("file:///a", "file:///a/b", false),
        ("file:///a", "file:///a*", false),
        ("", "", true),
        ("", "a", false),
        ("a*b", "axb", false),
    ] {
        let operations = vec![Operation::Read];
        let resource = |pattern: &str| ResourceGrant {
            uri_pattern: pattern.to_owned(),
            operations: operations.clone(),
        };
        let prompt = |pattern: &str| PromptGrant {
            prompt_name: pattern.to_owned(),
            operations: operations.clone(),
        };
        let case = format!("`{parent}` and `{child}`");
        assert_eq!(resource(parent).covers(child), covered, "{case}");
        assert_eq!(prompt(parent).covers(child), covered, "{case}");
        assert_eq!(resource(child).is_subset_of(&resource(parent)), covered, "{case}");
        assert_eq!(prompt(child).is_subset_of(&prompt(parent)), covered, "{case}");
        let more = ResourceGrant { operations: vec![Operation::Subscribe], ..resource(child) };
        assert!(!more.is_subset_of(&resource(parent)), "{case} with another operation");
        let none = PromptGrant { operations: Vec::new(), ..prompt(child) };
        assert_eq!(none.is_subset_of(&prompt(parent)), covered, "{case} without operations");
    }
}

#[test]
fn the_whole_name_is_the_only_wildcard_of_tools() {
    for (server, tool, asked_server, asked_tool, covered) in [
        ("srv", "read", "srv", "read", true),
        ("*", "read", "srv", "read", true),
        ("srv", "*", "srv", "read", true),
        ("*", "*", "srv", "read", true),
        ("*", "*", "*", "*", true),
        ("srv", "read", "srv", "*", false),
        ("srv", "read", "*", "read", false),
        ("srv", "re*", "srv", "read", false),
        ("s*", "read", "srv", "read", false),
        ("srv", "read", "srv", "Read", false),
        ("srv", "read", "other", "read", false),
    ] {
        let grant = ToolGrant { server_id: server.to_owned(), ..grant(tool, &[]) };
        assert_eq!(grant.covers(asked_server, asked_tool), covered, "{server} {tool}");
        let asked = ToolGrant { server_id: asked_server.to_owned(), ..grant.clone() };
        let asked = ToolGrant { tool_name: asked_tool.to_owned(), ..asked };
        assert_eq!(asked.is_subset_of(&grant), covered, "{server} {tool}");
    }
}

#[test]
fn regression_a_pattern_is_within_another_by_its_prefix() {
    let grant = |uri_pattern: &str| ResourceGrant {
        uri_pattern: uri_pattern.to_owned(),
        operations: vec![Operation::Read],
    };
    for (child, parent, expected) in [
        ("a*", "a**", false),
        ("*", "**", false),
        ("a**", "a*", true),
        ("**", "*", true),
        ("a**", "a**", true),
        ("a*b", "a**", true),
        ("ab", "a**", false),
        ("", "*", true),
        ("*", "", false),
    ] {
        let within = grant(child).is_subset_of(&grant(parent));
        assert_eq!(within, expected, "`{child}` within `{parent}`");
    }
}
