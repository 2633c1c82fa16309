//! Manifests: the bytes that are signed, and each rule that they keep.

use serde_json::json;

use super::*;
use crate::canonical;
use crate::crypto::SignatureError;
use crate::strict;

const SERVER: u8 = 4;

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

/// The smallest legal manifest.
fn smallest() -> ToolManifest {
    ToolManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        server_id: "s".to_owned(),
        name: "N".to_owned(),
        description: None,
        version: "1".to_owned(),
        tools: vec![tool("t")],
        server_tools: Vec::new(),
        required_permissions: None,
        public_key: key(SERVER).public_key().clone(),
    }
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "d".to_owned(),
        input_schema: Map::new(),
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    }
}

/// A manifest with every member.
fn full_value() -> Value {
    let money = json!({"units": 5, "currency": "USD"});
    json!({
        "schema": MANIFEST_SCHEMA, "server_id": "srv", "name": "Files", "description": "All files",
        "version": "1.0",
        "tools": [{
            "name": "read", "description": "Reads", "input_schema": {"type": "object"},
            "output_schema": {"type": "string"}, "has_side_effects": true, "latency_hint": "fast",
            "pricing": {
                "pricing_model": "hybrid", "base_price": money, "unit_price": money,
                "billing_unit": "page",
            },
        }],
        "server_tools": ["computer_use", "bash", "text_editor"],
        "required_permissions": {
            "read_paths": ["/a"], "write_paths": [], "network_hosts": null,
            "environment_variables": ["HOME"],
        },
        "public_key": key(SERVER).public_key(),
    })
}

fn read(value: &Value) -> Result<ToolManifest, strict::StrictError> {
    strict::from_slice(value.to_string().as_bytes())
}

/// Both the signer and the verifier refuse the changed manifest.
#[track_caller]
fn refuse(change: impl FnOnce(&mut ToolManifest), expected: &str) {
    let mut manifest = read(&full_value()).unwrap();
    change(&mut manifest);
    let refused = Err(ArtifactError::Malformed(expected.to_owned()));
    assert_eq!(manifest.check(), refused);
    assert_eq!(manifest.clone().signed(&key(SERVER)).map(drop), refused);
    let signature = key(SERVER).sign(&canonical::to_vec(&manifest).unwrap());
    let signer_key = key(SERVER).public_key().clone();
    assert_eq!(SignedManifest { manifest, signature, signer_key }.verify(None), refused);
}

#[track_caller]
fn accept(change: impl FnOnce(&mut ToolManifest)) {
    let mut manifest = read(&full_value()).unwrap();
    change(&mut manifest);
    assert_eq!(manifest.check(), Ok(()));
    assert_eq!(manifest.signed(&key(SERVER)).unwrap().verify(None), Ok(()));
}

#[test]
fn the_smallest_manifest_has_these_bytes() {
    let public_key = key(SERVER).public_key().to_hex();
    let expected = r#"{"description":null,"name":"N","public_key":"…","required_permissions":null,"schema":"chio.manifest.v1","server_id":"s","tools":[{"description":"d","has_side_effects":false,"input_schema":{},"latency_hint":null,"name":"t"}],"version":"1"}"#;
    let expected = expected.replace('…', &public_key);
    assert_eq!(canonical::to_string(&smallest()).unwrap(), expected);
    let signed = smallest().signed(&key(SERVER)).unwrap();
    assert_eq!(signed.signing_input().unwrap(), expected.as_bytes());
    assert_eq!(signed.signature, key(SERVER).sign(expected.as_bytes()));
    assert_eq!(signed.verify(None), Ok(()));
}

#[test]
fn a_full_manifest_is_written_as_it_was_read() {
    let manifest = read(&full_value()).unwrap();
    assert_eq!(serde_json::to_value(&manifest).unwrap(), full_value());
    let signed = manifest.signed(&key(SERVER)).unwrap();
    let value = serde_json::to_value(&signed).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 3);
    let again: SignedManifest = strict::from_slice(value.to_string().as_bytes()).unwrap();
    assert_eq!(again, signed);
    assert_eq!(again.verify(None), Ok(()));
}

