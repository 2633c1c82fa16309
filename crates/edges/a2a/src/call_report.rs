//! What a task says about the decision on it: the receipt, or that there is none yet.

use std::sync::Arc;

use chio_core::receipt::SealedReceipt;
use chio_core::text::members;
use chio_cross_protocol::{AUTHORITY_PATH, Outcome};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What a task says about the decision on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallReport {
    /// The receipt's id and its canonical form.
    receipt: Option<(String, Arc<str>)>,
    decision: &'static str,
    /// Why, where the call was not simply allowed.
    reason: Option<String>,
    /// How it ended, in Chio's own dialect.
    ended: &'static str,
    /// Whether there is no receipt yet.
    pub(crate) pending: bool,
    /// Whether the tool streamed its result.
    pub(crate) streamed: bool,
}

/// A report as A2A writes it.
#[derive(Serialize)]
pub(crate) struct InA2a<'a> {
    chio: ChioMembers<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChioMembers<'a> {
    receipt_pending: bool,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_id: Option<&'a str>,
    /// As text: A2A does not define the members of a receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<&'a str>,
}

impl CallReport {
    /// The report of a task without a decision.
    pub(crate) const fn pending() -> Self {
        Self {
            receipt: None,
            decision: "pending",
            reason: None,
            ended: "",
            pending: true,
            streamed: false,
        }
    }

    /// The report of a task that is as it is for another reason than what came of a call.
    pub(crate) fn without_outcome(decision: &'static str, receipt: Option<SealedReceipt>) -> Self {
        let receipt = receipt.and_then(Self::id_and_text);
        Self { decision, receipt, ended: "completed", pending: false, ..Self::pending() }
    }

    /// The report of a call that has ended.
    pub(crate) fn new(outcome: &Outcome, receipt: SealedReceipt) -> Self {
        let (decision, ended, reason) = match outcome {
            Outcome::Value(_) | Outcome::Stream { .. } => ("allow", "completed", None),
            Outcome::Denied(denial) => ("deny", "completed", Some(denial.reason.clone())),
            Outcome::Cancelled { reason, .. } => ("cancelled", "cancelled", Some(reason.clone())),
            Outcome::Incomplete { reason, .. } => {
                ("incomplete", "incomplete", Some(reason.clone()))
            }
        };
        let streamed = matches!(outcome, Outcome::Stream { .. });
        let receipt = Self::id_and_text(receipt);
        Self { receipt, decision, reason, ended, pending: false, streamed }
    }

    /// The report of a call whose kernel stopped: there is a receipt, but no result.
    pub(crate) fn interrupted(receipt: Option<SealedReceipt>) -> Self {
        let receipt = receipt.and_then(Self::id_and_text);
        let reason = Some("its kernel stopped while it ran".to_owned());
        let (decision, ended) = ("incomplete", "incomplete");
        Self { receipt, decision, reason, ended, pending: false, streamed: false }
    }

    fn id_and_text(receipt: SealedReceipt) -> Option<(String, Arc<str>)> {
        // Canonical JSON is text.
        let text = String::from_utf8(receipt.bytes).ok()?;
        Some((receipt.id, text.into()))
    }

