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

const USAGE: &str =
    "expected nothing, `--page-size N` with N above zero, `--only TOOL`, or `--also TOOL`";

/// What the server is told on its command line.
#[derive(Debug, Default)]
struct Options {
    /// How long a page of a list may be; none for all in one piece.
    page_size: Option<usize>,
    /// Which tool is the only one.
    only: Option<String>,
    /// Which tool is there that otherwise is not.
    also: Option<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = options(&arguments) else {
        complain(USAGE);
        return ExitCode::from(2);
    };
    let session = Arc::new(Session::new(options));
    // Whatever still runs when the input ends, ends with it.
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match serde_json::from_str::<Value>(&line) {
            Ok(message) => methods::take(&session, message),
            Err(error) => complain(format_args!("a line is not JSON: {error}")),
        }
    }
    ExitCode::SUCCESS
}

fn options(arguments: &[String]) -> Option<Options> {
    let none = Options::default();
    match arguments {
        [] => Some(none),
        [flag, size] if flag == "--page-size" => {
            let page_size = size.parse().ok().filter(|size| *size > 0)?;
            Some(Options { page_size: Some(page_size), ..none })
        }
        [flag, tool] if flag == "--only" => Some(Options { only: Some(tool.clone()), ..none }),
        [flag, tool] if flag == "--also" => Some(Options { also: Some(tool.clone()), ..none }),
        _ => None,
    }
}

/// Writes a line to standard error.
fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
