//! `chio a2a`: in front of an A2A agent.

mod serve;

const HELP: &str = "\
Puts Chio in front of an A2A agent: each of its skills becomes a tool, every call is checked, judged
by the policy, and leaves a receipt. Our own tools are served to A2A clients by `chio up` and
`chio serve`.

Examples:
  chio a2a serve --target https://agent.example.com
  chio tools list --server a2a:agent.example.com";

subcommands! {
    /// Stand in front of an A2A agent
    #[command(after_help = HELP)]
    Serve(Box<serve::Args>) => serve::run,
}
