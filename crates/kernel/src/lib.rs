//! The decision: every tool call, on whatever protocol it came in, is verified, authorized,
//! guarded, run and receipted here, and nowhere else.
//!
//! [`ChioKernel::evaluate`] is the one road. Its stages hand proofs to one another that only they
//! can make: a tool server runs on a [`Permit`], and only the reserve stage makes one.

pub mod audit;
mod cache;
mod call;
mod caller;
mod catch;
mod clock;
mod config;
mod enduring;
mod error;
mod guard;
mod kernel;
mod library;
mod line;
mod log;
mod metadata;
mod onward;
mod pipeline;
pub mod proof;
mod recovery;
mod revocation;
mod road;
mod running;
mod servers;
mod session_line;
pub mod store;
mod tool_server;

pub use call::{Denial, Evaluation, Outcome, ToolCall};
pub use caller::{AskError, Caller, Gone, NoCaller, Notice, Question, Session};
pub use clock::{Clock, Randomness, SystemClock, SystemRandomness};
pub use config::{KernelConfig, Limits};
pub use enduring::{BrokenOff, Enduring};
pub use error::KernelError;
pub use guard::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Verdict};
pub use kernel::{ChioKernel, KernelParts};
pub use library::{Library, Offer, ReadKind, Reading, Shelf, Word};
pub use line::Line;
pub use onward::Onward;
pub use pipeline::{Pipeline, Shared, ask, ask_about_output};
pub use road::{Permit, Read, ReadCall, ReadOutcome};
pub use session_line::SessionLine;
pub use tool_server::{ToolInvocation, ToolOutput, ToolServerConnection};
