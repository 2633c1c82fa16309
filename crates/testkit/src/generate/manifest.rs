//! Random manifests of the server with seed 5.

use chio_core::manifest::{
    LatencyHint, MANIFEST_SCHEMA, PricingModel, RequiredPermissions, ServerTool, SignedManifest,
    ToolDefinition, ToolManifest, ToolPricing,
};
use chio_core::money::MonetaryAmount;
use proptest::collection::btree_set;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::Map;

use crate::key;

/// A small manifest with one tool.
#[must_use]
pub fn sample_manifest() -> ToolManifest {
    ToolManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        server_id: "srv-files".to_owned(),
        name: "Files".to_owned(),
        description: None,
        version: "1.0.0".to_owned(),
        tools: vec![tool("file_read".to_owned())],
        server_tools: Vec::new(),
        required_permissions: None,
        public_key: key(5).public_key().clone(),
    }
}

fn tool(name: String) -> ToolDefinition {
    ToolDefinition {
        name,
        description: "Reads a file".to_owned(),
        input_schema: Map::new(),
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    }
}

fn pricing() -> impl Strategy<Value = ToolPricing> {
    let models = vec![
        PricingModel::Flat,
        PricingModel::PerInvocation,
        PricingModel::PerUnit,
        PricingModel::Hybrid,
    ];
    (select(models), any::<u64>()).prop_map(|(pricing_model, units)| ToolPricing {
        pricing_model,
        base_price: Some(MonetaryAmount::new(units, "USD")),
        unit_price: Some(MonetaryAmount::new(units, "EUR")),
        billing_unit: Some("call".to_owned()),
    })
}

/// A signed manifest.
pub fn manifest() -> impl Strategy<Value = SignedManifest> {
    let hints = option::of(select(vec![LatencyHint::Instant, LatencyHint::Slow]));
    let host_tools = subsequence(vec![ServerTool::Bash, ServerTool::ComputerUse], 0..=2);
    let paths = option::of(btree_set("[a-z/]{1,6}", 0..3));
    let tools = btree_set("[a-z_]{1,6}", 1..4);
    (tools, option::of("[a-z ]{0,9}"), option::of(pricing()), hints, host_tools, paths)
        .prop_filter_map("generated manifests keep the rules", |parts| {
            let (names, description, pricing, latency_hint, server_tools, paths) = parts;
            let describe =
                |name| ToolDefinition { pricing: pricing.clone(), latency_hint, ..tool(name) };
            let required_permissions = paths.map(|paths| RequiredPermissions {
                read_paths: Some(paths.into_iter().collect()),
                ..RequiredPermissions::default()
            });
            let manifest = ToolManifest {
                tools: names.into_iter().map(describe).collect(),
                description,
                server_tools,
                required_permissions,
                ..sample_manifest()
            };
            manifest.signed(&key(5)).ok()
        })
}
