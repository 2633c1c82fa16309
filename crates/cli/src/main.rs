//! The `chio` command: keys, capabilities, receipts and manifests from the shell.

mod a2a_agent;
mod access;
mod address;
mod admission;
mod adoption;
mod approving;
mod client_input;
mod clock;
mod commands;
mod config;
mod csv;
mod date;
mod duration;
mod edge_args;
mod edges;
mod endpoint_file;
mod files;
mod health;
mod io;
mod json_text;
mod key_file;
mod key_watch;
mod listeners;
mod live;
mod logging;
mod look;
mod mcp_client;
mod outcome;
mod own_keys;
mod policies;
mod policy_args;
mod policy_watch;
mod program;
mod queued_output;
mod reasons;
mod receipt_summary;
mod reload;
mod request_id;
mod runtime;
mod serve_args;
mod server_name;
mod servers;
mod store_args;
mod strict_input;
mod table;
mod text;
mod token_issuer;
mod toml_text;
mod trust;

use std::path::Path;
use std::process::ExitCode;

use crate::commands::CommandLine;
use crate::io::{Io, Patient};
use crate::look::Look;

/// A call allocates often, and frees on other threads: with one lock for each of a few arenas,
/// threads wait for each other more than once in every call. `.cargo/config.toml` says how soon it
/// gives memory back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command_line = match CommandLine::read(std::env::args_os()) {
        Ok(command_line) => command_line,
        Err(error) => {
            // Help goes to standard output, complaints go to standard error; a reader that has
            // gone away wanted neither.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(outcome::NOT_RUN));
        }
    };
    let mut io = Io {
        input: Some(&mut std::io::stdin()),
        output: &mut Patient(std::io::stdout()),
        errors: &mut std::io::stderr(),
        folder: Path::new(""),
        now: clock::now(),
        own: std::sync::Arc::default(),
        look: Look::of_output(),
    };
    let result = command_line.run(&mut io);
    ExitCode::from(outcome::finish(result, &mut io))
}
