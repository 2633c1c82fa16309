//! What the native edge adds: the same durable calls, over a Unix socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use chio_core::frame;
use chio_core::message::{AgentMessage, ToolCallRequest};
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Refused, Session,
};
use chio_edge::{Endpoint, StreamListener};
use chio_native_edge::NativeService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::rig::{Place, Rig, Tool, fresh_folder};
use crate::throughput::THREADS;
use crate::{Scale, median, report};

/// Calls in flight.
const IN_FLIGHT: usize = 64;

struct Anybody(Arc<CrossProtocolOrchestrator<'static>>);

#[async_trait]
impl Admission for Anybody {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        principal: Principal,
    ) -> Result<Session, Refused> {
        Ok(self.0.open_session(protocol, principal))
    }
}

pub(crate) fn unix_socket(scale: Scale) {
    for (tool, name) in [(Tool::Echo, "echo"), (Tool::NotePut, "note_put")] {
        let rig = Rig::new(Place::Unindexed, THREADS);
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..scale.turns {
            floors.push(rig.rate(tool, IN_FLIGHT, scale.turn));
            ours.push(over_socket(&rig, tool, scale));
        }
        let what = format!("native {name}, Unix socket, 64 in flight / in process");
        report(&what, median(floors), median(ours), Some(0.6));
    }
}

fn over_socket(rig: &Rig, tool: Tool, scale: Scale) -> f64 {
    let folder = fresh_folder();
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&rig.kernel).detached());
    let admission = Arc::new(Anybody(Arc::clone(&orchestrator)));
    let service = NativeService::new(orchestrator, admission);
    let shutdown = CancellationToken::new();
    let endpoint = Endpoint::Unix(path.clone());
    let listener = rig.runtime.block_on(StreamListener::bind(&endpoint)).unwrap();
    let serving = rig.runtime.spawn(listener.serve(Arc::new(service), shutdown.clone()));
    let frames: Vec<Vec<u8>> = (0..IN_FLIGHT).map(|number| request(rig, tool, number)).collect();
    // The client has a thread of its own, as it would be a process of its own.
    let client = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(drive(&path, &frames, scale))
    });
    let rate = client.join().unwrap();
    shutdown.cancel();
    rig.runtime.block_on(serving).unwrap();
    let _ = std::fs::remove_dir_all(folder);
    rate
}

fn request(rig: &Rig, tool: Tool, number: usize) -> Vec<u8> {
    let (name, params) = tool.arguments(number);
    let id = format!("call-{number}");
    let request = ToolCallRequest::new(id, (*rig.token).clone(), "demo", name, params);
    frame::encode(&AgentMessage::ToolCallRequest(Box::new(request))).unwrap()
}

/// Keeps this many calls in flight: each answer lets its id be used again.
async fn drive(path: &std::path::Path, frames: &[Vec<u8>], scale: Scale) -> f64 {
    let (mut reader, mut writer) = UnixStream::connect(path).await.unwrap().into_split();
    let done = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    writer.write_all(&frames.concat()).await.unwrap();
    let (mut buffer, mut filled, mut answered) = (vec![0; 1 << 20], 0, 0_usize);
    while answered < frames.len() {
        filled += reader.read(&mut buffer[filled..]).await.unwrap();
        let (mut at, mut again) = (0, Vec::new());
        while filled - at >= 4 {
            let length = u32::from_be_bytes(buffer[at..at + 4].try_into().unwrap()) as usize;
            if filled - at < 4 + length {
                break;
            }
            let id = call_number(&buffer[at + 4..at + 4 + length]);
            at += 4 + length;
            if stop.load(Ordering::Relaxed) {
                answered += 1;
            } else {
                done.fetch_add(1, Ordering::Relaxed);
                again.extend_from_slice(&frames[id]);
            }
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        writer.write_all(&again).await.unwrap();
        stop.store(start.elapsed() >= scale.turn, Ordering::Relaxed);
    }
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

/// The number in the `id` of a canonical response, its first member.
fn call_number(payload: &[u8]) -> usize {
    let digits = payload[b"{\"id\":\"call-".len()..].iter().take_while(|it| it.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
