//! TLS with certificates of our own: which server is trusted, and who we are.

use std::sync::Arc;
use std::time::Duration;

use chio_net::client::{
    Certificates, ClientError, ClientIdentity, ClientOptions, HttpClient, Limits, Phase, Request,
    Roots,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, ExtendedKeyUsagePurpose,
    IsCa, KeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::server::{Server, answer, local, ok, raw_server, stalled_server, tasks, until_tasks};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn certify(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> CertifiedKey<KeyPair> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let signing_key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&signing_key, &self.0).unwrap();
        CertifiedKey { cert, signing_key }
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::Only(Certificates::from_pem(self.0.pem().as_bytes()).unwrap())
    }

    /// A server that shows a certificate for a name, and asks for one of this authority if told.
    pub(crate) fn acceptor(&self, name: &str, clients: Option<&Self>) -> TlsAcceptor {
        let own = self.certify(name, ExtendedKeyUsagePurpose::ServerAuth);
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

    fn identity(&self) -> ClientIdentity {
        let own = self.certify("client.example", ExtendedKeyUsagePurpose::ClientAuth);
        let key = own.signing_key.serialize_pem();
        ClientIdentity::from_pem(own.cert.pem().as_bytes(), key.as_bytes()).unwrap()
    }
}

fn client(roots: Roots, identity: Option<ClientIdentity>) -> HttpClient {
    HttpClient::new(ClientOptions { roots, identity, ..local() }).unwrap()
}

fn https(server: &Server, host: &str) -> String {
    format!("https://{host}:{}/", server.address.port())
}

fn reason(outcome: Result<(), ClientError>) -> String {
    match outcome {
        Err(ClientError::Tls { reason, .. }) => reason,
        other => panic!("expected an error of TLS, found {other:?}"),
    }
}

