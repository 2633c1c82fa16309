//! A store that does not sync, under the same power cut: the loss shows. Without this, the other
//! tests could pass because nothing is ever lost here.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use chio_core::protocol::DiscoveryProtocol;
use chio_demo::{DemoOptions, DemoServer};
use chio_kernel::{
    ChioKernel, Clock, KernelConfig, KernelParts, NoCaller, Pipeline, Session, SystemClock,
    SystemRandomness, ToolCall,
};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::token::{grant, token};
use serde_json::json;

use crate::load::runtime;
use crate::shim::{Disk, Spared};
use crate::support::{Chance, World, agent};

/// Says which folder the child works in, and whether it syncs.
const CHILD: &str = "CHIO_CRASH_CHILD";
const SYNC: &str = "CHIO_CRASH_SYNC";
/// Calls that the child answers before it is killed.
const CALLS: usize = 20;

#[test]
fn what_a_store_that_does_not_sync_has_answered_is_lost_in_a_power_cut() {
    let (mut chance, runtime) = (Chance::of("unsynced"), runtime());
    for sync in [true, false] {
        let world = World::new();
        let Some(disk) = Disk::of(&world, "power cuts without syncs") else { return };
        // Made before, so that only what is appended is at stake.
        world.serve().end();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "unsynced::the_process_that_answers", "--nocapture", "--ignored"]);
        child.env(CHILD, world.data()).env(SYNC, if sync { "yes" } else { "no" });
        let mut child = disk.under(&mut child).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let answered: Vec<String> = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("answered ").map(str::to_owned))
            .take(CALLS)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answered.len(), CALLS);
        disk.cut(Spared::None, &mut chance);
        let url = StoreUrl::Sqlite(world.data());
        let opening = OpenStore::open_existing(&url, Arc::new(SystemClock::default()));
        let store = runtime.block_on(opening).unwrap();
        let shared = store.shared();
        let kept = runtime.block_on(async {
            let mut kept = 0;
            for id in &answered {
                kept += usize::from(shared.find(id).await.unwrap().is_some());
            }
            kept
        });
        assert_eq!(kept, if sync { CALLS } else { 0 }, "synced: {sync}");
    }
}

/// Not a test of its own: what the test above starts and kills.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn the_process_that_answers() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let synced = std::env::var(SYNC).is_ok_and(|it| it == "yes");
    runtime().block_on(answer(Path::new(&folder), synced));
}

#[expect(clippy::print_stdout, reason = "this is how the answers reach the test")]
async fn answer(folder: &Path, synced: bool) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let store = if synced {
        OpenStore::open(&StoreUrl::Sqlite(folder.to_owned()), Arc::clone(&clock)).await
    } else {
        OpenStore::open_unsynced(folder, Arc::clone(&clock)).await
    }
    .unwrap();
    let slot = store.take_slot(None).await.unwrap();
    let authority = store.authority().await.unwrap().unwrap();
    let public_key = slot.key.public_key().clone();
    let kernel = ChioKernel::start(KernelParts {
        config: KernelConfig {
            trusted_issuers: vec![authority.public_key().clone()],
            ..KernelConfig::default()
        },
        key: slot.key,
        ledger: slot.ledger,
        store: store.shared(),
        clock: Arc::clone(&clock),
        randomness: Arc::<SystemRandomness>::default(),
        pipeline: Pipeline::none(),
    })
    .await
    .unwrap();
    let now = clock.unix_seconds();
    let demo = DemoServer::new(DemoOptions { public_key, clock, notes: None }).unwrap();
    kernel.register_tool_server(Box::new(demo)).unwrap();
    let subject = agent().public_key().clone();
    let token = token(&authority, &subject, "cap-unsynced", vec![grant("echo")], now);
    let session = Session::anonymous("crash", DiscoveryProtocol::Native);
    let caller = Arc::new(NoCaller::new(session));
    loop {
        let (id, arguments) = (kernel.new_request_id(), json!({"text": "hi"}));
        let call = ToolCall::new(id, token.clone(), "demo", "echo", arguments);
        let answer = kernel.evaluate(call, Arc::clone(&caller) as _).await.unwrap();
        println!("answered {}", answer.receipt.id);
    }
}
