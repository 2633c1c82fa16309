//! How faithfully another protocol can present a tool, and the hints that a tool declares for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::manifest::{LatencyHint, ToolDefinition};
use crate::protocol::{DiscoveryProtocol, UnknownProtocol};

/// What the members of a schema that are ours begin with.
const EXTENSION: &str = "x-chio-";
const PUBLISH: &str = "x-chio-publish";
/// The member of a tool's schemas that says whether each call has to be approved.
pub const APPROVAL_REQUIRED: &str = "x-chio-approval-required";
const STREAMING: &str = "x-chio-streaming";
const CANCELLATION: &str = "x-chio-cancellation";
const PARTIAL_OUTPUT: &str = "x-chio-partial-output";
const TARGET_PROTOCOL: &str = "x-chio-target-protocol";

/// How faithfully a surface can present a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BridgeFidelity {
    /// Nothing is lost.
    Lossless,
    /// It can be used, with differences.
    Adapted {
        /// The differences, as readable text.
        caveats: Vec<String>,
    },
    /// The surface cannot present it faithfully.
    Unsupported {
        /// The reason, as readable text.
        reason: String,
    },
}

impl BridgeFidelity {
    /// Whether the tool may be shown on the surface.
    #[must_use]
    pub const fn is_published(&self) -> bool {
        !matches!(self, Self::Unsupported { .. })
    }
}

/// What a tool's schema says about how the tool behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgeSemanticHints {
    /// Whether it may be shown on other surfaces than its own.
    pub publish: bool,
    /// Whether each call needs an approval.
    pub approval_required: bool,
    /// Whether its output is streamed in chunks.
    pub streams_output: bool,
    /// Whether a call can be cancelled.
    pub supports_cancellation: bool,
    /// Whether a part of its output is usable without the rest.
    pub partial_output: bool,
}

impl BridgeSemanticHints {
    /// The hints of a tool: what its schemas declare, with defaults that follow from its latency.
    ///
    /// An extension that is not a boolean counts as absent.
    pub fn of(tool: &ToolDefinition) -> Self {
        use LatencyHint::{Moderate, Slow};
        let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
        let mut members = schemas.into_iter().flatten().flat_map(Map::keys);
        // Most schemas have none of them: one look is enough then.
        let declares = members.any(|name| name.starts_with(EXTENSION));
        let declared =
            |name| declares.then(|| extensions(tool, name).find_map(Value::as_bool)).flatten();
        let slow = tool.latency_hint == Some(Slow);
        let streams_output =
            declared(STREAMING).unwrap_or(slow || tool.latency_hint == Some(Moderate));
        Self {
            publish: declared(PUBLISH).unwrap_or(true),
            approval_required: declared(APPROVAL_REQUIRED).unwrap_or(false),
            streams_output,
            supports_cancellation: declared(CANCELLATION).unwrap_or(slow),
            partial_output: declared(PARTIAL_OUTPUT).unwrap_or(streams_output),
        }
    }
}

/// Refuses a tool that seems to ask for approval in a way that is not understood.
///
/// # Errors
/// With what was expected, when a hint is neither true nor false.
pub fn check_approval_hint(tool: &ToolDefinition) -> Result<(), String> {
    if extensions(tool, APPROVAL_REQUIRED).all(Value::is_boolean) {
        return Ok(());
    }
    Err(format!("expected true or false as `{APPROVAL_REQUIRED}`"))
}

/// Why a tool's `x-chio-target-protocol` was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetProtocolError {
    /// The value is not a string.
    #[error("expected `{TARGET_PROTOCOL}` of tool `{tool}` to be a string")]
    NotText {
        /// The tool.
        tool: String,
    },
    /// The name is not a known protocol.
    #[error("`{TARGET_PROTOCOL}` of tool `{tool}`: {source}")]
    Unknown {
        /// The tool.
        tool: String,
        /// The parse error, with the name.
        source: UnknownProtocol,
    },
}

/// The protocol that a tool asks to be called by, if its schemas name one.
///
/// # Errors
/// When the value is not the name of a protocol.
pub fn target_protocol_of(
    tool: &ToolDefinition,
) -> Result<Option<DiscoveryProtocol>, TargetProtocolError> {
    let Some(found) = extensions(tool, TARGET_PROTOCOL).next() else {
        return Ok(None);
    };
    let tool = || tool.name.clone();
    let name = found.as_str().ok_or_else(|| TargetProtocolError::NotText { tool: tool() })?;
    let parsed = name.parse();
    parsed.map(Some).map_err(|source| TargetProtocolError::Unknown { tool: tool(), source })
}

