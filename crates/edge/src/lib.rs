//! What every protocol edge needs once, whatever it speaks.
//!
//! An edge implements [`Edge`] and offers an [`EdgeKind`], the entry of the list that a binary has
//! of its edges. [`auth`] makes a principal of an HTTP request, [`StreamListener`] accepts
//! connections over sockets, [`Settings`] carry the configuration section of an edge.

pub mod auth;
pub mod body;
pub mod call_metadata;
pub mod cors;
mod edge;
mod endpoint;
pub mod limits;
pub mod lines;
pub mod pending;
mod refusal;
pub mod reply;
mod settings;
mod stream_listener;
pub mod tasks;
pub mod tokens;
mod unix_socket;

pub use chio_cross_protocol::ChunkCollector;
pub use chio_net::places::Place;
pub use edge::{
    Carrier, Edge, EdgeContext, EdgeKind, StartResult, StreamError, Streams, UserApprovals,
};
pub use endpoint::{Endpoint, EndpointError};
pub use refusal::Refusal;
pub use settings::{Form, Setting, SettingError, SettingValue, Settings};
pub use stream_listener::{ListenError, StreamListener};
