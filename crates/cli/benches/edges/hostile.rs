//! Honest calls beside hostile clients: whether all are answered, how long the slowest wait, and
//! how much memory the hostile ones cost. The floor is the same calls beside ordinary clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::Scale;
use crate::client::Session;
use crate::memory::high_water;
use crate::servers::{Folder, up};

/// How many honest clients call.
const HONEST: usize = 8;
/// How many clients are beside them.
const OTHERS: usize = 24;
/// How many connections a hostile client has at once, where it uses many.
const CONNECTIONS: usize = 40;

/// What one client does beside the honest ones, until it is over.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Calls as the honest ones do.
    Ordinary,
    /// Connects and says nothing.
    Silent,
    /// Announces large bodies, and sends half of them.
    Unfinished,
    /// Sends large bodies of many small values.
    Values,
    /// The same over the native socket.
    Frames,
    /// Calls with arguments that take long to judge.
    Judged,
}

const HOSTILE: [Kind; 5] =
    [Kind::Silent, Kind::Unfinished, Kind::Values, Kind::Frames, Kind::Judged];

/// Where the product is reached.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    socket: PathBuf,
    over: Arc<AtomicBool>,
}

impl Target {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

async fn be(kind: Kind, target: Target) {
    let call = json!({"name": "echo", "arguments": {"text": "hello"}});
    let long = json!({"name": "echo", "arguments": {"command": "eval ".repeat(60_000)}});
    let values = format!("[{}[0]]", "[0],".repeat(1 << 20));
    while !target.is_over() {
        // Whatever becomes of it: a hostile client is refused, cut off or answered.
        let _ = match kind {
            Kind::Ordinary => calls(&target, &call).await,
            Kind::Judged => calls(&target, &long).await,
            Kind::Silent => many(&target, "").await,
            Kind::Unfinished => many(&target, &unfinished()).await,
            Kind::Values => body(&target, &values).await,
            Kind::Frames => frame(&target.socket, &values).await,
        };
    }
}

/// Opens a session and calls in it.
async fn calls(target: &Target, params: &Value) -> std::io::Result<()> {
    let mut session = Session::open(target.address).await;
    while !target.is_over() {
        session.try_request("tools/call", params).await?;
    }
    Ok(())
}

fn unfinished() -> String {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nContent-Length: 8388608\r\n\r\n";
    format!("{head}{}", " ".repeat(4 << 20))
}

/// Keeps many connections for a second, each with this said.
async fn many(target: &Target, text: &str) -> std::io::Result<()> {
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(target.address).await?;
        let _ = tokio::time::timeout(Duration::from_millis(50), stream.write_all(text.as_bytes()))
            .await;
        kept.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

async fn body(target: &Target, text: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(target.address).await?;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        target.address,
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

async fn frame(socket: &Path, text: &str) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(&u32::try_from(text.len()).unwrap().to_be_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

/// Honest calls, each of which has to succeed; how long each took.
async fn honest(target: Target, reconnects: bool) -> Vec<Duration> {
    let arguments = json!({"text": "hello"});
    let (mut took, mut session) = (Vec::new(), Session::open(target.address).await);
    while !target.is_over() {
        let begun = Instant::now();
        if reconnects && took.len() % 16 == 15 {
            session = Session::open(target.address).await;
        }
        session.call("echo", &arguments).await;
        took.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    took
}

/// The slowest hundredth of honest calls beside clients of these kinds begins here; and the most
/// memory that the product had, in MiB.
fn beside(kinds: &[Kind], time: Duration) -> (Duration, f64, usize) {
    let folder = Folder::new("hostile");
    let server = up(&folder);
    let target = Target {
        address: server.address,
        socket: folder.0.join("data/native.sock"),
        over: Arc::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut took: Vec<Duration> = runtime.block_on(async {
        let mut others = JoinSet::new();
        for kind in kinds.iter().cycle().take(OTHERS) {
            others.spawn(be(*kind, target.clone()));
        }
        let mut calling = JoinSet::new();
        for number in 0..HONEST {
            calling.spawn(honest(target.clone(), number % 2 == 0));
        }
        tokio::time::sleep(time).await;
        target.over.store(true, Ordering::Relaxed);
        let took = calling.join_all().await.concat();
        others.shutdown().await;
        took
    });
    took.sort_unstable();
    (took[took.len() * 99 / 100], high_water(server.child.id()) / 1024.0, took.len())
}

pub(crate) fn run(scale: Scale) {
    let time = scale.turn * 20;
    let (floor, at_rest, calls) = beside(&[Kind::Ordinary], time);
    let (ours, most, beside_hostile) = beside(&HOSTILE, time);
    println!("\nechoes of {HONEST} honest sessions beside {OTHERS} hostile clients, none failed");
    println!(
        "  99 of 100 within {:.1} ms of {beside_hostile}, beside ordinary clients {:.1} ms of \
         {calls}, ratio {:.1} (goal 5)",
        ours.as_secs_f64() * 1e3,
        floor.as_secs_f64() * 1e3,
        ours.as_secs_f64() / floor.as_secs_f64()
    );
    println!("  most memory: {most:.0} MiB, beside ordinary clients {at_rest:.0} MiB");
}
