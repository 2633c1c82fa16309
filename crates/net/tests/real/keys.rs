//! Keys that are fetched from a real server: when, how often, and what happens when it is down.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chio_net::client::{ClientError, ClientOptions, HttpClient, Limits};
use chio_net::jwt::{IssuerKeys, JwtError, JwtVerifier, KeysError, RefreshRules, discover};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::server::{Answer, Server, answer, client, local, raw_server};
use super::tls::Authority;
use super::tokens::{AUDIENCE, Key, NOW, claims, set_text};

const RULES: RefreshRules = RefreshRules { max_age: 100, interval: 10, max_stale: 500 };

/// An issuer whose keys and state can be changed.
#[derive(Clone)]
struct Issuer {
    server: Server,
    keys: Arc<Mutex<String>>,
    status: Arc<AtomicU16>,
    fetches: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start(keys: &[&Key]) -> Self {
        let (keys, status) = (Arc::new(Mutex::new(set_text(keys))), Arc::new(AtomicU16::new(200)));
        let fetches = Arc::new(AtomicUsize::new(0));
        let state = (Arc::clone(&keys), Arc::clone(&status), Arc::clone(&fetches));
        let server = Server::start(move |seen| {
            if seen.path == METADATA {
                let issuer = format!("http://{}", seen.headers["host"].to_str().unwrap());
                return leads_to(&issuer, &format!("{issuer}/jwks"));
            }
            state.2.fetch_add(1, Ordering::SeqCst);
            answer(state.1.load(Ordering::SeqCst), &[], state.0.lock().unwrap().clone())
        })
        .await;
        Self { server, keys, status, fetches }
    }

    fn verifier(&self) -> Arc<JwtVerifier> {
        Arc::new(verifier(client(Limits::default()), &self.server.url("")))
    }

    fn token(&self, key: &Key) -> String {
        token(key, &self.server.url(""))
    }

    fn set(&self, keys: &[&Key]) {
        *self.keys.lock().unwrap() = set_text(keys);
    }