#[tokio::test]
async fn a_server_of_a_trusted_authority_is_believed_and_no_other() {
    let (trusted, other) = (Authority::new(), Authority::new());
    let server =
        Server::start_at("127.0.0.1:0", Some(trusted.acceptor("127.0.0.1", None)), |_| ok("a"))
            .await;
    let url = https(&server, "127.0.0.1");
    let response = client(trusted.roots(), None).send(Request::get(url.clone())).await.unwrap();
    assert_eq!(response.body, "a");

    for roots in [other.roots(), Roots::System] {
        let outcome = client(roots, None).send(Request::get(url.clone())).await.map(drop);
        if outcome == Err(ClientError::NoRoots) {
            // A system without any certificates.
            continue;
        }
        let reason = reason(outcome);
        assert!(reason.starts_with("invalid peer certificate"), "{reason}");
    }
    let both = Certificates::from_pem(trusted.0.pem().as_bytes()).unwrap();
    let response = client(Roots::SystemAnd(both), None).send(Request::get(url)).await;
    assert_eq!(response.unwrap().body, "a");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    for (name, host, accepted) in [
        ("localhost", "localhost", true),
        ("localhost", "LOCALHOST.", true),
        ("localhost", "127.0.0.1", false),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.2", "127.0.0.1", false),
        ("other.example", "localhost", false),
    ] {
        let acceptor = authority.acceptor(name, None);
        let server = Server::start_at("127.0.0.1:0", Some(acceptor), |_| ok("a")).await;
        let request = Request::get(https(&server, host));
        let outcome = client(authority.roots(), None).send(request).await.map(drop);
        match accepted {
            true => assert_eq!(outcome, Ok(()), "{name} {host}"),
            false => assert!(reason(outcome).contains("not valid for name"), "{name} {host}"),
        }
        assert_eq!(server.requests().len(), usize::from(accepted));
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let (servers, clients, others) = (Authority::new(), Authority::new(), Authority::new());
    let acceptor = servers.acceptor("127.0.0.1", Some(&clients));
    let server = Server::start_at("127.0.0.1:0", Some(acceptor), |_| ok("a")).await;
    let url = https(&server, "127.0.0.1");
    for (identity, accepted) in
        [(Some(clients.identity()), true), (Some(others.identity()), false), (None, false)]
    {
        let outcome = client(servers.roots(), identity).send(Request::get(url.clone())).await;
        assert_eq!(outcome.is_ok(), accepted, "{outcome:?}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_refused() {
    let authority = Authority::new();
    let plain = Server::start(|_| ok("plain")).await;
    let place = plain.url("/");
    let server =
        Server::start_at("127.0.0.1:0", Some(authority.acceptor("127.0.0.1", None)), move |_| {
            answer(302, &[("location", &place)], "")
        })
        .await;
    let request = Request::get(https(&server, "127.0.0.1"));
    let outcome = client(authority.roots(), None).send(request).await.map(drop);
    assert_eq!(outcome, Err(ClientError::Downgrade));
    assert_eq!(plain.connections(), 0);
}

#[tokio::test]
async fn our_certificate_is_not_shown_to_whom_a_redirect_names() {
    let ca = Authority::new();
    let acceptor = ca.acceptor("127.0.0.1", Some(&ca));
    let internal = Server::start_at("127.0.0.1:0", Some(acceptor), |_| ok("secret")).await;
    let acceptor = ca.acceptor("127.0.0.1", None);
    let to = https(&internal, "127.0.0.1");
    let door = Server::start_at("127.0.0.1:0", Some(acceptor), move |seen| {
        answer(307, &[("location", if seen.path == "/own" { "/end" } else { &to })], "")
    })
    .await;
    let client = client(ca.roots(), Some(ca.identity()));
    let refused = Err(ClientError::OtherOrigin { carried: "a client certificate" });
    // The way within the origin ends at the same refusal, one redirect later.
    for path in ["", "own"] {
        let url = format!("{}{path}", https(&door, "127.0.0.1"));
        assert_eq!(client.send(Request::get(url)).await.map(drop), refused);
    }
    assert_eq!(door.requests().len(), 3);
    assert_eq!(internal.connections(), 0);
}

#[tokio::test]
async fn a_server_that_stops_reading_loses_an_encrypted_connection_too() {
    let ca = Authority::new();
    let address = stalled_server(Some(ca.acceptor("127.0.0.1", None))).await;
    let limits = Limits { total: Duration::from_secs(1), ..Limits::default() };
    let client = HttpClient::new(ClientOptions { roots: ca.roots(), limits, ..local() }).unwrap();
    let before = tasks();
    let request = Request::post_json(format!("https://{address}/"), vec![b'x'; 32 << 20]);
    let outcome = client.send(request).await.map(drop);
    assert_eq!(outcome, Err(ClientError::TimedOut(Phase::Response)));
    until_tasks(before).await;
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_given_up() {
    let url = raw_server(|_| async {}).await.replace("http:", "https:");
    let limits = Limits { connect: Duration::from_millis(150), ..Limits::default() };
    let roots = Authority::new().roots();
    let client = HttpClient::new(ClientOptions { roots, limits, ..local() }).unwrap();
    let outcome = client.send(Request::get(url)).await.map(drop);
    assert_eq!(outcome, Err(ClientError::TimedOut(Phase::Connect)));
}

#[test]
fn what_cannot_be_used_is_refused_without_repeating_it() {
    let authority = Authority::new();
    let own = authority.certify("a.example", ExtendedKeyUsagePurpose::ClientAuth);
    let other = KeyPair::generate().unwrap().serialize_pem();
    let pem = own.cert.pem();
    for bad in ["", "SECRET", "-----BEGIN CERTIFICATE-----\nSECRET*\n-----END CERTIFICATE-----\n"] {
        let error = Certificates::from_pem(bad.as_bytes()).unwrap_err();
        assert!(!error.to_string().contains("SECRET"));
        let error = ClientIdentity::from_pem(pem.as_bytes(), bad.as_bytes()).unwrap_err();
        assert!(!error.to_string().contains("SECRET"));
    }
    let mixed = ClientIdentity::from_pem(pem.as_bytes(), other.as_bytes()).unwrap();
    assert!(!format!("{mixed:?}").contains("PRIVATE"));
    let options = ClientOptions { roots: authority.roots(), identity: Some(mixed), ..local() };
    let error = HttpClient::new(options).unwrap_err().to_string();
    assert!(error.starts_with("expected a client certificate and the key"), "{error}");
}
