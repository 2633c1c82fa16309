//! Listeners and clients over real sockets.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use chio_core::message::{AgentMessage, KernelMessage, ToolCallResult};
use chio_cross_protocol::{DiscoveryProtocol, Principal, Refused, Session};
use chio_edge::{Endpoint, ListenError, StreamListener};
use chio_testkit::log::CapturedLog;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::*;
use crate::client::{ClientError, NativeClient};
use crate::world::{Agent, PATIENCE, World, eventually, options, request};

/// Admits every principal, unless it is to refuse, and remembers them.
#[derive(Default)]
struct TestAdmission {
    refuses: bool,
    seen: Mutex<Vec<(DiscoveryProtocol, Principal)>>,
}

#[async_trait]
impl Admission for TestAdmission {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        principal: Principal,
    ) -> Result<Session, Refused> {
        self.seen.lock().unwrap().push((protocol, principal));
        if self.refuses {
            return Err(Refused("not today".to_owned()));
        }
        Ok(options(None).session)
    }
}

/// A running listener.
struct Served {
    endpoint: Endpoint,
    world: World,
    admission: Arc<TestAdmission>,
    log: CapturedLog,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(endpoint: Endpoint, refuses: bool, max_connections: usize) -> Self {
        let listener = StreamListener::bind(&endpoint).await.unwrap();
        let endpoint = listener.endpoint().clone();
        let (world, shutdown) = (World::new().await, CancellationToken::new());
        let admission = Arc::new(TestAdmission { refuses, ..TestAdmission::default() });
        let orchestrator = Arc::clone(&world.orchestrator);
        let service = NativeService::new(orchestrator, Arc::clone(&admission) as _);
        let service = NativeService { max_connections, ..service };
        let log = CapturedLog::start();
        let serving = tokio::spawn(listener.serve(Arc::new(service), shutdown.clone()));
        Self { endpoint, world, admission, log, shutdown, serving }
    }

    async fn unix(name: &str) -> Self {
        Self::start(socket(name), false, 16).await
    }

    async fn client(&self) -> NativeClient {
        NativeClient::connect(&self.endpoint).await.unwrap()
    }

    async fn stop(self) {
        self.shutdown.cancel();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap();
    }
}

