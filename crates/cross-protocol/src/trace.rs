//! How a call crossed from one protocol to another, as its receipt tells it.

use chio_core::canonical::{self, CanonicalError};
use chio_core::crypto::PublicKey;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::DiscoveryProtocol;

/// Who decided: this road, and no other.
pub const AUTHORITY_PATH: &str = "cross_protocol_orchestrator";

/// The member of the receipt's metadata.
const EVIDENCE_MEMBER: &str = "chio";

/// One step of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceHop {
    /// The bridge that the step belongs to.
    pub bridge_id: String,
    /// The protocol spoken.
    pub protocol: DiscoveryProtocol,
    /// The name of the call in that step.
    pub request_id: String,
    /// When, in Unix seconds.
    pub timestamp: u64,
}

/// The way of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrossProtocolTraceContext {
    /// The steps, the caller's first. They name requests and never the receipt that they are in.
    pub hops: Vec<TraceHop>,
    /// The same for all calls of one agent under one capability over one bridge.
    pub session_fingerprint: String,
    /// The same for all calls of one act.
    pub trace_id: String,
}

/// What a receipt tells about the bridge that a call came over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgeEvidence {
    /// The name of the bridge.
    pub bridge_id: String,
    /// What the caller speaks.
    pub source_protocol: DiscoveryProtocol,
    /// What the tool speaks.
    pub target_protocol: DiscoveryProtocol,
    /// What the last step speaks.
    pub terminal_protocol: DiscoveryProtocol,
    /// The way.
    pub trace: CrossProtocolTraceContext,
}

/// The receipt's `chio` member.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Authority {
    authoritative: bool,
    authority_path: &'static str,
    bridge: BridgeEvidence,
}

/// What a trace is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing<'a> {
    pub(crate) origin_request_id: &'a str,
    pub(crate) kernel_request_id: &'a str,
    pub(crate) source: DiscoveryProtocol,
    pub(crate) target: DiscoveryProtocol,
    pub(crate) capability_id: &'a str,
    pub(crate) agent: &'a PublicKey,
    /// In Unix seconds.
    pub(crate) now: u64,
}

/// What a trace's id is the hash of; members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceSeed<'a> {
    bridge_id: &'a str,
    capability_id: &'a str,
    kernel_request_id: &'a str,
    origin_request_id: &'a str,
    route_protocols: &'a [DiscoveryProtocol],
    source_protocol: DiscoveryProtocol,
    target_protocol: DiscoveryProtocol,
}

/// What a session's fingerprint is the hash of; members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FingerprintSeed<'a> {
    agent_id: &'a PublicKey,
    bridge_id: &'a str,
    capability_id: &'a str,
    source_protocol: DiscoveryProtocol,
}

