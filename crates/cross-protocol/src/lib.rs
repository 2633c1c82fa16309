//! What every protocol edge shares: admission, capability references, traces, and the
//! orchestrator, through which every call reaches the kernel.
//!
//! Edges know the kernel's types by the names that are re-exported here. The kernel itself is not
//! among them: a call is handed to [`CrossProtocolOrchestrator::run`], and to nothing else.
//!
//! ```
//! use std::collections::BTreeMap;
//! use chio_cross_protocol::{
//!     CrossProtocolOrchestrator, DiscoveryProtocol, OpenAiTargetExecutor,
//!     RouteAvailabilityStatus, TargetProtocolRegistry,
//!     plan_authoritative_route,
//! };
//! use chio_kernel::ChioKernel;
//!
//! fn build_orchestrator<'a>(kernel: &'a ChioKernel) -> CrossProtocolOrchestrator<'a> {
//!     // 1. Register target executors for every non-native protocol this
//!     //    deployment is willing to dispatch into.
//!     let openai = OpenAiTargetExecutor::default();
//!     let registry = TargetProtocolRegistry::new(DiscoveryProtocol::Native)
//!         .with_executor(&openai);
//!         // .with_executor(&mcp_executor)   // add MCP target executor
//!         // .with_executor(&a2a_executor)   // add A2A target executor
//!
//!     // 2. Declare which protocol families are available right now. The
//!     //    route planner refuses to select an unavailable target and will
//!     //    attenuate to the native fallback where allowed.
//!     let orchestrator = CrossProtocolOrchestrator::new(kernel)
//!         .with_registry(registry)
//!         .with_protocol_availability(
//!             DiscoveryProtocol::Native,
//!             RouteAvailabilityStatus::available(),
//!         )
//!         .with_protocol_availability(
//!             DiscoveryProtocol::OpenAi,
//!             RouteAvailabilityStatus::available(),
//!         )
//!         .with_protocol_availability(
//!             DiscoveryProtocol::A2a,
//!             RouteAvailabilityStatus::unavailable("a2a executor not configured"),
//!         );
//!
//!     orchestrator
//! }
//! ```

// The snippet of the documents stands above and is compiled with the tests.
// covers: CROSS-025

mod admission;
mod attenuation;
mod chunks;
mod envelope;
mod executor;
mod executors;
mod fidelity;
mod orchestrated;
mod orchestrator;
mod prepare;
mod reading;
mod registry;
mod request;
mod route;
mod tasks;
mod trace;

pub use chio_core::capability_ref::{
    CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef,
};
pub use chio_core::fidelity::{
    BridgeFidelity, BridgeSemanticHints, TargetProtocolError, target_protocol_of,
};
pub use chio_core::principal::{Credential, Principal};
pub use chio_core::protocol::DiscoveryProtocol;
pub use chio_kernel::store::{
    ApprovalRequest, MessageQuery, StoreError, StoreResult, TaskQuery, TaskRefused, TaskState,
};
pub use chio_kernel::{
    AskError, Caller, ClientNotification, Denial, DetachOnDrop, Evaluation, Gone, KernelError,
    ListKind, NoCaller, Offer, Outcome, Question, Read, ReadKind, ReadOutcome, ReadRequest,
    ServerError, ServerNotification, Session, UnusableTool,
};

pub use admission::{Admission, Refused};
pub use attenuation::attenuated;
pub use chunks::ChunkCollector;
pub use envelope::CrossProtocolCapabilityEnvelope;
pub use executor::{CrossProtocolTargetRequest, TargetProtocolExecutor};
pub use executors::{
    A2aTargetExecutor, AcpTargetExecutor, HttpTargetExecutor, McpTargetExecutor,
    OpenAiTargetExecutor,
};
pub use fidelity::{AcpCategory, Facts, Surface, fidelity};
pub use orchestrated::OrchestratedToolCall;
pub use orchestrator::CrossProtocolOrchestrator;
pub use registry::TargetProtocolRegistry;
pub use request::{MAX_ORIGIN_ID, OrchestratedRequest, Parent};
pub use route::{
    ProtocolChain, RouteAvailabilityStatus, RouteCandidate, RoutePlanningError,
    RoutePlanningOutcome, RouteSelectionDecision, RouteSelectionEvidence, plan_authoritative_route,
    route_selection_metadata,
};
pub use tasks::{
    DeferredTasks, Presented, RanTask, StateOf, TaskError, TaskLimits, TaskNames, TaskResult,
    TaskView,
};
pub use trace::{AUTHORITY_PATH, BridgeEvidence, CrossProtocolTraceContext, TraceHop};