    fn fail(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

/// Where the first metadata are that are asked for.
const METADATA: &str = "/.well-known/oauth-authorization-server";

/// Metadata of an issuer that has its keys here.
fn leads_to(issuer: &str, keys: &str) -> Answer {
    answer(200, &[], json!({"issuer": issuer, "jwks_uri": keys}).to_string())
}

fn verifier(client: HttpClient, issuer: &str) -> JwtVerifier {
    let keys = IssuerKeys::discovered(client, issuer, RULES);
    JwtVerifier::new([AUDIENCE]).with_issuer(issuer, keys).unwrap()
}

/// A token that is good for long.
fn token(key: &Key, issuer: &str) -> String {
    key.sign(&claims(&json!({"iss": issuer, "exp": NOW + 100_000})))
}

fn down(status: u16) -> Result<(), JwtError> {
    Err(JwtError::Keys(KeysError::Status { document: "keys", status }))
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_when_they_are_old() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (verifier, token) = (issuer.verifier(), issuer.token(&key));
    assert_eq!(issuer.fetches(), 0, "nothing is fetched before it is needed");
    for (after, fetches) in [(0, 1), (50, 1), (99, 1), (100, 2), (150, 2), (250, 3)] {
        verifier.verify(&token, NOW + after).await.unwrap();
        assert_eq!(issuer.fetches(), fetches, "{after}");
    }
}

#[tokio::test]
async fn a_new_key_is_found_and_invented_ones_do_not_flood_the_issuer() {
    let (old, new, invented) = (Key::ed("old"), Key::ed("new"), Key::ed("invented"));
    let issuer = Issuer::start(&[&old]).await;
    let verifier = issuer.verifier();
    verifier.verify(&issuer.token(&old), NOW).await.unwrap();
    for after in 0..10 {
        let outcome = verifier.verify(&issuer.token(&invented), NOW + after).await.map(drop);
        assert_eq!(outcome, Err(JwtError::UnknownKey));
    }
    assert_eq!(issuer.fetches(), 1, "within the interval nothing is fetched again");
    issuer.set(&[&old, &new]);
    verifier.verify(&issuer.token(&new), NOW + 10).await.unwrap();
    verifier.verify(&issuer.token(&old), NOW + 10).await.unwrap();
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn a_key_that_is_withdrawn_is_no_longer_believed() {
    let (old, new) = (Key::ed("old"), Key::ed("new"));
    let issuer = Issuer::start(&[&old]).await;
    let verifier = issuer.verifier();
    verifier.verify(&issuer.token(&old), NOW).await.unwrap();
    issuer.set(&[&new]);
    verifier.verify(&issuer.token(&old), NOW + 99).await.unwrap();
    let outcome = verifier.verify(&issuer.token(&old), NOW + 100).await.map(drop);
    assert_eq!(outcome, Err(JwtError::UnknownKey));
}

#[tokio::test]
async fn old_keys_are_kept_for_a_while_when_the_issuer_is_down() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (verifier, token) = (issuer.verifier(), issuer.token(&key));
    verifier.verify(&token, NOW).await.unwrap();
    issuer.fail(503);
    for after in [100, 105, 300, 500] {
        verifier.verify(&token, NOW + after).await.unwrap();
    }
    assert_eq!(issuer.fetches(), 4, "105 is within the interval of 100");
    assert_eq!(verifier.verify(&token, NOW + 501).await.map(drop), down(503));
    assert_eq!(verifier.verify(&token, NOW + 520).await.map(drop), down(503));
    issuer.fail(200);
    assert_eq!(verifier.verify(&token, NOW + 521).await.map(drop), down(503));
    verifier.verify(&token, NOW + 530).await.unwrap();
}

#[tokio::test]
async fn what_is_no_set_of_keys_replaces_none() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (verifier, token) = (issuer.verifier(), issuer.token(&key));
    verifier.verify(&token, NOW).await.unwrap();
    for (turn, text) in [(1, "<html>"), (2, "{}"), (3, r#"{"keys":{}}"#)] {
        *issuer.keys.lock().unwrap() = text.to_owned();
        verifier.verify(&token, NOW + turn * 100).await.unwrap();
    }
    let outcome = verifier.verify(&token, NOW + 501).await.map(drop);
    let Err(JwtError::Keys(KeysError::Json { .. })) = outcome else { panic!("{outcome:?}") };
}

#[tokio::test]
async fn an_issuer_without_keys_has_withdrawn_them_all() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (verifier, token) = (issuer.verifier(), issuer.token(&key));
    verifier.verify(&token, NOW).await.unwrap();
    issuer.set(&[]);
    for after in [100, 101, 600] {
        let outcome = verifier.verify(&token, NOW + after).await.map(drop);
        assert_eq!(outcome, Err(JwtError::UnknownKey), "{after}");
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_no_withdrawn_key() {
    let (old, new) = (Key::ed("old"), Key::ed("new"));
    let issuer = Issuer::start(&[&old]).await;
    let verifier = issuer.verifier();
    let far = 10_000_000;
    let iss = issuer.server.url("");
    let changes = json!({"iss": iss, "exp": NOW + 10 * far, "iat": null, "nbf": null});
    let token = old.sign(&claims(&changes));
    verifier.verify(&token, NOW + far).await.unwrap();
    // By a moment only: the keys are old, and good enough until they can be fetched again.
    verifier.verify(&token, NOW + far - 9).await.unwrap();
    assert_eq!(issuer.fetches(), 1);
    issuer.fail(503);
    assert_eq!(verifier.verify(&token, NOW).await.map(drop), down(503), "of no age at all");
    issuer.fail(200);
    issuer.set(&[&new]);
    for after in [10, 1000, 100_000, 9_000_000] {
        let outcome = verifier.verify(&token, NOW + after).await.map(drop);
        assert_eq!(outcome, Err(JwtError::UnknownKey), "{after}");
    }
}

#[tokio::test]
async fn a_key_that_may_be_new_is_not_unknown_while_the_issuer_is_down() {
    let (old, new) = (Key::ed("old"), Key::ed("new"));
    let issuer = Issuer::start(&[&old]).await;
    let verifier = issuer.verifier();
    verifier.verify(&issuer.token(&old), NOW).await.unwrap();
    issuer.fail(503);
    // Also within the interval after the failure, when nothing is fetched.
    for after in [10, 15] {
        assert_eq!(verifier.verify(&issuer.token(&new), NOW + after).await.map(drop), down(503));
        verifier.verify(&issuer.token(&old), NOW + after).await.unwrap();
    }
    assert_eq!(issuer.fetches(), 2);
    issuer.fail(200);
    let outcome = verifier.verify(&issuer.token(&new), NOW + 20).await.map(drop);
    assert_eq!(outcome, Err(JwtError::UnknownKey));
}

/// An issuer that answers with each set in turn, and before each waits until it may.
async fn slow_issuer(sets: Vec<String>) -> (String, Arc<Semaphore>) {
    let (may, turn) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let own = Arc::clone(&may);
    let url = raw_server(move |mut stream| {
        let turn = turn.fetch_add(1, Ordering::SeqCst);
        let (body, may) = (sets[turn].clone(), Arc::clone(&own));
        async move {
            may.acquire().await.unwrap().forget();
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}");
            let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
        }
    })
    .await;
    let server = Server::start(move |seen| {
        leads_to(&format!("http://{}", seen.headers["host"].to_str().unwrap()), &url)
    });
    (server.await.url(""), may)
}

#[tokio::test]
async fn an_issuer_that_hangs_stops_nobody_whose_key_is_known() {
    let (old, new) = (Key::ed("old"), Key::ed("new"));
    let sets = vec![set_text(&[&old]), set_text(&[&old, &new])];
    let (issuer, may) = slow_issuer(sets).await;
    let verifier = Arc::new(verifier(client(Limits::default()), &issuer));
    may.add_permits(1);
    verifier.verify(&token(&old, &issuer), NOW).await.unwrap();
    let calls = (0..20).map(|_| {
        let (verifier, token) = (Arc::clone(&verifier), token(&old, &issuer));
        tokio::spawn(async move { verifier.verify(&token, NOW + 101).await.map(drop) })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), Ok(()));
    }
    // All this while the one fetch went on: it still brings what it was sent for.
    may.add_permits(1);
    verifier.verify(&token(&new, &issuer), NOW + 101).await.unwrap();
}

#[tokio::test]
async fn the_interval_counts_from_the_end_of_a_try() {
    let key = Key::ed("a");
    let (issuer, may) = slow_issuer(vec![set_text(&[&key]); 2]).await;
    let verifier = verifier(client(Limits::default()), &issuer);
    // The ten seconds after which the first try is given up pass in no time.
    tokio::time::pause();
    let hung = verifier.verify(&token(&key, &issuer), NOW).await.map(drop);
    assert!(matches!(hung, Err(JwtError::Keys(KeysError::Fetch { .. }))), "{hung:?}");
    tokio::time::resume();
    may.add_permits(2);
    assert_eq!(verifier.verify(&token(&key, &issuer), NOW + 10).await.map(drop), hung);
    assert_eq!(verifier.verify(&token(&key, &issuer), NOW + 20).await.map(drop), Ok(()));
}

#[tokio::test]
async fn callers_at_the_same_moment_share_one_fetch() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (verifier, token) = (issuer.verifier(), issuer.token(&key));
    let calls = (0..50).map(|_| {
        let (verifier, token) = (Arc::clone(&verifier), token.clone());
        tokio::spawn(async move { verifier.verify(&token, NOW).await.map(drop) })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), Ok(()));
    }
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_take_the_keys_with_it() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (verifier, token) = (issuer.verifier(), issuer.token(&key));
    let gone = {
        let (verifier, token) = (Arc::clone(&verifier), token.clone());
        tokio::spawn(async move { verifier.verify(&token, NOW).await.map(drop) })
    };
    // Let it begin to fetch, and no more.
    tokio::task::yield_now().await;
    gone.abort();
    assert_eq!(verifier.verify(&token, NOW).await.map(drop), Ok(()));
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn keys_are_not_fetched_from_where_the_client_may_not_go() {
    let key = Key::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let public = HttpClient::new(ClientOptions::default()).unwrap();
    let verifier = verifier(public, &issuer.server.url(""));
    let outcome = verifier.verify(&issuer.token(&key), NOW).await.map(drop);
    let Err(JwtError::Keys(KeysError::Fetch { error: ClientError::Address(_), .. })) = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(issuer.server.connections(), 0);
}

