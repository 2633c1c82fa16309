//! What every protocol edge shares: admission, capability references, traces, and the
//! orchestrator, through which every call reaches the kernel.
//!
//! Edges know the kernel's types by the names that are re-exported here. The kernel itself is not
//! among them: a call is handed to [`CrossProtocolOrchestrator::run`], and to nothing else.

mod admission;
mod attenuation;
mod bridge;
mod capability_ref;
mod log;
mod orchestrator;
mod request;
mod road;
mod trace;

pub use chio_core::protocol::DiscoveryProtocol;
pub use chio_kernel::store::{StoreError, StoreResult};
pub use chio_kernel::{
    AskError, Caller, Denial, Evaluation, Gone, KernelError, NoCaller, Outcome, Question, Session,
};

pub use admission::{Admission, ConnectionInfo, Door, Peer, Refused};
pub use attenuation::attenuated;
pub use bridge::CapabilityBridge;
pub use capability_ref::{CapabilityRefError, CrossProtocolCapabilityRef};
pub use log::Log;
pub use orchestrator::CrossProtocolOrchestrator;
pub use request::{MAX_ORIGIN_ID, OrchestratedRequest};
pub use road::Road;
pub use trace::{AUTHORITY_PATH, BridgeEvidence, CrossProtocolTraceContext, TraceHop};
