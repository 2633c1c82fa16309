//! `chio store`: the store as a whole.

mod accept_restore;

const HELP: &str = "\
Example:
  chio store accept-restore --data .chio";

subcommands! {
    /// The store as a whole: what to do after it was put back to an earlier state
    #[command(after_help = HELP)]
    AcceptRestore(accept_restore::Args) => accept_restore::run,
}
