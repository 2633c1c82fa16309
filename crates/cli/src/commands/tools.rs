//! `chio tools`: what an endpoint offers.

mod list;

const HELP: &str = "\
Examples:
  chio tools list
  chio call demo echo '{\"text\": \"hello\"}'";

subcommands! {
    /// List the tools of what runs here
    #[command(after_help = HELP)]
    List(list::Args) => list::run,
}
