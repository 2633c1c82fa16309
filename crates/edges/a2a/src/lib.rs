//! Agent2Agent, as a server: the tools of this kernel as skills of one agent.
//!
//! One endpoint speaks three dialects, told apart by their methods: A2A 1.0, A2A 0.3 and the
//! dialect of Chio's own documents. Each decodes into the same request and encodes the same task;
//! every message that calls a skill goes through the orchestrator, and tasks of one dialect can be
//! read in another. `GET /.well-known/agent-card.json` says what there is; `/strict` has a card
//! that keeps to the schema of A2A, and `/skills/{id}` one for each skill.

mod arguments;
mod bridge;
mod call;
mod call_metadata;
mod call_report;
mod caller;
mod card;
mod card_url;
mod catalog;
mod config;
mod contexts;
mod convert;
mod dialect;
mod error;
mod http;
mod limits;
mod message;
mod modes;
mod principals;
mod record;
mod running;
mod send;
mod sent;
mod service;
mod settings;
mod task_ids;
mod tasks;

pub use chio_edge::limits::Rate;

pub use config::{A2aEdgeConfig, A2aError};
pub use limits::A2aLimits;
pub use service::{A2aService, EDGE};