#[test]
fn nullable_members_are_written_as_null_and_may_be_missing() {
    for pointer in [
        "/description",
        "/required_permissions",
        "/required_permissions/read_paths",
        "/required_permissions/write_paths",
        "/required_permissions/network_hosts",
        "/required_permissions/environment_variables",
        "/tools/0/latency_hint",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = full_value();
        value.pointer_mut(parent).unwrap()[name] = Value::Null;
        let null = read(&value).unwrap();
        assert_eq!(serde_json::to_value(&null).unwrap(), value, "{pointer} is written as null");
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert_eq!(read(&value).unwrap(), null, "{pointer} may be missing");
        assert_eq!(null.check(), Ok(()));
    }
    let mut value = full_value();
    value["required_permissions"] = json!({});
    let permissions = read(&value).unwrap().required_permissions;
    let expected = json!({
        "read_paths": null, "write_paths": null, "network_hosts": null,
        "environment_variables": null,
    });
    assert_eq!(serde_json::to_value(permissions).unwrap(), expected);
}

#[test]
fn optional_members_are_left_out() {
    let written = serde_json::to_value(smallest()).unwrap();
    assert!(written.get("server_tools").is_none());
    for name in ["output_schema", "pricing"] {
        assert!(written["tools"][0].get(name).is_none(), "{name}");
        let mut value = full_value();
        value["tools"][0][name] = Value::Null;
        let null = read(&value).unwrap();
        value["tools"][0].as_object_mut().unwrap().remove(name);
        assert_eq!(read(&value).unwrap(), null, "null stands for absence of {name}");
    }
    for (name, model) in
        [("base_price", "per_unit"), ("unit_price", "flat"), ("billing_unit", "flat")]
    {
        let mut value = full_value();
        value["tools"][0]["pricing"]["pricing_model"] = json!(model);
        value["tools"][0]["pricing"].as_object_mut().unwrap().remove(name);
        let manifest = read(&value).unwrap();
        assert_eq!(manifest.check(), Ok(()), "{model} without {name}");
        assert_eq!(serde_json::to_value(manifest).unwrap(), value);
    }
}

#[test]
fn required_members_are_required() {
    for pointer in [
        "/schema",
        "/server_id",
        "/name",
        "/version",
        "/tools",
        "/public_key",
        "/tools/0/name",
        "/tools/0/description",
        "/tools/0/input_schema",
        "/tools/0/has_side_effects",
        "/tools/0/pricing/pricing_model",
        "/tools/0/pricing/base_price/units",
        "/tools/0/pricing/base_price/currency",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = full_value();
        value.pointer_mut(parent).unwrap()[name] = Value::Null;
        assert!(read(&value).is_err(), "null at {pointer}");
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert!(read(&value).is_err(), "nothing at {pointer}");
    }
    let signed = serde_json::to_value(smallest().signed(&key(SERVER)).unwrap()).unwrap();
    for name in ["manifest", "signature", "signer_key"] {
        let mut value = signed.clone();
        value.as_object_mut().unwrap().remove(name);
        assert!(strict::from_slice::<SignedManifest>(value.to_string().as_bytes()).is_err());
    }
}

#[test]
fn unknown_members_are_refused_everywhere() {
    for pointer in
        ["", "/tools/0", "/tools/0/pricing", "/tools/0/pricing/base_price", "/required_permissions"]
    {
        let mut value = full_value();
        value.pointer_mut(pointer).unwrap()["never_heard_of"] = json!(1);
        assert!(read(&value).is_err(), "{pointer}");
    }
    let mut signed = serde_json::to_value(smallest().signed(&key(SERVER)).unwrap()).unwrap();
    signed["never_heard_of"] = json!(1);
    assert!(strict::from_slice::<SignedManifest>(signed.to_string().as_bytes()).is_err());
    // But schemas are the server's own.
    for name in ["input_schema", "output_schema"] {
        let mut value = full_value();
        value["tools"][0][name]["never_heard_of"] = json!({"x": [1]});
        assert_eq!(serde_json::to_value(read(&value).unwrap()).unwrap(), value);
    }
}

#[test]
fn members_of_the_wrong_kind_are_refused() {
    for (pointer, wrong) in [
        ("/tools/0/input_schema", json!(true)),
        ("/tools/0/input_schema", json!([])),
        ("/tools/0/output_schema", json!("string")),
        ("/tools/0/has_side_effects", json!("no")),
        ("/tools/0/latency_hint", json!("quick")),
        ("/tools/0/pricing/pricing_model", json!("free")),
        ("/server_tools/0", json!("browser")),
        ("/required_permissions/read_paths", json!("/a")),
        ("/required_permissions/read_paths/0", json!(1)),
        ("/description", json!(1)),
        ("/public_key", json!("x")),
    ] {
        let mut value = full_value();
        *value.pointer_mut(pointer).unwrap() = wrong.clone();
        assert!(read(&value).is_err(), "{wrong} at {pointer}");
    }
}

