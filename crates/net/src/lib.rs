//! What every network-facing crate needs once.
//!
//! [`address`] says which addresses may be reached, [`client`] is the one way out over HTTP,
//! [`sse`] reads and writes server-sent events, [`jwt`] verifies tokens of authorization servers,
//! [`serve`] lets clients connect, [`peer`] says who they are, [`door`] what they may bring along,
//! and [`rate`] how often. Time is an argument. Of the environment only `SSL_CERT_FILE` and
//! `SSL_CERT_DIR` count, where the system's root certificates are trusted.

pub mod address;
pub mod client;
pub mod door;
pub mod jwt;
pub mod peer;
pub mod rate;
pub mod serve;
pub mod sse;
