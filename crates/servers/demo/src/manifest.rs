//! What the server offers.

use chio_core::crypto::PublicKey;
use chio_core::fidelity::APPROVAL_REQUIRED;
use chio_core::manifest::{LatencyHint, PricingModel, ToolDefinition, ToolManifest, ToolPricing};
use chio_core::money::MonetaryAmount;
use serde_json::{Map, Value, json};

use crate::arguments::MAX_NAME;

/// The server's name in grants and calls.
pub const SERVER_ID: &str = "demo";
/// The longest text that a tool takes, in bytes.
pub const MAX_TEXT: usize = 16 * 1024;
/// How far `count_to` counts.
pub const MAX_CHUNKS: u64 = 10_000;
/// How long `sleep` sleeps, in milliseconds.
pub const MAX_SLEEP_MS: u64 = 60_000;
/// What a call of `paid` costs, in cents.
pub const PAID_PRICE: u64 = 25;
/// The currency of [`PAID_PRICE`].
const CURRENCY: &str = "USD";

/// The manifest of a server with this key.
pub(crate) fn manifest(public_key: PublicKey) -> ToolManifest {
    ToolManifest {
        description: Some("Harmless tools to try Chio with.".to_owned()),
        ..ToolManifest::unsigned(SERVER_ID, "Demo", env!("CARGO_PKG_VERSION"), tools(), public_key)
    }
}

/// What a call of `paid` costs.
pub(crate) fn price() -> MonetaryAmount {
    MonetaryAmount::new(PAID_PRICE, CURRENCY)
}

fn tools() -> Vec<ToolDefinition> {
    vec![
        tool("echo", "Gives a text back.", &[("text", text())], &[("text", text())]),
        tool("now", "Tells the time.", &[], &[("unix_seconds", number(None))]),
        ToolDefinition {
            has_side_effects: true,
            latency_hint: Some(LatencyHint::Fast),
            ..tool(
                "note_put",
                "Keeps a note under a name, in place of an earlier one.",
                &[("name", name()), ("text", text())],
                &[("puts", number(None))],
            )
        },
        tool("note_get", "Reads a note.", &[("name", name())], &[("text", text())]),
        tool(
            "note_count",
            "Counts the notes, and how often one was put.",
            &[],
            &[("notes", number(None)), ("puts", number(None))],
        ),
        ToolDefinition {
            latency_hint: Some(LatencyHint::Moderate),
            ..tool(
                "count_to",
                "Counts from 1 to n, one chunk for each number.",
                &[("n", number(Some(MAX_CHUNKS)))],
                &[("n", number(None))],
            )
        },
        ToolDefinition {
            latency_hint: Some(LatencyHint::Slow),
            ..tool(
                "sleep",
                "Waits for some milliseconds.",
                &[("ms", number(Some(MAX_SLEEP_MS)))],
                &[("slept_ms", number(None))],
            )
        },
        paid(),
        needs_approval(),
    ]
}

fn paid() -> ToolDefinition {
    ToolDefinition {
        // The text may be left out, unlike the members of other tools.
        input_schema: schema(&[("text", text())], &[]),
        pricing: Some(ToolPricing {
            pricing_model: PricingModel::PerInvocation,
            base_price: None,
            unit_price: Some(price()),
            billing_unit: Some("call".to_owned()),
        }),
        ..tool("paid", "Gives a text back, for money.", &[], &[("text", text())])
    }
}

fn needs_approval() -> ToolDefinition {
    let mut tool = tool(
        "needs_approval",
        "Gives a text back, once somebody has approved the call.",
        &[("text", text())],
        &[("text", text())],
    );
    tool.input_schema.insert(APPROVAL_REQUIRED.to_owned(), Value::Bool(true));
    tool
}

/// A tool that changes nothing and answers at once; every member of its schemas is required.
fn tool(
    name: &str,
    description: &str,
    input: &[(&str, Value)],
    output: &[(&str, Value)],
) -> ToolDefinition {
    let names = |members: &[(&str, Value)]| -> Vec<String> {
        members.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: schema(input, &names(input)),
        output_schema: Some(schema(output, &names(output))),
        pricing: None,
        has_side_effects: false,
        latency_hint: Some(LatencyHint::Instant),
    }
}

/// The schema of an object with these members and no others.
fn schema(members: &[(&str, Value)], required: &[String]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("required".to_owned(), json!(required));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

fn text() -> Value {
    json!({"type": "string", "maxLength": MAX_TEXT})
}

fn name() -> Value {
    json!({"type": "string", "pattern": format!("^[A-Za-z0-9_-]{{1,{MAX_NAME}}}$")})
}

fn number(most: Option<u64>) -> Value {
    match most {
        Some(most) => json!({"type": "integer", "minimum": 0, "maximum": most}),
        None => json!({"type": "integer", "minimum": 0}),
    }
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;
    use chio_core::fidelity::BridgeSemanticHints;

    use super::manifest;

    #[test]
    fn the_manifest_keeps_the_rules_and_can_be_signed() {
        let key = Keypair::from_seed(&[7; 32]);
        let signed = manifest(key.public_key().clone()).signed(&key).unwrap();
        assert_eq!(signed.verify(Some(key.public_key())), Ok(()));
    }

    #[test]
    fn only_putting_a_note_changes_anything() {
        let key = Keypair::from_seed(&[7; 32]);
        let tools = manifest(key.public_key().clone()).tools;
        let changing: Vec<_> =
            tools.iter().filter(|tool| tool.has_side_effects).map(|tool| &tool.name).collect();
        assert_eq!(changing, ["note_put"]);
    }
    #[test]
    fn only_one_tool_asks_for_approval() {
        let key = Keypair::from_seed(&[7; 32]);
        let tools = manifest(key.public_key().clone()).tools;
        let asking: Vec<_> = tools
            .iter()
            .filter(|tool| BridgeSemanticHints::of(tool).approval_required)
            .map(|tool| &tool.name)
            .collect();
        assert_eq!(asking, ["needs_approval"]);
    }
}
