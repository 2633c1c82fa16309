//! A kernel's signed permission to run one call that it has checked.

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::signed::{ArtifactError, require_schema};
use crate::window::{Validity, WindowError};

/// A signed nonce. The key is not part of it: a kernel knows its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionNonce {
    /// What is signed.
    pub nonce: NonceBody,
    /// The kernel's signature over it.
    pub signature: Signature,
}

/// The signed part of an [`ExecutionNonce`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonceBody {
    /// [`ExecutionNonce::SCHEMA`].
    pub schema: String,
    /// Unique: what single use is counted by.
    pub nonce_id: String,
    /// The first second in which it holds, in Unix time.
    pub issued_at: i64,
    /// The first second in which it no longer holds, in Unix time.
    pub expires_at: i64,
    /// The call it is good for.
    pub bound_to: NonceBinding,
    /// The budget hold that waits for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_hold_id: Option<String>,
    /// The request that took the hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserving_request_id: Option<String>,
}

/// The call that a nonce is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonceBinding {
    /// The subject key of the caller.
    pub subject_id: String,
    /// The request.
    pub request_id: String,
    /// The capability that it uses.
    pub capability_id: String,
    /// The server that runs the tool.
    pub tool_server: String,
    /// The tool.
    pub tool_name: String,
    /// The hash of its parameters.
    pub parameter_hash: String,
}

/// The first check that a nonce did not pass; the order is that of the variants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NonceError {
    /// It is not a nonce of this kernel.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// It does not hold now.
    #[error("the nonce does not hold now: {0}")]
    Window(#[from] WindowError),
    /// It is good for another call.
    #[error("expected a nonce whose `{member}` is `{expected}`, found `{found}`")]
    Binding {
        /// The member that differs.
        member: &'static str,
        /// The call's.
        expected: String,
        /// The nonce's.
        found: String,
    },
}

impl ExecutionNonce {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "chio.execution_nonce.v1";

    /// The seconds that a nonce holds.
    pub const LIFETIME: i64 = 30;

    /// Signs a nonce with the kernel's key.
    ///
    /// # Errors
    /// When the schema is another one.
    pub fn sign(nonce: NonceBody, key: &Keypair) -> Result<Self, ArtifactError> {
        require_schema(Self::SCHEMA, &nonce.schema)?;
        let signature = key.sign(&canonical::to_vec(&nonce)?);
        Ok(Self { nonce, signature })
    }

    /// Checks that `kernel` has signed this nonce.
    ///
    /// # Errors
    /// When it has not, or the schema is another one.
    pub fn check_signature(&self, kernel: &PublicKey) -> Result<(), ArtifactError> {
        require_schema(Self::SCHEMA, &self.nonce.schema)?;
        Ok(kernel.check(&canonical::to_vec(&self.nonce)?, &self.signature)?)
    }

    /// Checks that this nonce is good for `call` at `now`. Single use is for the caller to
    /// enforce.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check(
        &self,
        kernel: &PublicKey,
        call: &NonceBinding,
        now: u64,
    ) -> Result<(), NonceError> {
        self.check_signature(kernel)?;
        self.nonce.validity().check(now)?;
        self.nonce.bound_to.check(call)
    }
}

impl NonceBody {
    /// When the nonce is good. A time before 1970 is as long gone as 1970 itself.
    fn validity(&self) -> Validity {
        let [issued_at, expires_at] =
            [self.issued_at, self.expires_at].map(|time| u64::try_from(time).unwrap_or(0));
        Validity { issued_at, expires_at }
    }
}