impl Crossing<'_> {
    /// The members that the receipt's metadata gets, in the trace given or in one of its own.
    pub(crate) fn evidence(
        &self,
        trace_id: Option<String>,
    ) -> Result<Map<String, Value>, CanonicalError> {
        let authority = Authority {
            authoritative: true,
            authority_path: AUTHORITY_PATH,
            bridge: self.bridge(trace_id)?,
        };
        let authority = serde_json::to_value(authority)
            .map_err(|error| CanonicalError::Custom(error.to_string()))?;
        Ok(Map::from_iter([(EVIDENCE_MEMBER.to_owned(), authority)]))
    }

    fn bridge(&self, trace_id: Option<String>) -> Result<BridgeEvidence, CanonicalError> {
        let bridge_id =
            format!("chio-bridge-{}-{}-{}", self.source, self.target, self.origin_request_id);
        let trace_id = trace_id.map_or_else(|| self.trace_id(&bridge_id), Ok)?;
        let session_fingerprint = canonical::hash(&FingerprintSeed {
            agent_id: self.agent,
            bridge_id: &bridge_id,
            capability_id: self.capability_id,
            source_protocol: self.source,
        })?;
        let trace = CrossProtocolTraceContext {
            hops: self.hops(&bridge_id),
            session_fingerprint,
            trace_id,
        };
        Ok(BridgeEvidence {
            bridge_id,
            source_protocol: self.source,
            target_protocol: self.target,
            terminal_protocol: DiscoveryProtocol::Native,
            trace,
        })
    }

    fn trace_id(&self, bridge_id: &str) -> Result<String, CanonicalError> {
        canonical::hash(&TraceSeed {
            bridge_id,
            capability_id: self.capability_id,
            kernel_request_id: self.kernel_request_id,
            origin_request_id: self.origin_request_id,
            route_protocols: self.route(),
            source_protocol: self.source,
            target_protocol: self.target,
        })
    }

    /// The protocols of the target's side. Whatever the tool speaks, the kernel runs it.
    const fn route(&self) -> &'static [DiscoveryProtocol] {
        use DiscoveryProtocol::{A2a, Acp, Http, Mcp, Native, OpenAi};
        match self.target {
            Native => &[Native],
            Http => &[Http, Native],
            Mcp => &[Mcp, Native],
            A2a => &[A2a, Native],
            Acp => &[Acp, Native],
            OpenAi => &[OpenAi, Native],
        }
    }

    fn hops(&self, bridge_id: &str) -> Vec<TraceHop> {
        let hop = |protocol, request_id| TraceHop {
            bridge_id: bridge_id.to_owned(),
            protocol,
            request_id,
            timestamp: self.now,
        };
        let mut hops = Vec::with_capacity(3);
        hops.push(hop(self.source, self.origin_request_id.to_owned()));
        hops.extend(self.route().iter().map(|protocol| hop(*protocol, self.name_on(*protocol))));
        hops
    }

    /// The name of the call in a step on the target's side.
    fn name_on(&self, protocol: DiscoveryProtocol) -> String {
        match protocol {
            DiscoveryProtocol::Native => self.kernel_request_id.to_owned(),
            // The published bridges write this one without its underscore.
            DiscoveryProtocol::OpenAi => format!("{}:openai", self.kernel_request_id),
            other => format!("{}:{other}", self.kernel_request_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent() -> PublicKey {
        PublicKey::from_hex(&"ab".repeat(32)).unwrap()
    }

    fn crossing(agent: &PublicKey) -> Crossing<'_> {
        Crossing {
            origin_request_id: "a2a-task-1",
            kernel_request_id: "a2a-a2a-task-1",
            source: DiscoveryProtocol::A2a,
            target: DiscoveryProtocol::Native,
            capability_id: "cap-demo",
            agent,
            now: 1_790_000_000,
        }
    }

    const TRACE_ID: &str = "efa25614ee4b46faa2f7d06e2f9d4d1a67e2f6b54affa1f62be82d23cf15ff59";

    // covers: CROSS-042, CROSS-043
    #[test]
    fn the_evidence_has_the_published_form_and_hashes() {
        let bridge = "chio-bridge-a2a-native-a2a-task-1";
        let expected = json!({"chio": {
            "authorityPath": "cross_protocol_orchestrator",
            "authoritative": true,
            "bridge": {
                "bridgeId": bridge,
                "sourceProtocol": "a2a",
                "targetProtocol": "native",
                "terminalProtocol": "native",
                "trace": {
                    "traceId": TRACE_ID,
                    "sessionFingerprint":
                        "6ca750b1c27b4f200f4a4ab43f8ecd062ef825a2120cc5ccbe20e632b7993d0e",
                    "hops": [
                        {"protocol": "a2a", "requestId": "a2a-task-1", "bridgeId": bridge,
                         "timestamp": 1_790_000_000},
                        {"protocol": "native", "requestId": "a2a-a2a-task-1", "bridgeId": bridge,
                         "timestamp": 1_790_000_000},
                    ],
                },
            },
        }});
        assert_eq!(Value::Object(crossing(&agent()).evidence(None).unwrap()), expected);
    }

    #[test]
    fn a_trace_that_was_handed_down_is_kept() {
        let agent = agent();
        let bridge = crossing(&agent).bridge(Some("trace-1".to_owned())).unwrap();
        assert_eq!(bridge.trace.trace_id, "trace-1");
    }

    #[test]
    fn every_call_is_a_trace_of_its_own() {
        let agent = agent();
        let mut other = crossing(&agent);
        other.kernel_request_id = "a2a-a2a-task-2";
        assert_ne!(other.bridge(None).unwrap().trace.trace_id, TRACE_ID);
    }

    #[test]
    fn the_steps_on_the_targets_side_follow_what_the_tool_speaks() {
        let agent = agent();
        let names = |target| {
            let bridge = Crossing { target, ..crossing(&agent) }.bridge(None).unwrap();
            let steps = bridge.trace.hops.into_iter().skip(1);
            steps.map(|hop| (hop.protocol, hop.request_id)).collect::<Vec<_>>()
        };
        let kernel = || (DiscoveryProtocol::Native, "a2a-a2a-task-1".to_owned());
        assert_eq!(names(DiscoveryProtocol::Native), [kernel()]);
        for (target, name) in [
            (DiscoveryProtocol::Mcp, "a2a-a2a-task-1:mcp"),
            (DiscoveryProtocol::OpenAi, "a2a-a2a-task-1:openai"),
            (DiscoveryProtocol::Http, "a2a-a2a-task-1:http"),
        ] {
            assert_eq!(names(target), [(target, name.to_owned()), kernel()]);
        }
    }
}
