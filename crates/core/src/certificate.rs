//! Kernel certificates: an authority's statement that a key is a kernel's, and which log it writes.

use serde::{Deserialize, Serialize};

use crate::checkpoint::log_id;
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::signed::{ArtifactError, Signed, malformed, signed_by};

/// The schema that every certificate carries.
pub const CERTIFICATE_SCHEMA: &str = "chio.kernel_certificate.v1";

/// An authority's statement about a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCertificate {
    /// The key that signs.
    pub authority: PublicKey,
    /// When it was signed, in Unix seconds.
    pub issued_at: u64,
    /// The kernel's key.
    pub kernel_key: PublicKey,
    /// The log that the kernel writes: [`log_id`] of its key.
    pub log_id: String,
    /// [`CERTIFICATE_SCHEMA`].
    pub schema: String,
    /// The authority's signature.
    pub signature: Signature,
    /// The store that the log is in.
    pub store_id: String,
}

signed_by!(KernelCertificate, authority, |certificate| certificate.check());

impl KernelCertificate {
    /// Certifies a kernel key.
    ///
    /// # Errors
    /// When the certificate has no canonical form.
    pub fn issue(
        authority: &Keypair,
        kernel_key: PublicKey,
        store_id: impl Into<String>,
        issued_at: u64,
    ) -> Result<Self, ArtifactError> {
        let certificate = Self {
            authority: authority.public_key().clone(),
            issued_at,
            log_id: log_id(&kernel_key),
            kernel_key,
            schema: CERTIFICATE_SCHEMA.to_owned(),
            signature: Signature::blank(),
            store_id: store_id.into(),
        };
        certificate.signed(authority)
    }

    fn check(&self) -> Result<(), ArtifactError> {
        if self.schema != CERTIFICATE_SCHEMA {
            let found = &self.schema;
            return Err(malformed(format!("expected `{CERTIFICATE_SCHEMA}`, found `{found}`")));
        }
        if self.kernel_key == self.authority {
            return Err(malformed(
                "expected a kernel with a key of its own, found the authority's",
            ));
        }
        if self.log_id != log_id(&self.kernel_key) {
            return Err(malformed("expected the log id of the certified key, found another"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::KernelCertificate;
    use crate::crypto::Keypair;
    use crate::signed::Signed;

    fn certificate() -> KernelCertificate {
        let (authority, kernel) = (Keypair::from_seed(&[1; 32]), Keypair::from_seed(&[7; 32]));
        KernelCertificate::issue(&authority, kernel.public_key().clone(), "store-1", 9).unwrap()
    }

    #[test]
    fn a_certificate_holds_until_it_is_changed() {
        assert_eq!(certificate().check_signature(), Ok(()));
        let other = Keypair::from_seed(&[8; 32]).public_key().clone();
        let changes: [fn(&mut KernelCertificate, &str); 3] = [
            |certificate, _| certificate.store_id.push('x'),
            |certificate, _| certificate.issued_at += 1,
            |certificate, _| certificate.log_id.push('x'),
        ];
        for change in changes {
            let mut changed = certificate();
            change(&mut changed, "");
            assert!(changed.check_signature().is_err());
        }
        let mut changed = certificate();
        changed.kernel_key = other;
        assert!(changed.check_signature().is_err());
    }
}
