//! The native transport on a socket: a real listener, a real kernel with the demo tools, and nothing
//! between them but the edge.
#![cfg(test)]

mod calls;
mod concurrency;
mod denials;
mod frames;
mod streams;
mod world;