fn socket(name: &str) -> Endpoint {
    let file = format!("chio-{name}-{}.sock", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(file);
    let _ = std::fs::remove_file(&path);
    Endpoint::Unix(path)
}

fn loopback() -> Endpoint {
    "tcp:127.0.0.1:0".parse().unwrap()
}

async fn echo(
    client: &NativeClient,
    id: &str,
    value: Value,
) -> Result<ToolCallResult, ClientError> {
    let call = client.call(request(id, "echo", value), |_, _| ());
    Ok(timeout(PATIENCE, call).await.unwrap()?.result)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_share_a_connection() {
    let unix = Served::unix("many").await;
    let tcp = Served::start(loopback(), false, 16).await;
    for served in [unix, tcp] {
        let client = served.client().await;
        let mut calls = JoinSet::new();
        for number in 0..1000 {
            let client = client.clone();
            calls.spawn(async move {
                let result = echo(&client, &number.to_string(), json!(number)).await.unwrap();
                assert_eq!(result, ToolCallResult::Ok { value: json!(number) });
            });
        }
        while let Some(call) = calls.join_next().await {
            call.unwrap();
        }
        served.stop().await;
    }
}

#[tokio::test]
async fn the_client_hands_over_chunks_lists_and_signs_of_life() {
    let served = Served::unix("client").await;
    let client = served.client().await;
    let mut chunks = Vec::new();
    let call = client.call(request("r", "count", json!(40)), |index, _| chunks.push(index));
    let response = timeout(PATIENCE, call).await.unwrap().unwrap();
    assert_eq!(response.result, ToolCallResult::StreamComplete { total_chunks: 40 });
    assert!(response.receipt.verify().is_ok());
    assert_eq!(chunks, Vec::from_iter(0..40));
    assert_eq!(client.list_capabilities().await, Ok(Vec::new()));
    assert_eq!(client.heartbeat().await, Ok(()));
    served.stop().await;
}

#[tokio::test]
async fn revocations_reach_a_client_that_is_idle() {
    let served = Served::unix("revoked").await;
    let client = served.client().await;
    let mut revocations = client.revocations();
    echo(&client, "r", json!({})).await.unwrap();
    served.world.revoke("cap-1").await;
    let id = timeout(PATIENCE, revocations.recv()).await.unwrap().unwrap();
    assert_eq!(id, "cap-1");
    served.stop().await;
}

#[tokio::test]
async fn a_client_tells_its_own_calls_apart() {
    let served = Served::unix("apart").await;
    let client = served.client().await;
    let waiting = client.clone();
    let first =
        tokio::spawn(async move { waiting.call(request("r", "wait", json!(1)), |_, _| ()).await });
    eventually("a call", async || served.world.tools.runs() == 1).await;
    let second = echo(&client, "r", json!(2)).await;
    assert_eq!(second, Err(ClientError::DuplicateId("r".to_owned())));
    // A call that no caller waits for any more leaves its id free here.
    first.abort();
    assert!(first.await.is_err());
    assert!(echo(&client, "s", json!(3)).await.is_ok());
    assert!(!matches!(echo(&client, "r", json!(4)).await, Err(ClientError::DuplicateId(_))));
    drop(client);
    served.stop().await;
}

#[tokio::test]
async fn a_client_that_is_dropped_disconnects_and_cancels_its_calls() {
    let served = Served::unix("dropped").await;
    let client = served.client().await;
    let call =
        tokio::spawn(async move { client.call(request("r", "wait", json!({})), |_, _| ()).await });
    eventually("a call", async || served.world.tools.runs() == 1).await;
    call.abort();
    eventually("a cancel", async || served.world.cancelled().await == 1).await;
    served.stop().await;
}

#[tokio::test]
async fn what_ends_one_connection_is_told_and_ends_no_other() {
    let served = Served::unix("other").await;
    let (one, other) = (served.client().await, served.client().await);
    let call = one.call(request("secret", "wait", json!("secret")), |_, _| ());
    let (failed, ()) = tokio::join!(call, async {
        eventually("a call", async || served.world.tools.runs() == 1).await;
        served.world.recover().await;
        served.world.tools.release(1);
    });
    assert!(matches!(failed, Err(ClientError::Closed(_))), "{failed:?}");
    assert!(matches!(one.heartbeat().await, Err(ClientError::Closed(_))));
    assert!(echo(&other, "r", json!(1)).await.is_ok());
    let lines = served.log.lines();
    let told = lines.iter().filter(|line| line.contains("the kernel has no answer"));
    assert_eq!(told.count(), 1);
    assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
    served.stop().await;
}

#[tokio::test]
async fn a_client_is_admitted_with_what_the_transport_knows_before_anything_is_read() {
    for (endpoint, is_expected) in [
        (
            socket("door"),
            (|it| matches!(it, Credential::Unix { user: Some(_), .. })) as fn(&Credential) -> bool,
        ),
        (loopback(), |it| *it == Credential::None),
    ] {
        let served = Served::start(endpoint, true, 16).await;
        let client = served.client().await;
        assert!(matches!(echo(&client, "r", json!(1)).await, Err(ClientError::Closed(_))));
        assert_eq!(served.world.begun().await, 0);
        let seen = served.admission.seen.lock().unwrap().clone();
        assert_eq!(seen[0].0, DiscoveryProtocol::Native);
        assert!(is_expected(&seen[0].1.credential), "{seen:?}");
        eventually("a line", async || {
            served.log.lines().iter().any(|line| line.contains("not today"))
        })
        .await;
        served.stop().await;
    }
}

#[tokio::test]
async fn connections_beyond_the_most_wait_for_a_call_to_end() {
    let served = Served::start(socket("cap"), false, 1).await;
    let first = served.client().await;
    let calling = first.clone();
    let call = tokio::spawn(async move {
        calling.call(request("r", "wait", json!(1)), |_, _| ()).await.map(|ended| ended.result)
    });
    served.world.check_begun(0, 1).await;
    let second = served.client().await;
    let waits = timeout(Duration::from_millis(100), second.heartbeat()).await;
    assert!(waits.is_err());
    served.world.tools.release(1);
    assert_eq!(call.await.unwrap().unwrap(), ToolCallResult::Ok { value: json!(1) });
    timeout(PATIENCE, second.heartbeat()).await.unwrap().unwrap();
    // The first asks for nothing, and has made room.
    assert!(matches!(first.heartbeat().await, Err(ClientError::Closed(_))));
    served.stop().await;
}

#[tokio::test]
async fn a_client_that_never_says_anything_is_hung_up_on() {
    let (world, mut options) = (World::new().await, options(None));
    options.limits.first = Duration::from_millis(100);
    let mut silent = Agent::connect(&world, options.clone(), 4096);
    assert!(silent.next().await.is_none());
    let mut honest = Agent::connect(&world, options, 4096);
    honest.send(&AgentMessage::Heartbeat).await;
    assert_eq!(honest.next().await, Some(KernelMessage::Heartbeat));
    tokio::time::sleep(Duration::from_millis(200)).await;
    honest.send(&AgentMessage::Heartbeat).await;
    assert_eq!(honest.next().await, Some(KernelMessage::Heartbeat));
}

#[tokio::test]
async fn addresses_that_others_can_reach_are_refused() {
    for text in ["tcp:0.0.0.0:0", "tcp:192.0.2.1:0", "tcp:[::]:0"] {
        let refused = StreamListener::bind(&text.parse().unwrap()).await;
        assert!(matches!(refused, Err(ListenError::NotLoopback(_))), "{text}");
    }
}

// covers: WIRE-019
#[tokio::test]
async fn a_fresh_connection_works_after_a_broken_one() {
    let served = Served::start(loopback(), false, 16).await;
    let Endpoint::Tcp(address) = served.endpoint else { panic!("expected a port") };
    let mut broken = TcpStream::connect(address).await.unwrap();
    broken.write_all(&[255; 4]).await.unwrap();
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, broken.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"");
    assert!(echo(&served.client().await, "r", json!(1)).await.is_ok());
    served.stop().await;
}

#[tokio::test]
async fn a_listener_that_stops_leaves_no_socket_behind() {
    let served = Served::unix("stops").await;
    let Endpoint::Unix(path) = served.endpoint.clone() else { panic!("expected a path") };
    let client = served.client().await;
    client.heartbeat().await.unwrap();
    served.stop().await;
    assert!(!path.exists());
    assert!(matches!(client.heartbeat().await, Err(ClientError::Closed(_))));
    let gone = NativeClient::connect(&Endpoint::Unix(path)).await.unwrap_err();
    assert!(matches!(gone, ClientError::Connect { .. }), "{gone}");
}

// covers: WIRE-085
#[test]
fn the_version_that_operators_are_told_is_the_one_of_the_specification() {
    let root = chio_testkit::golden::root();
    let path = root.join("spec/versions/chio-protocol-negotiation.v1.json");
    let rules: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(rules["nativeChio"]["wireVersion"], EDGE.address_hint);
    let (name, version) = EDGE.address_hint.rsplit_once('-').unwrap();
    let schemas = root.join("spec/schemas").join(name).join(version);
    for folder in ["agent", "kernel", "result", "error"] {
        assert!(schemas.join(folder).is_dir(), "{folder}");
    }
}
