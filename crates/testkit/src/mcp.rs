//! A client of MCP over HTTP, made of bytes on sockets: nothing that a test does not ask for is done.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what breaks the rules of the transport fails the test"
)]

mod checks;
mod http;
mod session;

pub use http::{Answer, Request, Wire};
pub use session::{Door, Event, Session, Stream, initialize, receipt_of, text_of};
