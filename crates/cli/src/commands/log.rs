//! `chio log`: the receipt log of a store, checked as a whole.

mod audit;
mod consistency;

const HELP: &str = "\
Every kernel of a store writes its own log. Receipts are its leaves; checkpoints, signed by the
kernel and chained to one another, commit to them.

Example:
  chio log audit --authority authority.pub";

subcommands! {
    /// Check the receipt log
    #[command(after_help = HELP)]
    Audit(audit::Args) => audit::run,
    Consistency(consistency::Args) => consistency::run,
}
