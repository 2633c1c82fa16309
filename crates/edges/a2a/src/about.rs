//! What a caller says beside a message, in `metadata.chio`.

use chio_core::capability::{CapabilityToken, DpopProof};
use chio_core::crypto::PublicKey;
use chio_core::governance::{
    CallChainContext, ContinuationToken, GovernedTransactionIntent, ModelMetadata,
};
use chio_core::hash::sha256_hex;
use chio_core::strict;
use chio_cross_protocol::CrossProtocolCapabilityRef;
use chio_net::door::Presented;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::Fault;

/// The member of metadata that is Chio's.
const CHIO: &str = "chio";

/// What a caller says beside a message. What the kernel has to judge is not judged here.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// The skill that is called.
    pub(crate) skill: Option<String>,
    /// A capability.
    pub(crate) presented: Option<Presented>,
    pub(crate) proof: Option<Box<DpopProof>>,
    pub(crate) capability_ref: Option<CrossProtocolCapabilityRef>,
    pub(crate) model: Option<Box<ModelMetadata>>,
    intent: Option<Box<GovernedTransactionIntent>>,
    call_chain: Option<CallChainContext>,
    /// The continuation token, as it came, and who has signed it.
    continuation: Option<(Value, PublicKey)>,
}

impl About {
    /// Reads the metadata of params and of a message; what both say must be the same.
    pub(crate) fn read(
        params: Option<&Map<String, Value>>,
        message: Option<&Map<String, Value>>,
    ) -> Result<Self, Fault> {
        let mut said = Said { params: chio_of(params)?, message: chio_of(message)? };
        if said.params.is_none() && said.message.is_none() {
            return Ok(Self::default());
        }
        for name in ["approvalToken", "approvalTokens", "executionNonce"] {
            if said.take(name)?.is_some() {
                // Whoever sends one of these relies on its being looked at.
                return Err(Fault::params(format!("`metadata.chio.{name}` is not supported")));
            }
        }
        let skill = match said.take("targetSkillId")? {
            None | Some(Value::Null) => None,
            Some(Value::String(skill)) if !skill.is_empty() && skill.trim() == skill => Some(skill),
            Some(_) => {
                let expected = "expected `targetSkillId` to be a name without blanks around it";
                return Err(Fault::params(expected));
            }
        };
        let presented = said.take("capability")?.map(capability).transpose()?;
        let model: Option<ModelMetadata> = said.read("modelMetadata")?;
        let continuation = said.take("continuation")?;
        let token: Option<ContinuationToken> =
            continuation.clone().map(|value| read("continuation", value)).transpose()?;
        let call_chain: Option<CallChainContext> = said.read("callChain")?;
        let intent: Option<GovernedTransactionIntent> = said.read("governedIntent")?;
        if intent.is_some() && (call_chain.is_some() || token.is_some()) {
            let expected = "expected `governedIntent` or where the call comes from, found both";
            return Err(Fault::params(expected));
        }
        Ok(Self {
            skill,
            presented,
            proof: said.read::<DpopProof>("dpop")?.map(Box::new),
            capability_ref: said.read("capabilityRef")?,
            // SECURITY: whatever class the client claims for it, it is the client's own word.
            model: model.map(|model| Box::new(model.asserted())),
            intent: intent.map(Box::new),
            call_chain: call_chain.or_else(|| token.as_ref().map(|it| it.context.clone())),
            continuation: continuation.zip(token.map(|token| token.signer)),
        })
    }

    /// What the caller means to do, if it said so or where the call comes from. The word of a signer
    /// that does not count here is left out: what it was to prove is then the caller's own word.
    pub(crate) fn take_intent(
        &mut self,
        task: &str,
        (server, tool): (&str, &str),
        counts: impl Fn(&PublicKey) -> bool,
    ) -> Option<Box<GovernedTransactionIntent>> {
        if let Some(intent) = self.intent.take() {
            return Some(intent);
        }
        let call_chain = self.call_chain.take()?;
        let purpose = format!("A2A message to `{tool}`");
        let mut intent =
            GovernedTransactionIntent::new(format!("a2a-{task}"), server, tool, purpose);
        intent.call_chain = Some(call_chain);
        let continuation = self.continuation.take().filter(|(_, signer)| counts(signer));
        intent.context = continuation.map(|(token, _)| json!({"callChainContinuation": token}));
        Some(Box::new(intent))
    }
}

/// What is said in either place.
struct Said<'a> {
    params: Option<&'a Map<String, Value>>,
    message: Option<&'a Map<String, Value>>,
}

impl Said<'_> {
    fn take(&mut self, name: &str) -> Result<Option<Value>, Fault> {
        let of = |chio: Option<&Map<String, Value>>| chio.and_then(|it| it.get(name)).cloned();
        match (of(self.params), of(self.message)) {
            (Some(one), Some(other)) if one != other => Err(Fault::params(format!(
                "expected one `metadata.chio.{name}`, found two that differ"
            ))),
            (Some(found), _) | (None, Some(found)) => Ok(Some(found)),
            (None, None) => Ok(None),
        }
    }

    fn read<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>, Fault> {
        self.take(name)?.map(|value| read(name, value)).transpose()
    }
}

fn read<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, Fault> {
    // The error could repeat what was sent.
    strict::from_value(value).map_err(|_| {
        Fault::params(format!("expected `metadata.chio.{name}` in its published form"))
    })
}

/// The member `chio` of metadata; null is absent.
fn chio_of(metadata: Option<&Map<String, Value>>) -> Result<Option<&Map<String, Value>>, Fault> {
    match metadata.and_then(|metadata| metadata.get(CHIO)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(chio)) => Ok(Some(chio)),
        Some(_) => Err(Fault::params("expected `metadata.chio` to be an object")),
    }
}

/// A capability: the token, or the text of its JSON.
fn capability(value: Value) -> Result<Presented, Fault> {
    let wrong = || Fault::params("expected `metadata.chio.capability` to be a capability");
    match value {
        Value::String(text) => Presented::read(text.as_bytes()).ok_or_else(wrong),
        object @ Value::Object(_) => {
            let hash = sha256_hex(object.to_string().as_bytes());
            let token: CapabilityToken = strict::from_value(object).map_err(|_| wrong())?;
            Ok(Presented { token: token.into(), hash })
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
