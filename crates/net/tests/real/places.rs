//! Redirects and names that change their address: every place is judged again.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use chio_net::address::{AddressClass, AddressError, AddressRules};
use chio_net::client::{ClientError, ClientOptions, HttpClient, Limits, Request, Resolver};
use http::Method;

use super::server::{Server, answer, client, ok};

/// Answers each question with the next of its answers, and then with the last.
#[derive(Debug)]
struct Script {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Script {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let read = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self { answers: answers.iter().map(read).collect(), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolver for Script {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(turn).or_else(|| self.answers.last());
        answer.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn with(rules: AddressRules, resolver: &Arc<Script>) -> HttpClient {
    let resolver = Arc::<Script>::clone(resolver);
    HttpClient::new(ClientOptions { rules, resolver, ..ClientOptions::default() }).unwrap()
}

fn is_loopback(outcome: &Result<(), ClientError>) -> bool {
    let loopback = AddressClass::Loopback;
    matches!(outcome, Err(ClientError::Address(AddressError::Class { class, .. })) if *class == loopback)
}

#[tokio::test]
async fn a_name_that_changes_its_address_gains_nothing() {
    // 127.0.0.2 stands for the public address: it alone is allowed. The victim has the same port.
    let rules = AddressRules::public_only().with_http().allow("127.0.0.2".parse().unwrap());
    let public =
        Server::start_at("127.0.0.2:0", None, |_| answer(200, &[("connection", "close")], "a"))
            .await;
    let port = public.address.port();
    let victim = Server::start_at(&format!("127.0.0.1:{port}"), None, |_| ok("secret")).await;
    let script = Script::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let client = with(rules.clone(), &script);
    let url = format!("http://rebind.example:{port}/");

    let first = client.send(Request::get(url.clone())).await.unwrap();
    assert_eq!(first.body, "a");
    assert_eq!(script.asked(), 1, "one connection is one question");
    let second = client.send(Request::get(url.clone())).await.map(drop);
    assert!(is_loopback(&second), "{second:?}");
    assert_eq!(script.asked(), 2);

    // An answer with both is refused whole.
    for both in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]] {
        let client = with(rules.clone(), &Script::new(&[&both]));
        let outcome = client.send(Request::get(url.clone())).await.map(drop);
        assert!(is_loopback(&outcome), "{outcome:?}");
    }
    assert_eq!((public.connections(), victim.connections()), (1, 0));
}

#[tokio::test]
async fn a_redirect_from_an_allowed_server_to_a_forbidden_address_is_refused() {
    let victim = Server::start(|_| ok("secret")).await;
    let port = victim.address.port();
    for place in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("//127.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://u@127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/hosts".to_owned(),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let to = place.clone();
            let door = Server::start(move |_| answer(status, &[("location", &to)], "")).await;
            // The door's name alone is trusted, whatever its address.
            let rules = AddressRules::public_only().with_http();
            let rules = rules.allow("door.example".parse().unwrap());
            let client = with(rules, &Script::new(&[&["127.0.0.1"]]));
            let url = format!("http://door.example:{}/", door.address.port());
            let outcome = client.send(Request::get(url)).await;
            assert!(matches!(outcome, Err(ClientError::Address(_))), "{place} {outcome:?}");
            assert_eq!(door.requests().len(), 1);
        }
    }
    assert_eq!(victim.connections(), 0);
}

#[tokio::test]
async fn a_name_without_addresses_and_one_that_nobody_knows_are_errors() {
    let url = "https://name.example/";
    let outcome = with(AddressRules::default(), &Script::new(&[&[]])).send(Request::get(url)).await;
    let none = AddressError::NoAddress { host: "name.example".to_owned() };
    assert_eq!(outcome.map(drop), Err(ClientError::Address(none)));
    let outcome = with(AddressRules::default(), &Script::new(&[])).send(Request::get(url)).await;
    let error = outcome.unwrap_err().to_string();
    assert_eq!(error, "cannot look up `name.example`: entity not found");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let server = Server::start_at("127.0.0.1:0", None, |_| ok("a")).await;
    let script = Script::new(&[&["127.0.0.9", "127.0.0.1"]]);
    let client = with(AddressRules::public_only().with_http().with_loopback(), &script);
    let url = format!("http://two.example:{}/", server.address.port());
    assert_eq!(client.send(Request::get(url)).await.unwrap().body, "a");
}

#[tokio::test]
async fn a_name_with_many_addresses_is_given_up_after_some() {
    let server = Server::start_at("127.0.0.1:0", None, |_| ok("a")).await;
    let url = format!("http://many.example:{}/", server.address.port());
    for (before, reached) in [(15, true), (16, false), (10_000, false)] {
        let mut addresses = vec!["127.0.0.9"; before];
        addresses.push("127.0.0.1");
        let rules = AddressRules::public_only().with_http().with_loopback();
        let outcome = with(rules, &Script::new(&[&addresses])).send(Request::get(&url)).await;
        assert_eq!(outcome.is_ok(), reached, "{before} {outcome:?}");
    }
    // What is not tried is judged nevertheless.
    let mut addresses = vec!["127.0.0.1"; 16];
    addresses.push("10.0.0.1");
    let rules = AddressRules::public_only().with_http().with_loopback();
    let outcome = with(rules, &Script::new(&[&addresses])).send(Request::get(&url)).await;
    assert!(matches!(outcome, Err(ClientError::Address(_))), "{outcome:?}");
}

#[tokio::test]
async fn redirects_are_followed_with_what_may_go_there() {
    let other = Server::start(|_| ok("other")).await;
    let away = other.url("/end");
    let server = Server::start(move |seen| match seen.path.as_str() {
        "/same" => answer(307, &[("location", "/end")], ""),
        "/away" => answer(303, &[("location", &away)], ""),
        "/see" => answer(303, &[("location", "end")], ""),
        _ => ok("own"),
    })
    .await;
    let client = client(Limits::default());
    for (path, body, method, key, sent) in [
        ("/same", "own", Method::POST, true, "{}"),
        ("/away", "other", Method::GET, false, ""),
        ("/see", "own", Method::GET, true, ""),
    ] {
        let request = Request::post_json(server.url(path), "{}").with_bearer("t").unwrap();
        let request = request.with_header("x-api-key", "k").unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.body, body);
        let last = if body == "own" { &server } else { &other };
        assert_eq!(response.from.port(), last.address.port());
        let last = last.requests().pop().unwrap();
        assert_eq!((last.path.as_str(), &last.method), ("/end", &method), "{path}");
        assert_eq!(last.body, sent, "{path}");
        for name in ["authorization", "x-api-key"] {
            assert_eq!(last.headers.contains_key(name), key, "{path} {name}");
        }
    }
}

