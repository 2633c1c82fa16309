//! Chio's own metadata of a call: what a client may send beside the arguments.

use chio_core::capability::{CapabilityToken, DpopProof, PresentedToken};
use chio_core::crypto::PublicKey;
use chio_core::governance::{
    ApprovalToken, CallChainContext, ContinuationToken, GovernedTransactionIntent, ModelMetadata,
};
use chio_cross_protocol::{CrossProtocolCapabilityRef, MAX_ORIGIN_ID};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::auth::parse_capability;

/// The name of a member, and another name that may be used instead.
pub type Member = (&'static str, Option<&'static str>);

/// The client's stable id of the call.
const REQUEST_ID: &str = "chioRequestId";

/// The members that a protocol has for metadata.
#[derive(Debug)]
pub struct MetadataLayout {
    /// The path of the object that holds the members, for error messages.
    pub path: &'static str,
    /// The members that are read, of those that [`CallMetadata::read`] knows. Others are ignored.
    pub members: &'static [Member],
    /// The members that are refused.
    pub unsupported: &'static [Member],
}

/// Why metadata is refused. Never repeats a value that was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MetadataError(pub String);

/// Objects that carry metadata. A member of both must have the same value in both.
#[derive(Debug, Clone, Copy)]
pub struct MetadataSource<'a> {
    /// The members that are read.
    pub layout: &'static MetadataLayout,
    /// The objects.
    pub objects: [Option<&'a Map<String, Value>>; 2],
}

impl<'a> MetadataSource<'a> {
    /// Refuses members that are not supported.
    ///
    /// # Errors
    /// When there is one.
    pub fn refuse_unsupported(&self) -> Result<(), MetadataError> {
        for (name, alias) in self.layout.unsupported {
            let mut is_present = self.member(name)?.is_some();
            if let Some(alias) = alias {
                is_present |= self.member(alias)?.is_some();
            }
            if is_present {
                // SECURITY: a client that sends one of these relies on its being checked.
                let path = self.layout.path;
                return Err(MetadataError(format!("`{path}.{name}` is not supported")));
            }
        }
        Ok(())
    }

    /// Parses a member that the layout lists; other members are absent.
    ///
    /// # Errors
    /// When it is malformed, or there are two that differ.
    pub fn parse<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        // SECURITY: the parser's own message could repeat what was sent.
        T::deserialize(value).map(Some).map_err(|_| self.expected(name, "in its published form"))
    }

    fn expected(&self, name: &str, what: &str) -> MetadataError {
        MetadataError(format!("expected `{}.{name}` {what}", self.layout.path))
    }

    fn member(&self, name: &str) -> Result<Option<&'a Value>, MetadataError> {
        let path = self.layout.path;
        match self.objects.map(|object| object.and_then(|object| object.get(name))) {
            [Some(one), Some(other)] if one != other => {
                let message = format!("expected one `{path}.{name}`, found two that differ");
                Err(MetadataError(message))
            }
            [one, other] => Ok(one.or(other)),
        }
    }

    /// The value of a member that the layout lists, under either of its names.
    fn value(&self, name: &str) -> Result<Option<&'a Value>, MetadataError> {
        let listed = self.layout.members.iter().find(|(listed, _)| *listed == name);
        let Some((_, alias)) = listed else { return Ok(None) };
        let value = self.member(name)?;
        let Some(alias) = alias else { return Ok(value) };
        match (value, self.member(alias)?) {
            (Some(_), Some(_)) => {
                let what = format!("or `{}.{alias}`, found both", self.layout.path);
                Err(self.expected(name, &what))
            }
            (one, other) => Ok(one.or(other)),
        }
    }

    fn request_id(&self) -> Result<Option<String>, MetadataError> {
        let Some(value) = self.value(REQUEST_ID)? else { return Ok(None) };
        let id = value.as_str().filter(|id| (1..=MAX_ORIGIN_ID).contains(&id.len()));
        let wrong = || self.expected(REQUEST_ID, &format!("of 1 to {MAX_ORIGIN_ID} bytes"));
        id.map(|id| Some(id.to_owned())).ok_or_else(wrong)
    }

    fn target(&self) -> Result<Option<String>, MetadataError> {
        match self.value("targetSkillId")? {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(name)) if !name.is_empty() && name.trim() == name => {
                Ok(Some(name.clone()))
            }
            Some(_) => {
                let expected = "expected `targetSkillId` to be a name without blanks around it";
                Err(MetadataError(expected.to_owned()))
            }
        }
    }

    /// A capability: the token, or the text of its JSON.
    fn capability(&self) -> Result<Option<PresentedToken>, MetadataError> {
        let Some(value) = self.value("capability")? else { return Ok(None) };
        let presented = match value {
            Value::String(text) => parse_capability(text.as_bytes()),
            Value::Object(_) => CapabilityToken::deserialize(value).ok().map(PresentedToken::from),
            _ => None,
        };
        presented.map(Some).ok_or_else(|| self.expected("capability", "to be a capability"))
    }
}

/// The metadata of a call. Its form is checked here, and what it claims by the kernel.
#[derive(Debug, Default)]
pub struct CallMetadata {
    /// The client's stable id of the call, which receipts repeat.
    pub request_id: Option<String>,
    /// The tool or skill that is called, for protocols that do not name it elsewhere.
    pub target: Option<String>,
    /// A capability of the client's own.
    pub presented: Option<PresentedToken>,
    /// Proof that the client holds the key of its capability.
    pub proof: Option<Box<DpopProof>>,
    /// A reference to the capability that the call is made with.
    pub capability_ref: Option<CrossProtocolCapabilityRef>,
    /// The model that decided on the call, as the client asserts.
    pub model: Option<Box<ModelMetadata>>,
    /// What the client intends. See [`Self::take_intent`].
    pub intent: Option<Box<GovernedTransactionIntent>>,
    /// An approval of the call that [`Self::request_id`] names.
    pub approval: Option<Box<ApprovalToken>>,
    call_chain: Option<CallChainContext>,
    /// The continuation token as it was sent, and its signer.
    continuation: Option<(Value, PublicKey)>,
}