/// A server that answers as its issuer, with the path and the name that it was asked to use.
async fn metadata(place: &'static str, key: &Key, named: fn(&str) -> String) -> Server {
    let keys = set_text(&[key]);
    Server::start(move |seen| {
        let origin = format!("http://{}", seen.headers["host"].to_str().unwrap());
        if seen.path == place {
            let text = json!({"issuer": named(&origin), "jwks_uri": format!("{origin}/jwks")});
            return answer(200, &[], text.to_string());
        }
        if seen.path == "/jwks" { answer(200, &[], keys.clone()) } else { answer(404, &[], "") }
    })
    .await
}

#[tokio::test]
async fn keys_are_discovered_wherever_the_standards_put_the_metadata() {
    let key = Key::ed("a");
    for (path, place) in [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("/tenant", "/.well-known/openid-configuration/tenant"),
        ("/tenant", "/tenant/.well-known/openid-configuration"),
    ] {
        let named: fn(&str) -> String = match path {
            "" => |origin| origin.to_owned(),
            _ => |origin| format!("{origin}/tenant"),
        };
        let server = metadata(place, &key, named).await;
        let issuer = server.url(path);
        let keys = IssuerKeys::discovered(client(Limits::default()), issuer.clone(), RULES);
        let verifier = JwtVerifier::new([AUDIENCE]).with_issuer(issuer.clone(), keys).unwrap();
        let token = key.sign(&claims(&json!({"iss": issuer})));
        assert_eq!(verifier.verify(&token, NOW).await.map(drop), Ok(()), "{place}");
    }
}