impl NonceBinding {
    fn check(&self, call: &Self) -> Result<(), NonceError> {
        let members = [
            ("subject_id", &call.subject_id, &self.subject_id),
            ("request_id", &call.request_id, &self.request_id),
            ("capability_id", &call.capability_id, &self.capability_id),
            ("tool_server", &call.tool_server, &self.tool_server),
            ("tool_name", &call.tool_name, &self.tool_name),
            ("parameter_hash", &call.parameter_hash, &self.parameter_hash),
        ];
        let differing = members.into_iter().find(|(_, expected, found)| expected != found);
        let Some((member, expected, found)) = differing else { return Ok(()) };
        Err(NonceError::Binding { member, expected: expected.clone(), found: found.clone() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::governance::tests::{key, text};
    use crate::strict;

    fn golden_nonce() -> ExecutionNonce {
        strict::from_slice(text("/execution_nonce/wire_canonical").as_bytes()).unwrap()
    }

    fn check(nonce: &ExecutionNonce, now: u64) -> Result<(), NonceError> {
        nonce.check(key(7).public_key(), &golden_nonce().nonce.bound_to, now)
    }

    #[test]
    fn the_golden_nonce_keeps_its_bytes_and_its_signature() {
        let nonce = golden_nonce();
        let wire = text("/execution_nonce/wire_canonical");
        assert_eq!(canonical::to_string(&nonce).unwrap(), wire);
        assert_eq!(
            canonical::to_string(&nonce.nonce).unwrap(),
            text("/execution_nonce/signing_input_canonical")
        );
        assert_eq!(nonce.check_signature(key(7).public_key()), Ok(()));
        assert_eq!(ExecutionNonce::sign(nonce.nonce.clone(), &key(7)), Ok(nonce));
    }

    #[test]
    fn reservations_are_signed_when_they_are_there() {
        let mut value: Value =
            serde_json::from_str(&text("/execution_nonce/wire_canonical")).unwrap();
        value["nonce"]["reserved_hold_id"] = json!("hold-1");
        value["nonce"]["reserving_request_id"] = json!("req-0");
        let nonce = ExecutionNonce::deserialize(&value).unwrap();
        assert_eq!(canonical::to_vec(&nonce).unwrap(), canonical::to_vec(&value).unwrap());
        assert!(nonce.check_signature(key(7).public_key()).is_err());
    }

    #[test]
    fn a_nonce_holds_within_its_window() {
        let nonce = golden_nonce();
        assert_eq!(nonce.nonce.expires_at - nonce.nonce.issued_at, ExecutionNonce::LIFETIME);
        for (now, good) in [
            (1_700_000_099, false),
            (1_700_000_100, true),
            (1_700_000_129, true),
            (1_700_000_130, false),
        ] {
            let outcome = check(&nonce, now);
            assert_eq!(outcome.is_ok(), good, "at {now}");
            assert!(matches!(outcome, Ok(()) | Err(NonceError::Window(_))));
        }
    }

    /// A member by its name.
    type Member = (&'static str, fn(&mut NonceBinding) -> &mut String);

    #[test]
    fn a_nonce_is_good_for_its_own_call_only() {
        let members: [Member; 6] = [
            ("subject_id", |call| &mut call.subject_id),
            ("request_id", |call| &mut call.request_id),
            ("capability_id", |call| &mut call.capability_id),
            ("tool_server", |call| &mut call.tool_server),
            ("tool_name", |call| &mut call.tool_name),
            ("parameter_hash", |call| &mut call.parameter_hash),
        ];
        for (name, select) in members {
            let mut nonce = golden_nonce().nonce;
            select(&mut nonce.bound_to).push('x');
            let nonce = ExecutionNonce::sign(nonce, &key(7)).unwrap();
            let Err(NonceError::Binding { member, expected, found }) = check(&nonce, 1_700_000_100)
            else {
                panic!("another {name} was accepted");
            };
            assert_eq!((member, found), (name, expected + "x"));
        }
    }

    #[test]
    fn another_key_another_content_and_another_schema_are_refused() {
        let refused = |nonce: &ExecutionNonce, kernel: u8| {
            nonce.check_signature(key(kernel).public_key()).is_err()
        };
        assert!(refused(&golden_nonce(), 1));
        let mut changed = golden_nonce();
        changed.nonce.expires_at += 1;
        assert!(refused(&changed, 7));
        assert!(matches!(check(&changed, 1_700_000_100), Err(NonceError::Artifact(_))));

        let mut other = golden_nonce().nonce;
        other.schema = "chio.execution_nonce.v2".to_owned();
        assert_eq!(
            ExecutionNonce::sign(other, &key(7)).unwrap_err().to_string(),
            "expected schema `chio.execution_nonce.v1`, found `chio.execution_nonce.v2`"
        );
    }
}
