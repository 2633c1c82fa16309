//! Requests, answers, and every bound of both.

use std::time::Duration;

use chio_net::address::AddressError;
use chio_net::client::{ClientError, ClientOptions, HttpClient, Limits, Phase, Request};
use http::Method;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::server::{Server, answer, client, ok, raw_server, stalled_server, tasks, until_tasks};

const SHORT: Duration = Duration::from_millis(150);

async fn write(mut stream: TcpStream, text: String) {
    let _ = stream.write_all(text.as_bytes()).await;
    // Held open, so that the end of the answer is not the end of the connection.
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_request_arrives_as_it_was_put_together_and_its_answer_comes_back() {
    let server = Server::start(|_| answer(201, &[("x-a", "b")], "done")).await;
    let request = Request::post_json(server.url("/p?q=1#f"), r#"{"a":1}"#);
    let request = request.with_bearer("t").unwrap().with_header("X-Own", "v").unwrap();
    let response = client(Limits::default()).send(request).await.unwrap();
    assert_eq!((response.status.as_u16(), &response.body[..]), (201, &b"done"[..]));
    assert_eq!(response.headers["x-a"], "b");
    let seen = &server.requests()[0];
    assert_eq!((&seen.method, seen.path.as_str()), (&Method::POST, "/p?q=1"));
    assert_eq!(&seen.body[..], br#"{"a":1}"#);
    for (name, value) in [
        ("authorization", "Bearer t"),
        ("x-own", "v"),
        ("content-type", "application/json"),
        ("accept-encoding", "identity"),
        ("host", &server.address.to_string()),
    ] {
        assert_eq!(seen.headers[name], value, "{name}");
    }
    assert_eq!(seen.headers.len(), 6, "{:?}", seen.headers);
}

#[tokio::test]
async fn connections_are_used_again_and_cookies_are_not_kept() {
    let server = Server::start(|_| answer(200, &[("set-cookie", "a=b")], "x")).await;
    let client = client(Limits::default());
    for _ in 0..3 {
        client.send(Request::get(server.url("/"))).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
    assert!(server.requests().iter().all(|seen| !seen.headers.contains_key("cookie")));
}

#[tokio::test]
async fn by_default_nothing_on_this_machine_is_reached() {
    let server = Server::start(|_| ok("secret")).await;
    let client = HttpClient::new(ClientOptions::default()).unwrap();
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let outcome = client.send(Request::get(format!("https://{host}:{port}/"))).await;
        assert!(matches!(outcome, Err(ClientError::Address(_))), "{host} {outcome:?}");
    }
    let outcome = client.send(Request::get("http://example.com/")).await.map(drop);
    let plain = AddressError::PlainHttp { host: "example.com".to_owned() };
    assert_eq!(outcome, Err(ClientError::Address(plain)));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_body_is_read_up_to_its_bound() {
    let chunk = format!("{:x}\r\n{}\r\n", 1000, "x".repeat(1000));
    let chunked =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk.repeat(9));
    let endless = raw_server(move |stream| write(stream, chunked.clone())).await;
    let server = Server::start(|_| ok("x".repeat(5000))).await;
    let client = client(Limits { max_body: 5000, ..Limits::default() });
    let whole = client.send(Request::get(server.url("/"))).await.unwrap();
    assert_eq!(whole.body.len(), 5000);
    for (request, limit) in [
        (Request::get(server.url("/")).with_max_body(4999), 4999),
        (Request::get(endless.clone()), 5000),
        (Request::get(endless).with_max_body(9999), 5000),
    ] {
        let outcome = client.send(request).await.map(drop);
        assert_eq!(outcome, Err(ClientError::BodyTooLarge { limit }));
    }
}

#[tokio::test]
async fn a_head_is_read_up_to_its_bounds() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "x".repeat(10_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "x: y\r\n".repeat(20));
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(20_000));
    let (small, roomy) = (
        client(Limits { max_head: 8 * 1024, max_headers: 20, ..Limits::default() }),
        client(Limits { max_head: 16 * 1024, max_headers: 30, ..Limits::default() }),
    );
    for (head, fits) in [(long, true), (many, true), (endless, false)] {
        let url = raw_server(move |stream| write(stream, head.clone())).await;
        let outcome = small.send(Request::get(url.clone())).await.map(drop);
        assert_eq!(outcome, Err(ClientError::HeadTooLarge { limit: 8 * 1024 }));
        assert_eq!(roomy.send(Request::get(url)).await.is_ok(), fits);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_an_error() {
    let silent = raw_server(|stream| write(stream, String::new())).await;
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345";
    let half = raw_server(move |stream| write(stream, half.to_owned())).await;
    let hasty = client(Limits { total: SHORT, ..Limits::default() });
    let outcome = hasty.send(Request::get(silent)).await.map(drop);
    assert_eq!(outcome, Err(ClientError::TimedOut(Phase::Response)));
    let second = Duration::from_secs(1);
    let client = client(Limits { total: second, idle: second, ..Limits::default() });
    let outcome = client.send(Request::get(half.clone())).await.map(drop);
    assert_eq!(outcome, Err(ClientError::TimedOut(Phase::Body)));

    let mut stream = client.open(Request::get(half)).await.unwrap();
    assert_eq!(stream.chunk().await.unwrap().unwrap(), "12345");
    assert_eq!(stream.chunk().await, Err(ClientError::TimedOut(Phase::Idle)));
}

#[tokio::test]
async fn a_request_may_shorten_its_time_and_not_lengthen_it() {
    let silent = raw_server(|stream| write(stream, String::new())).await;
    let patient = client(Limits::default());
    let outcome = patient.send(Request::get(silent.clone()).within(SHORT)).await.map(drop);
    assert_eq!(outcome, Err(ClientError::TimedOut(Phase::Response)));
    let hasty = client(Limits { total: SHORT, ..Limits::default() });
    let outcome = hasty.send(Request::get(silent).within(Duration::from_secs(3600))).await;
    assert_eq!(outcome.map(drop), Err(ClientError::TimedOut(Phase::Response)));
}

#[tokio::test]
async fn a_server_that_stops_reading_loses_the_connection_and_what_is_left_of_the_request() {
    let address = stalled_server(None).await;
    let client = client(Limits { total: SHORT, ..Limits::default() });
    let before = tasks();
    for _ in 0..3 {
        let request = Request::post_json(format!("http://{address}/"), vec![b'x'; 32 << 20]);
        let outcome = client.send(request).await.map(drop);
        assert_eq!(outcome, Err(ClientError::TimedOut(Phase::Response)));
    }
    until_tasks(before).await;
}

#[tokio::test]
async fn time_without_end_is_a_bound_like_others() {
    let server = Server::start(|_| ok("a")).await;
    let (max, rest) = (Duration::MAX, Limits::default());
    for limits in [
        Limits { total: max, ..rest },
        Limits { connect: max, ..rest },
        Limits { idle: max, ..rest },
    ] {
        let request = Request::get(server.url("/")).within(max);
        assert_eq!(client(limits).send(request).await.unwrap().body, "a", "{limits:?}");
    }
}

#[tokio::test]
async fn neither_tunnels_nor_echoes_nor_other_protocols_are_asked_for_or_taken() {
    let server = Server::start(|_| ok("a")).await;
    for method in [Method::CONNECT, Method::TRACE] {
        let request = Request::new(method.clone(), server.url("/"));
        let outcome = client(Limits::default()).send(request).await.map(drop);
        assert_eq!(outcome, Err(ClientError::Method), "{method}");
    }
    assert_eq!(server.connections(), 0);
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello";
    let url = raw_server(move |stream| write(stream, switch.to_owned())).await;
    let outcome = client(Limits::default()).send(Request::get(url)).await.map(drop);
    let found = "a switch to another protocol";
    assert_eq!(outcome, Err(ClientError::Protocol { host: "127.0.0.1".to_owned(), found }));
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_without_the_bytes_that_came() {
    for (text, found) in [
        ("", "a connection that broke"),
        ("SECRET/1.0\r\n\r\n", "something else"),
        ("HTTP/1.1 200 OK\r\nSECRET\r\n\r\n", "something else"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nSECRET", "a body that breaks off"),
    ] {
        let url = raw_server(move |mut stream| async move {
            let _ = stream.write_all(text.as_bytes()).await;
        })
        .await;
        let outcome = client(Limits::default()).send(Request::get(url)).await.map(drop);
        let host = "127.0.0.1".to_owned();
        assert_eq!(outcome, Err(ClientError::Protocol { host, found }), "{text:?}");
    }
}

#[tokio::test]
async fn a_coding_that_was_not_asked_for_is_refused() {
    for (coding, accepted) in [("identity", true), ("gzip", false), ("br", false), ("", false)] {
        let server =
            Server::start(move |_| answer(200, &[("content-encoding", coding)], "x")).await;
        let outcome = client(Limits::default()).send(Request::get(server.url("/"))).await;
        assert_eq!(outcome.is_ok(), accepted, "{coding} {outcome:?}");
    }
}

#[tokio::test]
async fn a_transfer_coding_that_is_not_chunked_is_refused() {
    let chunks = "3\r\nabc\r\n0\r\n\r\n";
    for (coding, body, accepted) in [
        ("chunked", chunks, true),
        ("Chunked", chunks, true),
        ("gzip, chunked", chunks, false),
        ("chunked, chunked", chunks, false),
        ("gzip", "abc", false),
        ("identity", "abc", false),
    ] {
        let text = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n{body}");
        let url = raw_server(move |mut stream| {
            let text = text.clone();
            async move { stream.write_all(text.as_bytes()).await.unwrap() }
        })
        .await;
        let outcome = client(Limits::default()).send(Request::get(url)).await.map(|r| r.body);
        match accepted {
            true => assert_eq!(outcome.unwrap(), "abc", "{coding}"),
            false => assert!(outcome.is_err(), "{coding} {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told_without_the_path() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let request = Request::get(format!("http://{address}/secret?secret"));
    let error = client(Limits::default()).send(request).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot connect to `127.0.0.1`: connection refused");
}

/// Set where the test runs itself again.
const AGAIN: &str = "CHIO_NET_TEST_AGAIN";

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    if std::env::var_os(AGAIN).is_some() {
        let server = Server::start(|_| ok("direct")).await;
        let response = client(Limits::default()).send(Request::get(server.url("/"))).await;
        assert_eq!(response.unwrap().body, "direct");
        return;
    }
    let proxy = Server::start(|_| ok("proxied")).await;
    let names =
        ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let child = tokio::task::spawn_blocking({
        let url = proxy.url("");
        move || {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["client::proxies_of_the_environment_are_ignored", "--exact"])
                .env(AGAIN, "1")
                .env_remove("NO_PROXY")
                .env_remove("no_proxy")
                .envs(names.map(|name| (name, url.clone())))
                .output()
                .unwrap()
        }
    });
    let output = child.await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    assert_eq!(proxy.connections(), 0);
}
