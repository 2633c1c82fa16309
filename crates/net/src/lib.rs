//! What every network-facing crate needs once.
//!
//! [`address`] says which addresses may be reached, [`client`] is the one way out over HTTP,
//! [`sse`] reads server-sent events, [`jsonrpc`] messages of JSON-RPC,
//! [`jwt`] verifies tokens of authorization servers,
//! [`serve`] accepts connections, [`places`] says which go when there are too many, [`memory`] bounds
//! what messages take together, and [`auth`] authenticates requests. Time is an argument. Of the
//! environment only `SSL_CERT_FILE` and `SSL_CERT_DIR` count, where the system's root certificates
//! are trusted.

pub mod address;
pub mod auth;
pub mod client;
pub mod jsonrpc;
pub mod jwt;
pub mod lines;
pub mod memory;
pub mod places;
pub mod serve;
pub mod sse;
