//! A stdio MCP server for tests: all that the official conformance suite asks a server to have, and
//! tools that do what no server should.

mod call;
mod cancel;
mod completion;
mod media;
mod methods;
mod pages;
mod prompts;
mod resources;
mod rpc;
mod session;
mod tools;
mod wire;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;

use crate::session::Session;

const USAGE: &str = "expected nothing, `--page-size N` with N above zero, or `--only TOOL`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((page_size, only)) = options(&arguments) else {
        complain(USAGE);
        return ExitCode::from(2);
    };
    let session = Arc::new(Session::new(page_size, only));
    // Whatever still runs when the input ends, ends with it.
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match serde_json::from_str::<Value>(&line) {
            Ok(message) => methods::take(&session, message),
            Err(error) => complain(format_args!("a line is not JSON: {error}")),
        }
    }
    ExitCode::SUCCESS
}

/// How long a page of a list may be, and which tool is the only one; none for all in one piece.
fn options(arguments: &[String]) -> Option<(Option<usize>, Option<String>)> {
    match arguments {
        [] => Some((None, None)),
        [flag, size] if flag == "--page-size" => {
            size.parse().ok().filter(|size| *size > 0).map(|size| (Some(size), None))
        }
        [flag, tool] if flag == "--only" => Some((None, Some(tool.clone()))),
        _ => None,
    }
}

/// Writes a line to standard error.
fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