impl CallMetadata {
    /// Reads the fields that the layout of the source lists.
    ///
    /// # Errors
    /// When one of them is malformed, or two contradict each other.
    pub fn read(source: &MetadataSource<'_>) -> Result<Self, MetadataError> {
        if source.objects.iter().all(Option::is_none) {
            return Ok(Self::default());
        }
        let request_id = source.request_id()?;
        let target = source.target()?;
        let presented = source.capability()?;
        let model: Option<ModelMetadata> = source.parse("modelMetadata")?;
        let continuation = source.value("continuation")?.cloned();
        let token: Option<ContinuationToken> = source.parse("continuation")?;
        let call_chain: Option<CallChainContext> = source.parse("callChain")?;
        let intent: Option<GovernedTransactionIntent> = source.parse("governedIntent")?;
        if intent.is_some() && (call_chain.is_some() || token.is_some()) {
            let expected = "expected `governedIntent` or where the call comes from, found both";
            return Err(MetadataError(expected.to_owned()));
        }
        let approval: Option<ApprovalToken> = source.parse("approvalToken")?;
        if approval.is_some() && request_id.is_none() {
            // SECURITY: an approval names the call that it is for, and ids of a session repeat.
            return Err(source.expected(REQUEST_ID, "beside an approval, found none"));
        }
        Ok(Self {
            request_id,
            target,
            presented,
            proof: source.parse("dpop")?.map(Box::new),
            capability_ref: source.parse("capabilityRef")?,
            // SECURITY: whatever class the client claims for it, it is the client's own assertion.
            model: model.map(|model| Box::new(model.asserted())),
            intent: intent.map(Box::new),
            approval: approval.map(Box::new),
            call_chain: call_chain.or_else(|| token.as_ref().map(|it| it.context.clone())),
            continuation: continuation.zip(token.map(|token| token.signer)),
        })
    }

    /// What the client intends: the intent that it sent, or one that carries its call chain. A
    /// continuation whose signer is not trusted is left out, and the call chain is then the
    /// client's own assertion.
    pub fn take_intent(
        &mut self,
        id: String,
        server: &str,
        tool: &str,
        purpose: String,
        is_trusted: impl Fn(&PublicKey) -> bool,
    ) -> Option<Box<GovernedTransactionIntent>> {
        if let Some(intent) = self.intent.take() {
            return Some(intent);
        }
        let call_chain = self.call_chain.take()?;
        let mut intent = GovernedTransactionIntent::new(id, server, tool, purpose);
        intent.call_chain = Some(call_chain);
        let continuation = self.continuation.take().filter(|(_, signer)| is_trusted(signer));
        intent.context = continuation.map(|(token, _)| json!({"callChainContinuation": token}));
        Some(Box::new(intent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LAYOUT: MetadataLayout = MetadataLayout {
        path: "_meta",
        members: &[
            ("chioRequestId", None),
            ("modelMetadata", Some("chioModelMetadata")),
            ("approvalToken", Some("chioApprovalToken")),
        ],
        unsupported: &[("executionNonce", Some("chioExecutionNonce"))],
    };

    fn read(one: &Value, other: &Value) -> Result<CallMetadata, String> {
        let objects = [one.as_object(), other.as_object()];
        let source = MetadataSource { layout: &LAYOUT, objects };
        let metadata = CallMetadata::read(&source).map_err(|error| error.0)?;
        source.refuse_unsupported().map_err(|error| error.0)?;
        Ok(metadata)
    }

    #[test]
    fn a_member_has_one_name_and_one_value() {
        let id = |text: &str| json!({"chioRequestId": text});
        assert_eq!(read(&id("a"), &id("a")).unwrap().request_id.as_deref(), Some("a"));
        assert_eq!(read(&Value::Null, &id("a")).unwrap().request_id.as_deref(), Some("a"));
        let differ = "expected one `_meta.chioRequestId`, found two that differ";
        assert_eq!(read(&id("a"), &id("b")).unwrap_err(), differ);
        let both = json!({"modelMetadata": {}, "chioModelMetadata": {}});
        let expected = "expected `_meta.modelMetadata` or `_meta.chioModelMetadata`, found both";
        assert_eq!(read(&both, &Value::Null).unwrap_err(), expected);
    }

    #[test]
    fn members_that_are_malformed_or_not_supported_are_refused_and_others_ignored() {
        for (object, expected) in [
            (json!({"chioRequestId": ""}), "expected `_meta.chioRequestId` of 1 to"),
            (json!({"chioModelMetadata": 1}), "expected `_meta.modelMetadata` in its published"),
            (json!({"executionNonce": 1}), "`_meta.executionNonce` is not supported"),
            (json!({"chioExecutionNonce": 1}), "`_meta.executionNonce` is not supported"),
        ] {
            let error = read(&object, &Value::Null).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let ignored = json!({"requestId": "a", "capability": 1, "governedIntent": 1});
        let metadata = read(&ignored, &Value::Null).unwrap();
        assert!(metadata.request_id.is_none() && metadata.intent.is_none());
    }
}
