//! `chio key`: keys to sign with.

mod new;
mod show;

const HELP: &str = "\
Example:
  chio key new --out authority.key";

subcommands! {
    /// Make and show keys
    #[command(after_help = HELP)]
    New(new::Args) => new::run,
    Show(show::Args) => show::run,
}
