//! An example call: for tests of a policy, for explanations, for proofs.

use chio_core::canonical;
use chio_core::capability::{CapabilityToken, ChioScope, DelegationLink, Validity};
use chio_core::crypto::{Keypair, PublicKey, Signature};
use chio_core::fidelity::BridgeFidelity;
use chio_core::governance::{GovernedTransactionIntent, ModelMetadata};
use chio_core::manifest::ToolDefinition;
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{GuardInput, GuardMemo, Session, Work};
use serde_json::Value;

/// A call, with everything that a guard may ask about.
#[derive(Debug, Clone)]
pub struct ExampleCall {
    /// The server.
    pub server_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments.
    pub arguments: Value,
    /// The tool as its server publishes it.
    pub tool: Option<ToolDefinition>,
    /// The token; its signature is not checked here.
    pub token: CapabilityToken,
    /// The session, and what the caller speaks.
    pub session: Session,
    /// What the tool is addressed as.
    pub target: DiscoveryProtocol,
    /// How honestly the caller's protocol presents the tool.
    pub fidelity: Option<BridgeFidelity>,
    /// What the caller says it intends.
    pub intent: Option<GovernedTransactionIntent>,
    /// The model that asks.
    pub model: Option<ModelMetadata>,
    /// What the call costs.
    pub cost: Option<MonetaryAmount>,
    /// The tool's output, for the guards that review it.
    pub output: Option<Value>,
    /// When, in Unix seconds.
    pub now: u64,
    /// Whether it resumes after an approval.
    pub resumed: bool,
}

/// The time of calls that do not say one: a Thursday noon.
const NOON: u64 = 1_790_251_200;

fn key(seed: u8) -> PublicKey {
    Keypair::from_seed(&[seed; 32]).public_key().clone()
}

impl ExampleCall {
    /// A plain call.
    pub fn new(tool_name: &str, arguments: Value) -> Self {
        let validity = Validity { issued_at: NOON - 60, expires_at: NOON + 3600 };
        let token =
            CapabilityToken::draft("cap-example", key(1), key(2), ChioScope::default(), validity);
        let protocol = DiscoveryProtocol::Native;
        let id = "session-example".to_owned();
        Self {
            server_id: "example".to_owned(),
            tool_name: tool_name.to_owned(),
            arguments,
            tool: None,
            token,
            session: Session::anonymous(id, protocol),
            target: protocol,
            fidelity: Some(BridgeFidelity::Lossless),
            intent: None,
            model: None,
            cost: None,
            output: None,
            now: NOON,
            resumed: false,
        }
    }

    /// The same by a token that was delegated `depth` times.
    #[must_use]
    pub fn at_depth(mut self, depth: usize) -> Self {
        let link = |number: usize| {
            let seed = u8::try_from(number).unwrap_or(u8::MAX);
            DelegationLink {
                capability_id: "cap-parent".to_owned(),
                delegator: key(seed),
                delegatee: key(seed.wrapping_add(1)),
                attenuations: Vec::new(),
                timestamp: NOON,
                scope_hash: None,
                aggregate_budget: None,
                cumulative_approval: None,
                signature: Signature::blank(),
            }
        };
        self.token.delegation_chain = (0..depth).map(link).collect();
        self
    }

    /// What guards see of it.
    pub fn input<'a>(&'a self, memo: &'a GuardMemo, work: &'a Work) -> GuardInput<'a> {
        GuardInput {
            request_id: "req-example",
            token: &self.token,
            server_id: &self.server_id,
            tool_name: &self.tool_name,
            arguments: &self.arguments,
            argument_bytes: canonical::size(&self.arguments).map_or(usize::MAX, |size| size.bytes),
            meta: None,
            tool: self.tool.as_ref(),
            grant_index: 0,
            cost: self.cost.as_ref(),
            session: &self.session,
            target: self.target,
            fidelity: self.fidelity.as_ref(),
            intent: self.intent.as_ref(),
            model: self.model.as_ref(),
            now: self.now,
            resumed: self.resumed,
            memo,
            work,
        }
    }
}