    /// The member `metadata` in A2A.
    pub(crate) fn in_a2a(&self) -> InA2a<'_> {
        let receipt = self.receipt.as_ref();
        let chio = ChioMembers {
            receipt_pending: self.pending,
            decision: self.decision,
            receipt_id: receipt.map(|(id, _)| &**id),
            receipt: receipt.map(|(_, text)| &**text),
        };
        InA2a { chio }
    }

    /// The member `metadata` in Chio's own dialect.
    pub(crate) fn in_seed(&self, surface: &'static str) -> Value {
        let mut chio = self.common_members();
        match &self.receipt {
            Some((id, text)) => {
                let receipt: Value = serde_json::from_str(text).unwrap_or_default();
                self.insert_receipt_members(&mut chio, id, receipt);
                chio.insert("a2aSurface".to_owned(), json!(surface));
                if self.streamed {
                    let how = json!("collated_final_message");
                    chio.insert("streamProjection".to_owned(), how);
                }
            }
            None => {
                chio.extend(members(json!({
                    "receiptId": null,
                    "receipt": null,
                    "capabilityId": null,
                    "compatibilityOnly": false,
                    "claimEligible": true,
                    "receiptBearing": false,
                })));
                if self.pending {
                    chio.insert("receiptPending".to_owned(), json!(true));
                }
            }
        }
        json!({"chio": chio})
    }

    /// What every answer in Chio's own dialect says.
    fn common_members(&self) -> Map<String, Value> {
        let chio = json!({
            "decision": self.decision,
            "authorityPath": AUTHORITY_PATH,
            "authoritative": true,
            "lifecycle": {
                "messageSend": "blocking_terminal_task",
                "messageStream": "deferred_task_poll",
                "taskGet": "supported",
                "taskCancel": "supported",
            },
            "runtimeLifecycle": {
                "surface": "a2a_authoritative",
                "blockingEntrypoint": "message/send",
                "streamEntrypoint": "message/stream",
                "followUpEntrypoint": "task/get",
                "cancelEntrypoint": "task/cancel",
                "streamDelivery": "collated_terminal_payload",
                "partialOutputDelivery": "collated_terminal_payload",
                "claimEligible": true,
                "compatibilityOnly": false,
            },
        });
        members(chio)
    }

    /// Adds what the receipt says, and the receipt.
    fn insert_receipt_members(&self, chio: &mut Map<String, Value>, id: &str, receipt: Value) {
        let at = |pointer: &str| receipt.pointer(pointer).cloned().unwrap_or_default();
        let mut bridge = at("/metadata/chio/bridge");
        let route = at("/metadata/route_selection");
        let protocols = route.get("selectedProtocols").cloned().unwrap_or_default();
        let hops = at("/metadata/chio/bridge/trace/hops");
        let hops = hops.as_array().map_or(&[][..], Vec::as_slice);
        let of_bridge = |member: &str| bridge.get(member).cloned().unwrap_or_default();
        let terminal = of_bridge("terminalProtocol");
        // The target is none of the steps on the tool's side: only the result has its shape.
        let target = of_bridge("targetProtocol");
        let is_projected = !hops.iter().skip(1).any(|hop| hop.get("protocol") == Some(&target));
        let mut ended = json!({"state": self.ended});
        if let (true, Some(reason), Value::Object(ended)) =
            (self.ended != "completed", &self.reason, &mut ended)
        {
            ended.insert("reason".to_owned(), json!(reason));
        }
        chio.extend(members(json!({
            "receiptId": id,
            "capabilityId": at("/capability_id"),
            "reason": self.reason,
            "terminalState": ended,
            "executionNonce": null,
            "receiptRef": {
                "receiptId": id,
                "capabilityId": at("/capability_id"),
                "traceId": at("/metadata/chio/bridge/trace/traceId"),
                "bridgeId": of_bridge("bridgeId"),
                "sourceProtocol": of_bridge("sourceProtocol"),
                "targetProtocol": of_bridge("targetProtocol"),
            },
            "targetExecution": {
                "projectedResult": is_projected,
                "notificationCount": 0,
                "routeHopCount": hops.len(),
                "multiHop": hops.len() > 2,
                "terminalProtocol": terminal,
            },
        })));
        if let Value::Object(bridge) = &mut bridge {
            let reference = at("/metadata/chio/bridge/capabilityEnvelope/capabilityRef");
            bridge.insert("capabilityRef".to_owned(), reference);
            let way = json!({
                "selectedProtocols": protocols,
                "terminalProtocol": terminal,
                "multiHop": hops.len() > 2,
            });
            bridge.insert("route".to_owned(), way);
        }
        chio.insert("routeSelection".to_owned(), route);
        chio.insert("bridge".to_owned(), bridge);
        chio.insert("receipt".to_owned(), receipt);
    }
}
