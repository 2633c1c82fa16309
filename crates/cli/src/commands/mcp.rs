//! `chio mcp`: in front of an MCP server.

mod config;
mod serve;

pub(super) use serve::{CHOOSE, LISTEN};

const HELP: &str = "\
Puts Chio between an MCP client and an MCP server: every call is checked, judged by the policy, and
leaves a receipt.

Examples:
  chio mcp serve -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp serve --http -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp config --client cursor -- npx -y @modelcontextprotocol/server-filesystem .";

subcommands! {
    /// Stand in front of an MCP server
    #[command(after_help = HELP)]
    Serve(Box<serve::Args>) => serve::run,
    Config(config::Args) => config::run,
}
