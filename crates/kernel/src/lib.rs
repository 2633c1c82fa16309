//! The decision: every tool call, on whatever protocol it came in, is verified, authorized,
//! guarded, run and receipted here, and nowhere else.
//!
//! [`ChioKernel::evaluate`] is the one road. Its stages hand proofs to one another that only they
//! can make: a tool server runs on a [`Permit`], and only the reserve stage makes one.

pub mod audit;
mod cache;
mod call;
mod call_context;
mod caller;
mod catch;
mod clock;
mod config;
mod control;
mod detach_on_drop;
mod error;
mod guard;
mod kernel;
mod log;
pub mod mark;
mod metadata;
mod onward;
mod pipeline;
pub mod proof;
mod recovery;
mod resource_provider;
mod revocation;
mod road;
mod running;
mod servers;
mod session_context;
mod shown;
pub mod store;
mod tool_server;
mod work;

pub use call::{Denial, Evaluation, Outcome, ServerError, ToolCall};
pub use call_context::CallContext;
pub use caller::{AskError, Caller, Gone, NoCaller, Question, ServerNotification, Session};
pub use clock::{Clock, Randomness, SystemClock, SystemRandomness};
pub use config::{KernelConfig, Limits};
pub use detach_on_drop::{DetachOnDrop, Panicked};
pub use error::KernelError;
pub use guard::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Verdict};
pub use kernel::{ChioKernel, KernelParts, RecoveredKernel, ToolProtocols};
pub use log::DurableReceipt;
pub use onward::Onward;
pub use pipeline::{GuardMemo, Pipeline, ask, ask_about_output};
pub use resource_provider::{
    ClientNotification, ListKind, Offer, ReadKind, Reading, ResourceProvider,
};
pub use road::{Permit, Read, ReadOutcome, ReadRequest};
pub use session_context::SessionContext;
pub use shown::UnusableTool;
pub use tool_server::{ToolInvocation, ToolOutput, ToolServerConnection};
pub use work::{Spent, Work};
