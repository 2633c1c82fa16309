//! How a call crossed from one protocol to another, as its receipt tells it.

use std::borrow::Cow;

use chio_core::canonical::{CanonicalError, Scratch, Written};
use chio_core::crypto::PublicKey;
use serde::{Deserialize, Serialize};

use crate::DiscoveryProtocol;
use crate::envelope::CrossProtocolCapabilityEnvelope;

/// Who decided: this road, and no other.
pub const AUTHORITY_PATH: &str = "cross_protocol_orchestrator";

/// The member of the receipt's metadata.
pub(crate) const EVIDENCE_MEMBER: &str = "chio";

/// One step of a call: a protocol in which it was really passed on. Writing a finished result in a
/// protocol's shape is none.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceHop<'a> {
    /// The bridge that the step belongs to.
    pub bridge_id: Cow<'a, str>,
    /// The protocol spoken.
    pub protocol: DiscoveryProtocol,
    /// The name of the call in that step.
    pub request_id: Cow<'a, str>,
    /// When the step was taken, in Unix seconds.
    pub timestamp: u64,
}

/// The way of a call.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrossProtocolTraceContext<'a> {
    /// The steps, the caller's first. They name requests and never the receipt that they are in.
    pub hops: Vec<TraceHop<'a>>,
    /// The call that this one is made for, in the same trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_request_id: Option<Cow<'a, str>>,
    /// The same for all calls of one agent under one capability over one bridge.
    pub session_fingerprint: Cow<'a, str>,
    /// The same for all calls of one act.
    pub trace_id: Cow<'a, str>,
}

/// What a receipt tells about the bridge that a call came over.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgeEvidence {
    /// The name of the bridge.
    pub bridge_id: String,
    /// The authority that crossed it.
    pub capability_envelope: CrossProtocolCapabilityEnvelope,
    /// What the caller speaks.
    pub source_protocol: DiscoveryProtocol,
    /// What the tool is addressed as.
    pub target_protocol: DiscoveryProtocol,
    /// What the last step speaks.
    pub terminal_protocol: DiscoveryProtocol,
    /// The way.
    pub trace: CrossProtocolTraceContext<'static>,
}

/// The receipt's `chio` member, as it is written; members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Authority<'a> {
    authoritative: bool,
    authority_path: &'static str,
    bridge: Bridge<'a>,
}

/// The receipt's `chio` member for a call that crossed no bridge; members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DirectAuthority<'a> {
    authoritative: bool,
    authority_path: &'static str,
    trace: DirectTrace<'a>,
}

/// The way of a call that crossed no bridge; members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DirectTrace<'a> {
    /// The caller's name of the call.
    origin_request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_request_id: Option<&'a str>,
    protocol: DiscoveryProtocol,
    trace_id: &'a str,
}

/// A [`BridgeEvidence`] that is about to be written; members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bridge<'a> {
    bridge_id: &'a str,
    capability_envelope: &'a CrossProtocolCapabilityEnvelope,
    source_protocol: DiscoveryProtocol,
    target_protocol: DiscoveryProtocol,
    terminal_protocol: DiscoveryProtocol,
    trace: CrossProtocolTraceContext<'a>,
}

/// What a trace is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing<'a> {
    pub(crate) origin_request_id: &'a str,
    pub(crate) kernel_request_id: &'a str,
    pub(crate) parent_request_id: Option<&'a str>,
    pub(crate) bridge_id: &'a str,
    pub(crate) source: DiscoveryProtocol,
    /// The selected target; the requested one on a planned denial.
    pub(crate) target: DiscoveryProtocol,
    /// What the tool's server speaks; native for a call that does not come so far.
    pub(crate) spoken: DiscoveryProtocol,
    pub(crate) capability_id: &'a str,
    pub(crate) agent: &'a PublicKey,
    /// The time now, in Unix seconds.
    pub(crate) now: u64,
}

