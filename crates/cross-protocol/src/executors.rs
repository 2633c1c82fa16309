//! The executors, one protocol each.

mod a2a;
mod acp;
mod http;
mod mcp;
mod open_ai;

pub use a2a::A2aTargetExecutor;
pub use acp::AcpTargetExecutor;
pub use http::HttpTargetExecutor;
pub use mcp::McpTargetExecutor;
pub use open_ai::OpenAiTargetExecutor;
