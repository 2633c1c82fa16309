//! Guards: policy in code. Whatever a guard cannot say, it denies.

use async_trait::async_trait;
use chio_core::capability::CapabilityToken;
use chio_core::fidelity::BridgeFidelity;
use chio_core::governance::{GovernedTransactionIntent, ModelMetadata};
use chio_core::manifest::ToolDefinition;
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use serde_json::Value;

use crate::call::ToolCall;
use crate::caller::Session;
use crate::pipeline::GuardMemo;
use crate::road::Draft;
use crate::work::Work;

/// What a guard looks at.
#[derive(Debug, Clone, Copy)]
pub struct GuardInput<'a> {
    /// The kernel's own name of the call.
    pub request_id: &'a str,
    /// The verified token.
    pub token: &'a CapabilityToken,
    /// The server called.
    pub server_id: &'a str,
    /// The tool called.
    pub tool_name: &'a str,
    /// The arguments.
    pub arguments: &'a Value,
    /// How many bytes the arguments have in their canonical form.
    pub argument_bytes: usize,
    /// What the request says for the server besides its arguments.
    pub meta: Option<&'a Value>,
    /// The tool as its server publishes it.
    pub tool: Option<&'a ToolDefinition>,
    /// The grant of the token that is tried first, by its place in the scope.
    pub grant_index: u32,
    /// The most that the call may cost on that grant, where it costs anything.
    pub cost: Option<&'a MonetaryAmount>,
    /// The session.
    pub session: &'a Session,
    /// What the tool is addressed as.
    pub target: DiscoveryProtocol,
    /// How honestly the caller's protocol can present the tool, where that was stated.
    pub fidelity: Option<&'a BridgeFidelity>,
    /// What the caller says it intends.
    pub intent: Option<&'a GovernedTransactionIntent>,
    /// The model that asks, as it says itself.
    pub model: Option<&'a ModelMetadata>,
    /// Now, in Unix seconds.
    pub now: u64,
    /// Whether the call was looked at before and has waited for an approval since: a guard that
    /// counts calls has counted it.
    pub resumed: bool,
    /// What the guards of this call work out once.
    pub memo: &'a GuardMemo,
    /// What judging the call may still cost.
    pub work: &'a Work,
}

impl<'a> GuardInput<'a> {
    /// What guards see of a call that costs nothing, on the token's first grant.
    pub(crate) fn new(
        call: &'a ToolCall,
        session: &'a Session,
        tool: &'a ToolDefinition,
        memo: &'a GuardMemo,
        work: &'a Work,
        draft: &Draft,
    ) -> Self {
        Self {
            request_id: &call.request_id,
            token: &call.token,
            server_id: &call.server_id,
            tool_name: &call.tool_name,
            arguments: &call.arguments,
            argument_bytes: draft.argument_bytes,
            meta: call.meta.as_ref(),
            tool: Some(tool),
            grant_index: 0,
            cost: None,
            session,
            target: call.target,
            fidelity: call.fidelity.as_deref(),
            intent: call.governed_intent.as_deref(),
            model: call.model.as_deref(),
            now: draft.record.started_at,
            resumed: draft.resumed(),
            memo,
            work,
        }
    }
}

/// What a guard says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Allow,
    /// It may not, for this reason.
    Deny(String),
    /// Its arguments are not what the tool takes, for this reason: a denial that its caller can
    /// correct.
    WrongArguments(String),
    /// An approver has to say yes first, for this reason.
    AwaitApproval(String),
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardOutcome {
    /// The verdict.
    pub verdict: Verdict,
    /// What the guard found, for the receipt. Never holds a secret.
    pub evidence: Option<String>,
    /// The arguments as the receipt may keep them, where the guard found secrets in them.
    pub redacted: Option<Value>,
}

impl From<Verdict> for GuardOutcome {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, evidence: None, redacted: None }
    }
}

/// How much of a tool's output a guard wants to see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReviewMode {
    /// None.
    #[default]
    Nothing,
    /// Each value and each chunk on its own.
    EachChunk,
    /// All of it at once: a stream is held back until it ends.
    Whole,
}

/// What a guard says about output.
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    /// It may leave.
    Pass,
    /// It may leave, and the receipt notes this about it.
    Note(String),
    /// This leaves in its place.
    Replace(Value),
    /// It may not leave, for this reason.
    Block(String),
}

/// A guard. An error or a panic of a guard is a denial in its name; so is work that it charges to
/// the call and that the call may not cause. A guard that charged too much is asked once more, with
/// more to charge.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Its name, which stands in every receipt that it had a say in.
    fn name(&self) -> &str;

    /// Whether the call may go on.
    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String>;

    /// What a receipt may keep of the arguments of a call that was denied before any guard was
    /// asked; none for all of them.
    fn redact(&self, _arguments: &Value) -> Option<Value> {
        None
    }

    /// Why it would deny every call of a tool, for what the tool itself is; none where that depends
    /// on the call. Such a tool is not listed. What is looked at is charged; where that is too much,
    /// there is nothing to say.
    fn unusable(&self, _server_id: &str, _tool: &ToolDefinition, _work: &Work) -> Option<String> {
        None
    }

    /// How much of the output it wants to see.
    fn review_mode(&self) -> ReviewMode {
        ReviewMode::Nothing
    }

    /// Whether this output may leave.
    async fn review(&self, _input: &GuardInput<'_>, _output: &Value) -> Result<Review, String> {
        Ok(Review::Pass)
    }
}
