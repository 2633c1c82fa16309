//! `chio key`: keys to sign with.

mod new;
mod public;
mod show;

const HELP: &str = "\
Examples:
  chio key new --out authority.key
  chio key public --out authority.pub    of the store in .chio, for auditors";

subcommands! {
    /// Make and show keys
    #[command(after_help = HELP)]
    New(new::Args) => new::run,
    Show(show::Args) => show::run,
    Public(public::Args) => public::run,
}
