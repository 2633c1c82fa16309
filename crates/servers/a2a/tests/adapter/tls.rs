//! Certificates of made-up authorities.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, ExtendedKeyUsagePurpose,
    IsCa, KeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    fn certify(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> CertifiedKey<KeyPair> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let signing_key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&signing_key, &self.0).unwrap();
        CertifiedKey { cert, signing_key }
    }

    /// A certificate and its key for a client, in PEM.
    pub(crate) fn client(&self) -> (String, String) {
        let own = self.certify("client.example", ExtendedKeyUsagePurpose::ClientAuth);
        (own.cert.pem(), own.signing_key.serialize_pem())
    }

    /// A server at 127.0.0.1 that may ask for a certificate of some authority.
    pub(crate) fn acceptor(&self, clients: Option<&Self>) -> TlsAcceptor {
        let own = self.certify("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut store = RootCertStore::empty();
                store.add(clients.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(store.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
