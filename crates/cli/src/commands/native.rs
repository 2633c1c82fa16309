//! `chio native`: the native transport, both ends.

mod call;
mod endpoint;
mod list;
mod serve;

const HELP: &str = "\
Length-prefixed canonical JSON, over standard input and output, a Unix socket or loopback TCP.

Example:
  chio native serve --unix chio.sock
  chio native call --unix chio.sock --token token.json demo echo '{\"text\": \"hello\"}'";

subcommands! {
    /// Serve and call tools over Chio's own transport
    #[command(after_help = HELP)]
    Serve(serve::Args) => serve::run,
    Call(call::Args) => call::run,
    List(list::Args) => list::run,
}
