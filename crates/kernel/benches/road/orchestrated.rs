//! What the orchestrator adds: planning, narrowing and tracing, against calls that sign as much.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chio_core::canonical::Written;
use chio_cross_protocol::{CrossProtocolOrchestrator, DiscoveryProtocol, OrchestratedRequest};
use chio_kernel::{Caller, NoCaller, Session};

use crate::rig::{Place, Rig, Tool};
use crate::{Scale, median, report};

/// One core, in memory: the orchestrator against the bare kernel with equally large receipts.
pub(crate) fn in_memory(scale: Scale) {
    let rig = Rig::new(Place::Memory, 0);
    let caller = bridged();
    let evidence = evidence(&rig, &caller);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..scale.turns {
        floors.push(rig.rate_with(Tool::Echo, 1, scale.turn, &evidence));
        ours.push(rate(&rig, &caller, scale.turn));
    }
    let what = "orchestrated echo, in memory, one core / direct";
    report(what, median(floors), median(ours), Some(0.85));
}

/// A caller that speaks another protocol than the tool, so that the call crosses a bridge.
fn bridged() -> Arc<dyn Caller> {
    let session = Session::anonymous("bench", DiscoveryProtocol::A2a);
    Arc::new(NoCaller::new(session))
}

/// What the receipt of a bridged call tells about its route.
fn evidence(rig: &Rig, caller: &Arc<dyn Caller>) -> Vec<(&'static str, Written)> {
    let orchestrator = CrossProtocolOrchestrator::new(&rig.kernel);
    let (name, arguments) = Tool::Echo.arguments(0);
    let request = OrchestratedRequest::new("call-10", rig.token.clone(), "demo", name, arguments);
    let run = orchestrator.run(request, Arc::clone(caller));
    let receipt = rig.runtime.block_on(run).unwrap().evaluation.receipt.open().unwrap();
    let metadata = receipt.metadata.unwrap();
    let member = |name: &'static str| (name, Written::of(&metadata[name]).unwrap());
    vec![member("chio"), member("route_selection")]
}

fn rate(rig: &Rig, caller: &Arc<dyn Caller>, turn: Duration) -> f64 {
    let orchestrator = CrossProtocolOrchestrator::new(&rig.kernel);
    rig.runtime.block_on(async {
        let (start, mut done) = (Instant::now(), 0_u64);
        while start.elapsed() < turn {
            let (name, arguments) = Tool::Echo.arguments(0);
            let request =
                OrchestratedRequest::new("call-10", rig.token.clone(), "demo", name, arguments);
            orchestrator.run(request, Arc::clone(caller)).await.unwrap();
            done += 1;
            tokio::task::yield_now().await;
        }
        done as f64 / start.elapsed().as_secs_f64()
    })
}