#[tokio::test]
async fn a_body_does_not_follow_to_another_origin_unasked() {
    let other = Server::start(|_| ok("other")).await;
    for (status, method, arrives) in [
        (307, Method::POST, false),
        (308, Method::POST, false),
        (301, Method::PUT, false),
        (302, Method::DELETE, false),
        (303, Method::POST, true),
    ] {
        let to = other.url("/steal");
        let server = Server::start(move |_| answer(status, &[("location", &to)], "")).await;
        let request = Request::new(method, server.url("/token")).with_body("client_secret=s");
        let outcome = client(Limits::default()).send(request).await.map(drop);
        let refused = Err(ClientError::OtherOrigin { carried: "a body" });
        assert_eq!(outcome, if arrives { Ok(()) } else { refused }, "{status}");
    }
    let requests = other.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].body.is_empty());
}

#[tokio::test]
async fn redirects_end_at_their_bound_or_are_the_answer_when_asked() {
    let server = Server::start(|_| answer(302, &[("location", "/again")], "")).await;
    let client = client(Limits { max_redirects: 3, ..Limits::default() });
    let outcome = client.send(Request::get(server.url("/"))).await.map(drop);
    assert_eq!(outcome, Err(ClientError::TooManyRedirects { limit: 3 }));
    assert_eq!(server.requests().len(), 4);
    let response = client.send(Request::get(server.url("/")).without_redirects()).await.unwrap();
    assert_eq!(response.status.as_u16(), 302);
    assert_eq!(server.requests().len(), 5);
}