/// The values of an extension in a tool's schemas, the input's first.
fn extensions<'t>(tool: &'t ToolDefinition, name: &'t str) -> impl Iterator<Item = &'t Value> {
    let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
    schemas.into_iter().flatten().filter_map(move |schema| schema.get(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(input: &Value, output: &Value, latency: Option<&str>) -> ToolDefinition {
        serde_json::from_value(json!({
            "name": "t", "description": "", "input_schema": input, "output_schema": output,
            "has_side_effects": false, "latency_hint": latency,
        }))
        .unwrap()
    }

    #[test]
    fn a_rating_is_an_object_whose_kind_holds_the_word() {
        let caveats = vec!["collected".to_owned()];
        for (rating, written, published) in [
            (BridgeFidelity::Lossless, json!({"kind": "lossless"}), true),
            (
                BridgeFidelity::Adapted { caveats },
                json!({"kind": "adapted", "caveats": ["collected"]}),
                true,
            ),
            (
                BridgeFidelity::Unsupported { reason: "asks".to_owned() },
                json!({"kind": "unsupported", "reason": "asks"}),
                false,
            ),
        ] {
            assert_eq!(serde_json::to_value(&rating).unwrap(), written);
            assert_eq!(serde_json::from_value::<BridgeFidelity>(written).unwrap(), rating);
            assert_eq!(rating.is_published(), published, "{rating:?}");
        }
    }

    /// Publish, approval, streams, cancellation, partial.
    fn flags(tool: &ToolDefinition) -> [bool; 5] {
        let hints = BridgeSemanticHints::of(tool);
        [
            hints.publish,
            hints.approval_required,
            hints.streams_output,
            hints.supports_cancellation,
            hints.partial_output,
        ]
    }

    // covers: CROSS-065
    #[test]
    fn what_is_not_said_follows_from_the_latency() {
        for (latency, expected) in [
            (None, [true, false, false, false, false]),
            (Some("instant"), [true, false, false, false, false]),
            (Some("fast"), [true, false, false, false, false]),
            (Some("moderate"), [true, false, true, false, true]),
            (Some("slow"), [true, false, true, true, true]),
        ] {
            assert_eq!(flags(&tool(&json!({}), &Value::Null, latency)), expected, "{latency:?}");
        }
    }

    // covers: CROSS-064, CROSS-066, BRIDGE-106, BRIDGE-107
    #[test]
    fn what_is_said_wins_over_the_latency_and_the_input_over_the_output() {
        let names = [PUBLISH, APPROVAL_REQUIRED, STREAMING, CANCELLATION, PARTIAL_OUTPUT];
        for latency in [None, Some("fast"), Some("moderate"), Some("slow")] {
            for (place, name) in names.into_iter().enumerate() {
                for said in [true, false] {
                    let (yes, no) = (json!({name: said}), json!({name: !said}));
                    let unclear = json!({name: "yes"});
                    for (input, output) in [
                        (yes.clone(), Value::Null),
                        (yes.clone(), no),
                        (json!({}), yes.clone()),
                        (unclear, yes.clone()),
                    ] {
                        let tool = tool(&input, &output, latency);
                        assert_eq!(flags(&tool)[place], said, "{input} {output} {latency:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn partial_output_follows_what_is_said_of_streaming() {
        let said = tool(&json!({STREAMING: false}), &Value::Null, Some("slow"));
        assert_eq!(flags(&said), [true, false, false, true, false]);
        let said = tool(&json!({STREAMING: true}), &Value::Null, None);
        assert_eq!(flags(&said), [true, false, true, false, true]);
    }

    #[test]
    fn an_extension_that_is_no_boolean_is_absent() {
        for odd in [json!("true"), json!(1), json!(null), json!([true])] {
            let said = tool(&json!({STREAMING: odd, PUBLISH: odd}), &Value::Null, Some("moderate"));
            assert_eq!(flags(&said), [true, false, true, false, true], "{odd}");
        }
    }

    #[test]
    fn hints_are_written_as_published() {
        let hints = BridgeSemanticHints::of(&tool(&json!({}), &Value::Null, None));
        let expected = json!({
            "publish": true, "approvalRequired": false, "streamsOutput": false,
            "supportsCancellation": false, "partialOutput": false,
        });
        assert_eq!(serde_json::to_value(hints).unwrap(), expected);
    }

    // covers: CROSS-006, CROSS-064
    #[test]
    fn the_target_protocol_is_read_from_the_input_then_the_output() {
        let target = |input: Value, output: Value| {
            let found = target_protocol_of(&tool(&input, &output, None));
            found.map_err(|error| error.to_string())
        };
        let says = |name: &str| json!({TARGET_PROTOCOL: name});
        assert_eq!(target(json!({}), Value::Null), Ok(None));
        assert_eq!(target(json!({}), json!({})), Ok(None));
        for protocol in DiscoveryProtocol::ALL {
            assert_eq!(target(says(protocol.name()), Value::Null), Ok(Some(protocol)));
            assert_eq!(target(json!({}), says(protocol.name())), Ok(Some(protocol)));
            assert_eq!(target(says(protocol.name()), says("a2a")), Ok(Some(protocol)));
        }
        assert_eq!(target(says(" OpenAI "), Value::Null), Ok(Some(DiscoveryProtocol::OpenAi)));
        let unknown = target(says("grpc"), says("mcp")).unwrap_err();
        assert!(unknown.contains("tool `t`") && unknown.contains("`grpc`"), "{unknown}");
        for odd in [json!(7), json!(null), json!(["mcp"])] {
            let error = target(json!({TARGET_PROTOCOL: odd}), says("mcp")).unwrap_err();
            assert!(error.contains("to be a string"), "{error}");
        }
    }
}