#[tokio::test]
async fn a_page_in_place_of_metadata_does_not_end_the_search() {
    let server = Server::start(|seen| {
        let origin = format!("http://{}", seen.headers["host"].to_str().unwrap());
        match seen.path.as_str() {
            "/.well-known/openid-configuration" => {
                answer(200, &[], json!({"issuer": origin}).to_string())
            }
            _ => answer(200, &[("content-type", "text/html")], "<html>"),
        }
    })
    .await;
    let local = client(Limits::default());
    assert_eq!(discover(&local, &server.url("")).await.unwrap().issuer, server.url(""));
    let pages = Server::start(|_| answer(200, &[], "<html>")).await;
    let outcome = discover(&local, &pages.url("")).await;
    assert!(matches!(outcome, Err(KeysError::Json { .. })), "{outcome:?}");
}

#[tokio::test]
async fn what_an_https_issuer_leads_to_is_https_too() {
    let ca = Authority::new();
    let plain = Server::start(|_| answer(200, &[], set_text(&[]))).await;
    for member in ["jwks_uri", "token_endpoint"] {
        let place = plain.url("/");
        let acceptor = Some(ca.acceptor("127.0.0.1", None));
        let server = Server::start_at("127.0.0.1:0", acceptor, move |seen| {
            let issuer = format!("https://{}", seen.headers["host"].to_str().unwrap());
            answer(200, &[], json!({"issuer": issuer, member: place}).to_string())
        })
        .await;
        let options = ClientOptions { roots: ca.roots(), ..local() };
        let issuer = format!("https://{}", server.address);
        let outcome = discover(&HttpClient::new(options).unwrap(), &issuer).await;
        assert_eq!(outcome, Err(KeysError::Downgrade { member }));
    }
    assert_eq!(plain.connections(), 0);
}

#[tokio::test]
async fn metadata_of_another_issuer_are_refused() {
    let key = Key::ed("a");
    let place = "/.well-known/oauth-authorization-server";
    let names: [fn(&str) -> String; 3] = [
        |_| "https://other.example".to_owned(),
        |origin| format!("{origin}/"),
        |origin| origin.to_uppercase(),
    ];
    for named in names {
        let server = metadata(place, &key, named).await;
        let outcome = discover(&client(Limits::default()), &server.url("")).await;
        assert_eq!(outcome, Err(KeysError::OtherIssuer));
    }
}

#[tokio::test]
async fn an_issuer_without_metadata_or_keys_is_an_error() {
    let local = client(Limits::default());
    let server = Server::start(|_| answer(404, &[], "")).await;
    let outcome = discover(&local, &server.url("")).await;
    assert_eq!(outcome, Err(KeysError::Status { document: "metadata", status: 404 }));
    for issuer in [server.url("/?q"), server.url("/#f")] {
        assert_eq!(discover(&local, &issuer).await, Err(KeysError::NoIssuer));
    }
    let server = Server::start(|seen| {
        let issuer = format!("http://{}", seen.headers["host"].to_str().unwrap());
        answer(200, &[], json!({"issuer": issuer}).to_string())
    })
    .await;
    let keys = IssuerKeys::discovered(local, server.url(""), RULES);
    let verifier = JwtVerifier::new([AUDIENCE]).with_issuer(server.url(""), keys).unwrap();
    let token = Key::ed("a").sign(&claims(&json!({"iss": server.url("")})));
    let outcome = verifier.verify(&token, NOW).await.map(drop);
    assert_eq!(outcome, Err(JwtError::Keys(KeysError::NoKeysUri)));
}
