//! Servers under test: a folder of their own, their process, and bare sockets to talk to them.

mod fixture;
mod folder;
mod run;
mod server;
mod wire;

pub use fixture::mcp_fixture;
pub use folder::{Folder, copy_tree};
pub use run::{Run, Running};
pub use server::{Server, until};
pub use wire::{Wire, request};
