//! Whom to trust over TLS, and who to be.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::error::ClientError;

/// Certificates, as a PEM file has them.
#[derive(Clone)]
pub struct Certificates(Vec<CertificateDer<'static>>);

impl Certificates {
    /// Reads every certificate of a PEM text.
    ///
    /// # Errors
    /// When there is none, or one is broken.
    pub fn from_pem(pem: &[u8]) -> Result<Self, ClientError> {
        let wrong = ClientError::Credentials { expected: "certificates in PEM form" };
        match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
            Ok(list) if !list.is_empty() => Ok(Self(list)),
            _ => Err(wrong),
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({})", self.0.len())
    }
}

/// Who is trusted to say which server is which.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Whom the system trusts.
    #[default]
    System,
    /// Whom the system trusts, and these.
    SystemAnd(Certificates),
    /// These alone.
    Only(Certificates),
}

/// A certificate to show to servers that ask for one (mutual TLS).
pub struct ClientIdentity {
    chain: Certificates,
    key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads a certificate with its chain, and its key.
    ///
    /// # Errors
    /// When one of them is missing or broken.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ClientError> {
        let chain = Certificates::from_pem(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| ClientError::Credentials { expected: "a private key in PEM form" })?;
        Ok(Self { chain, key })
    }
}

impl Clone for ClientIdentity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("chain", &self.chain).finish_non_exhaustive()
    }
}

/// How to speak TLS; none when there is no root certificate to trust.
pub(super) fn config(
    roots: &Roots,
    identity: Option<&ClientIdentity>,
) -> Result<Option<Arc<ClientConfig>>, ClientError> {
    let store = store(roots)?;
    if store.is_empty() {
        return Ok(None);
    }
    let unusable = |_| ClientError::Credentials { expected: "a usable TLS configuration" };
    // Named here and not process-wide: no ambient state.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_root_certificates(store);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(ClientIdentity { chain, key }) => {
            let expected = "a client certificate and the key that belongs to it";
            builder
                .with_client_auth_cert(chain.0.clone(), key.clone_key())
                .map_err(|_| ClientError::Credentials { expected })?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Arc::new(config)))
}

fn store(roots: &Roots) -> Result<RootCertStore, ClientError> {
    let (system, own) = match roots {
        Roots::System => (true, None),
        Roots::SystemAnd(own) => (true, Some(own)),
        Roots::Only(own) => (false, Some(own)),
    };
    let mut store = RootCertStore::empty();
    if system {
        // Systems carry certificates that cannot be read; one of them is no reason to trust none.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for certificate in own.into_iter().flat_map(|own| &own.0) {
        store
            .add(certificate.clone())
            .map_err(|_| ClientError::Credentials { expected: "certificates of authorities" })?;
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::{Certificates, Roots, store};

    #[test]
    fn roots_of_our_own_are_trusted_beside_or_instead_of_the_systems() {
        let own = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let own = Certificates::from_pem(own.cert.pem().as_bytes()).unwrap();
        let system = store(&Roots::System).unwrap().len();
        assert_eq!(store(&Roots::Only(own.clone())).unwrap().len(), 1);
        assert_eq!(store(&Roots::SystemAnd(own)).unwrap().len(), system + 1);
    }
}