/// The name of the bridge from a protocol to the requested target.
pub(crate) fn bridge_id(
    source: DiscoveryProtocol,
    requested: DiscoveryProtocol,
    origin_request_id: &str,
) -> String {
    format!("chio-bridge-{source}-{requested}-{origin_request_id}")
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

impl<'a> Crossing<'a> {
    /// The member `chio` of the receipt's metadata, for a call of this trace.
    pub(crate) fn evidence(
        &self,
        trace_id: &'a str,
        envelope: &'a CrossProtocolCapabilityEnvelope,
        scratch: &mut Scratch,
    ) -> Result<Written, CanonicalError> {
        let session_fingerprint = scratch.hash(&FingerprintSeed {
            agent_id: self.agent,
            bridge_id: self.bridge_id,
            capability_id: self.capability_id,
            source_protocol: self.source,
        })?;
        let trace = CrossProtocolTraceContext {
            hops: self.hops(),
            parent_request_id: self.parent_request_id.map(Cow::Borrowed),
            session_fingerprint: Cow::Owned(session_fingerprint),
            trace_id: Cow::Borrowed(trace_id),
        };
        let authority = Authority {
            authoritative: true,
            authority_path: AUTHORITY_PATH,
            bridge: Bridge {
                bridge_id: self.bridge_id,
                capability_envelope: envelope,
                source_protocol: self.source,
                target_protocol: self.target,
                terminal_protocol: DiscoveryProtocol::Native,
                trace,
            },
        };
        Written::with(scratch, &authority)
    }

    /// The same member for a call that crosses no bridge.
    pub(crate) fn direct_evidence(
        &self,
        trace_id: &'a str,
        scratch: &mut Scratch,
    ) -> Result<Written, CanonicalError> {
        let trace = DirectTrace {
            origin_request_id: self.origin_request_id,
            parent_request_id: self.parent_request_id,
            protocol: self.source,
            trace_id,
        };
        let authority =
            DirectAuthority { authoritative: true, authority_path: AUTHORITY_PATH, trace };
        Written::with(scratch, &authority)
    }

    /// The id of the trace that begins with this call.
    pub(crate) fn trace_id(&self, scratch: &mut Scratch) -> Result<String, CanonicalError> {
        scratch.hash(&TraceSeed {
            bridge_id: self.bridge_id,
            capability_id: self.capability_id,
            kernel_request_id: self.kernel_request_id,
            origin_request_id: self.origin_request_id,
            route_protocols: self.route(),
            source_protocol: self.source,
            target_protocol: self.target,
        })
    }

    /// The protocols of the tool's side, in the published order: what its server speaks, and the
    /// kernel, which runs it whatever that is.
    const fn route(&self) -> &'static [DiscoveryProtocol] {
        use DiscoveryProtocol::{A2a, Acp, Http, Mcp, Native, OpenAi};
        match self.spoken {
            Native => &[Native],
            Http => &[Http, Native],
            Mcp => &[Mcp, Native],
            A2a => &[A2a, Native],
            Acp => &[Acp, Native],
            OpenAi => &[OpenAi, Native],
        }
    }

    fn hops(&self) -> Vec<TraceHop<'a>> {
        let hop = |protocol, request_id| TraceHop {
            bridge_id: Cow::Borrowed(self.bridge_id),
            protocol,
            request_id,
            timestamp: self.now,
        };
        let mut hops = Vec::with_capacity(3);
        hops.push(hop(self.source, Cow::Borrowed(self.origin_request_id)));
        hops.extend(self.route().iter().map(|protocol| hop(*protocol, self.name_on(*protocol))));
        hops
    }

    /// The name of the call in a step on the tool's side.
    fn name_on(&self, protocol: DiscoveryProtocol) -> Cow<'a, str> {
        match protocol {
            DiscoveryProtocol::Native => Cow::Borrowed(self.kernel_request_id),
            other => Cow::Owned(format!("{}:{other}", self.kernel_request_id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use chio_core::capability::ChioScope;
    use serde_json::{Value, json};

    use super::*;
    use chio_core::capability_ref::CrossProtocolCapabilityRef;

    fn agent() -> PublicKey {
        PublicKey::from_hex(&"ab".repeat(32)).unwrap()
    }

    fn crossing(agent: &PublicKey) -> Crossing<'_> {
        Crossing {
            origin_request_id: "a2a-task-1",
            kernel_request_id: "a2a-a2a-task-1",
            parent_request_id: None,
            bridge_id: "chio-bridge-a2a-native-a2a-task-1",
            source: DiscoveryProtocol::A2a,
            target: DiscoveryProtocol::Native,
            spoken: DiscoveryProtocol::Native,
            capability_id: "cap-demo",
            agent,
            now: 1_790_000_000,
        }
    }

    fn envelope() -> CrossProtocolCapabilityEnvelope {
        CrossProtocolCapabilityEnvelope {
            attenuated_scope: ChioScope::default(),
            bridge_id: "chio-bridge-a2a-native-a2a-task-1".to_owned(),
            bridged_at: 1_790_000_000,
            capability_ref: CrossProtocolCapabilityRef {
                chio_capability_id: "cap-demo".to_owned(),
                origin_protocol: DiscoveryProtocol::A2a,
                parent_capability_hash: "hash".to_owned(),
                protocol_context: None,
            },
            schema: CrossProtocolCapabilityEnvelope::SCHEMA.to_owned(),
            target_protocol: DiscoveryProtocol::Native,
        }
    }

    const TRACE_ID: &str = "efa25614ee4b46faa2f7d06e2f9d4d1a67e2f6b54affa1f62be82d23cf15ff59";

    fn evidence(crossing: &Crossing<'_>) -> Value {
        let mut scratch = Scratch::default();
        let trace_id = crossing.trace_id(&mut scratch).unwrap();
        crossing.evidence(&trace_id, &envelope(), &mut scratch).unwrap().to_value()
    }

    // covers: CROSS-037, CROSS-039, CROSS-042, CROSS-043
    #[test]
    fn the_evidence_has_the_published_form_and_hashes() {
        let bridge = bridge_id(DiscoveryProtocol::A2a, DiscoveryProtocol::Native, "a2a-task-1");
        assert_eq!(bridge, "chio-bridge-a2a-native-a2a-task-1");
        let expected = json!({
            "authorityPath": "cross_protocol_orchestrator",
            "authoritative": true,
            "bridge": {
                "bridgeId": bridge,
                "capabilityEnvelope": envelope(),
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
        });
        let written = evidence(&crossing(&agent()));
        assert_eq!(written, expected);
        let read: BridgeEvidence = serde_json::from_value(written["bridge"].clone()).unwrap();
        assert_eq!(read.trace.trace_id, TRACE_ID);
        assert_eq!(read.capability_envelope, envelope());
    }

    #[test]
    fn every_call_is_a_trace_of_its_own_unless_it_is_made_for_another() {
        let agent = agent();
        let mut other = crossing(&agent);
        other.kernel_request_id = "a2a-a2a-task-2";
        let mut scratch = Scratch::default();
        assert_ne!(other.trace_id(&mut scratch).unwrap(), TRACE_ID);
        other.parent_request_id = Some("a2a-a2a-task-1");
        let written = other.evidence(TRACE_ID, &envelope(), &mut scratch).unwrap().to_value();
        let trace = &written["bridge"]["trace"];
        assert_eq!(trace["traceId"], TRACE_ID);
        assert_eq!(trace["parentRequestId"], "a2a-a2a-task-1");
    }

    #[test]
    fn the_steps_on_the_tools_side_follow_what_its_server_speaks_and_not_the_target() {
        let agent = agent();
        let names = |spoken| {
            let target = DiscoveryProtocol::OpenAi;
            let crossing = Crossing { target, spoken, ..crossing(&agent) };
            let steps = crossing.hops().into_iter().skip(1);
            steps.map(|hop| (hop.protocol, hop.request_id.into_owned())).collect::<Vec<_>>()
        };
        let kernel = || (DiscoveryProtocol::Native, "a2a-a2a-task-1".to_owned());
        assert_eq!(names(DiscoveryProtocol::Native), [kernel()]);
        for (spoken, name) in [
            (DiscoveryProtocol::Mcp, "a2a-a2a-task-1:mcp"),
            (DiscoveryProtocol::A2a, "a2a-a2a-task-1:a2a"),
            (DiscoveryProtocol::Http, "a2a-a2a-task-1:http"),
        ] {
            assert_eq!(names(spoken), [(spoken, name.to_owned()), kernel()]);
        }
    }
}
