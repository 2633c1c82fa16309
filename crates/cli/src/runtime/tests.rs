//! An edge that this program does not know, served over HTTP and over byte streams because it is in
//! the list.

use std::io::Sink;
use std::path::Path;
use std::sync::Arc;

use chio_cross_protocol::Principal;
use chio_edge::{Place, SettingValue, Settings, Streams};
use chio_store::{Location, StoreUrl};
use chio_testkit::edge::EDGE;
use chio_testkit::process::Folder;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{EdgeConfig, Opening, Plan, Runtime};
use crate::access::AccessConfig;
use crate::admission::Anonymous;
use crate::io::Io;
use crate::listeners::{Admits, ListenerConfig};
use crate::policy_args::PolicySources;
use crate::servers::demo;

const CALL: &str = "demo echo {\"text\": \"hello\"}";

async fn start(listener: ListenerConfig, settings: Settings) -> (Runtime, Opening) {
    let policies = PolicySources::new("default", None, Path::new(""), &Arc::default());
    let plan = Plan {
        servers: vec![demo::server(None)],
        edges: vec![EdgeConfig::new(&EDGE, settings).on(&listener.name)],
        listeners: vec![listener],
        ..Plan::new(Location::from(&StoreUrl::Memory), policies, "")
    };
    let folder = Folder::new();
    let (mut output, mut errors) = (std::io::sink(), std::io::sink());
    let (runtime, opening, _) =
        plan.start(&mut io(&folder, &mut output, &mut errors)).await.unwrap();
    (runtime, opening)
}

fn io<'a>(folder: &'a Folder, output: &'a mut Sink, errors: &'a mut Sink) -> Io<'a> {
    Io::for_tests(output, errors, folder.root())
}

#[track_caller]
fn check(answer: &str) {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert!(answer["value"].to_string().contains("hello"), "{answer}");
    assert!(answer["receipt"].is_string(), "{answer}");
}

#[tokio::test]
async fn an_edge_of_the_list_is_served_over_http() {
    let address = "127.0.0.1:0".parse().unwrap();
    let access = AccessConfig::Anonymous("default".to_owned());
    let (mut runtime, opening) =
        start(ListenerConfig::http(address, access), Settings::default()).await;
    let mut served = opening.open(&mut runtime, None).await.unwrap();
    let (folder, mut output, mut errors) = (Folder::new(), std::io::sink(), std::io::sink());
    served.listen(&io(&folder, &mut output, &mut errors), &runtime, true).await.unwrap();
    let (edge, url, is_http) = served.addresses().next().unwrap();
    assert_eq!((edge.name, is_http), ("words", true));
    assert!(url.ends_with("/words"), "{url}");
    let shutdown = CancellationToken::new();
    let until = shutdown.clone();
    let serving = tokio::spawn(runtime.serve(served, until));
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let mut client = TcpStream::connect(&host).await.unwrap();
    let head = format!(
        "POST /words HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        CALL.len()
    );
    client.write_all(format!("{head}{CALL}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    check(body);
    shutdown.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_edge_of_the_list_is_served_over_byte_streams() {
    let stdio = ListenerConfig::stdio(Admits::ByPolicy(Anonymous::Refused));
    let greeting = Some(SettingValue::Text("welcome".to_owned()));
    let (mut runtime, opening) = start(stdio, Settings::default().with("greeting", greeting)).await;
    drop(opening.open(&mut runtime, None).await.unwrap());
    let (client, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let (reader, writer) = (Box::new(reader), Box::new(writer));
    let place = Arc::new(Place::alone());
    let streams = Streams { reader, writer, principal: Principal::stdio(), place };
    let edge = runtime.edges.first().unwrap().clone();
    let shutdown = CancellationToken::new();
    let until = shutdown.clone();
    let serving = tokio::spawn(async move { edge.serve_streams(streams, until).await });
    let (reader, mut writer) = tokio::io::split(client);
    let mut lines = BufReader::new(reader).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("welcome"));
    writer.write_all(format!("{CALL}\n").as_bytes()).await.unwrap();
    check(&lines.next_line().await.unwrap().unwrap());
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    runtime.end().await.unwrap();
}
