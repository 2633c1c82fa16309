//! The crate over real sockets: servers on ports of their own, TLS with certificates of their own.
#![cfg(test)]

mod auth;
mod client;
mod jwt;
mod keys;
mod places;
mod serve;
mod server;
mod stream;
mod tls;
mod tokens;