#[test]
fn the_schema_is_this_one() {
    refuse(
        |manifest| manifest.schema = "chio.manifest.v2".to_owned(),
        "expected schema `chio.manifest.v1`, found `chio.manifest.v2`",
    );
}

/// A member by its name.
type Member = (&'static str, fn(&mut ToolManifest) -> &mut String);

#[test]
fn names_are_trimmed_and_plain() {
    let members: [Member; 7] = [
        ("server_id", |manifest| &mut manifest.server_id),
        ("name", |manifest| &mut manifest.name),
        ("version", |manifest| &mut manifest.version),
        ("tools[].name", |manifest| &mut manifest.tools[0].name),
        ("billing_unit", |manifest| {
            manifest.tools[0].pricing.as_mut().unwrap().billing_unit.as_mut().unwrap()
        }),
        ("read_paths", |manifest| {
            &mut manifest.required_permissions.as_mut().unwrap().read_paths.as_mut().unwrap()[0]
        }),
        ("environment_variables", |manifest| {
            let permissions = manifest.required_permissions.as_mut().unwrap();
            &mut permissions.environment_variables.as_mut().unwrap()[0]
        }),
    ];
    for (name, member) in members {
        let expected =
            format!("expected text in `{name}` without blanks around it or control characters");
        for text in ["", " ", "\t\n", " a", "a ", "a\n", "\u{a0}a", "a\u{3000}"] {
            refuse(|manifest| text.clone_into(member(manifest)), &expected);
        }
        for text in ["a", "a b", "é", "😀", "a/b-c_d.e", &"x".repeat(10_000)] {
            accept(|manifest| text.clone_into(member(manifest)));
        }
    }
    for (name, member) in &members[..3] {
        let expected =
            format!("expected text in `{name}` without blanks around it or control characters");
        for text in ["a\u{0}b", "a\nb", "a\u{1f}b", "a\u{7f}b", "a\u{80}b", "a\u{9f}b"] {
            refuse(|manifest| text.clone_into(member(manifest)), &expected);
        }
    }
}

#[test]
fn there_is_a_tool_and_each_has_its_own_name() {
    refuse(|manifest| manifest.tools.clear(), "expected at least one tool, found none");
    refuse(
        |manifest| manifest.tools = vec![tool("a"), tool("b"), tool("a")],
        "expected each tool name once, found `a` twice",
    );
    accept(|manifest| manifest.tools = vec![tool("a"), tool("A"), tool("b")]);
    refuse(
        |manifest| manifest.server_tools.push(ServerTool::Bash),
        "expected each server tool once, found one twice",
    );
    accept(|manifest| manifest.server_tools.clear());
}

/// One list of permissions.
type List = fn(&mut RequiredPermissions) -> &mut Option<Vec<String>>;

#[test]
fn permissions_name_each_thing_once() {
    let lists: [(&str, List); 4] = [
        ("read_paths", |permissions| &mut permissions.read_paths),
        ("write_paths", |permissions| &mut permissions.write_paths),
        ("network_hosts", |permissions| &mut permissions.network_hosts),
        ("environment_variables", |permissions| &mut permissions.environment_variables),
    ];
    for (name, list) in lists {
        let set = |manifest: &mut ToolManifest, entries: &[&str]| {
            let entries = entries.iter().map(|&entry| entry.to_owned()).collect();
            *list(manifest.required_permissions.as_mut().unwrap()) = Some(entries);
        };
        refuse(
            |manifest| set(manifest, &["a", "b", "a"]),
            &format!("expected each entry of `{name}` once, found `a` twice"),
        );
        refuse(
            |manifest| set(manifest, &["a", ""]),
            &format!("expected text in `{name}` without blanks around it or control characters"),
        );
        accept(|manifest| set(manifest, &["a", "b", "A"]));
        accept(|manifest| set(manifest, &[]));
    }
}

#[test]
fn a_price_has_the_parts_that_its_model_needs() {
    const BASE: &str = "expected `base_price` for this pricing model, found none";
    const UNIT: &str =
        "expected `unit_price` and `billing_unit` for this pricing model, found none";
    for (model, base, unit, billing, problem) in [
        (PricingModel::Flat, true, false, false, None),
        (PricingModel::Flat, true, true, true, None),
        (PricingModel::Flat, false, true, true, Some(BASE)),
        (PricingModel::PerInvocation, false, true, true, None),
        (PricingModel::PerInvocation, true, true, true, None),
        (PricingModel::PerInvocation, true, false, true, Some(UNIT)),
        (PricingModel::PerInvocation, true, true, false, Some(UNIT)),
        (PricingModel::PerUnit, false, true, true, None),
        (PricingModel::PerUnit, false, false, true, Some(UNIT)),
        (PricingModel::PerUnit, false, true, false, Some(UNIT)),
        (PricingModel::PerUnit, false, false, false, Some(UNIT)),
        (PricingModel::Hybrid, true, true, true, None),
        (PricingModel::Hybrid, false, true, true, Some(BASE)),
        (PricingModel::Hybrid, true, false, true, Some(UNIT)),
        (PricingModel::Hybrid, true, true, false, Some(UNIT)),
        (PricingModel::Hybrid, false, false, false, Some(BASE)),
    ] {
        let price = || MonetaryAmount::new(1, "EUR");
        let pricing = ToolPricing {
            pricing_model: model,
            base_price: base.then(price),
            unit_price: unit.then(price),
            billing_unit: billing.then(|| "page".to_owned()),
        };
        let set = |manifest: &mut ToolManifest| manifest.tools[0].pricing = Some(pricing);
        match problem {
            None => accept(set),
            Some(problem) => refuse(set, problem),
        }
    }
}

#[test]
fn a_currency_is_three_capital_letters() {
    let prices: [fn(&mut ToolPricing) -> &mut Option<MonetaryAmount>; 2] =
        [|pricing| &mut pricing.base_price, |pricing| &mut pricing.unit_price];
    for price in prices {
        let set = |manifest: &mut ToolManifest, currency: &str| {
            let pricing = manifest.tools[0].pricing.as_mut().unwrap();
            *price(pricing) = Some(MonetaryAmount::new(1, currency));
        };
        for currency in ["", "US", "USDT", "usd", "Usd", "U$D", "US1", " US", "ÉÉÉ", "\u{c9}A"] {
            refuse(
                |manifest| set(manifest, currency),
                &format!("expected a currency of three capital letters, found `{currency}`"),
            );
        }
        for currency in ["USD", "EUR", "CHF"] {
            accept(|manifest| set(manifest, currency));
        }
    }
}

#[test]
fn the_server_signs_its_own_manifest() {
    let stranger = key(9);
    let expected = "expected the manifest's public key as signer, found another";
    let other = Err(ArtifactError::Malformed(expected.to_owned()));
    assert_eq!(smallest().signed(&stranger).map(drop), other);
    // Signed by another who also says so.
    let manifest = smallest();
    let signature = stranger.sign(&canonical::to_vec(&manifest).unwrap());
    let signer_key = stranger.public_key().clone();
    assert_eq!(SignedManifest { manifest, signature, signer_key }.verify(None), other);
    // Signed by another who does not.
    let mut signed = smallest().signed(&key(SERVER)).unwrap();
    signed.signature = stranger.sign(&signed.signing_input().unwrap());
    assert_eq!(signed.verify(None), Err(SignatureError::Invalid.into()));
}

#[test]
fn the_signer_is_the_one_expected() {
    let signed = smallest().signed(&key(SERVER)).unwrap();
    assert_eq!(signed.verify(None), Ok(()));
    assert_eq!(signed.verify(Some(key(SERVER).public_key())), Ok(()));
    let expected = "expected another signer than the one that the manifest names";
    let other = Err(ArtifactError::Malformed(expected.to_owned()));
    assert_eq!(signed.verify(Some(key(9).public_key())), other);
}

#[test]
fn every_change_breaks_the_signature() {
    let signed = read(&full_value()).unwrap().signed(&key(SERVER)).unwrap();
    let changes: [fn(&mut ToolManifest); 6] = [
        |manifest| manifest.description = None,
        |manifest| manifest.version.push('1'),
        |manifest| manifest.tools[0].has_side_effects = false,
        |manifest| manifest.tools[0].latency_hint = Some(LatencyHint::Slow),
        |manifest| manifest.server_tools.reverse(),
        |manifest| manifest.required_permissions = Some(RequiredPermissions::default()),
    ];
    for change in changes {
        let mut changed = signed.clone();
        change(&mut changed.manifest);
        assert_eq!(changed.verify(None), Err(SignatureError::Invalid.into()));
    }
}
