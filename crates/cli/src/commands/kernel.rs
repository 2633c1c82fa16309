//! `chio kernel`: the kernels of a store.

mod admit;
mod certify;
mod list;
mod stop;

const HELP: &str = "\
A kernel signs receipts with a key of its own. The authority of a store vouches for each with a
certificate, so that an auditor needs to know the authority's public key only.

Example:
  chio kernel list";

subcommands! {
    /// The kernels of a store: who they are, who vouches for them, and the emergency stop
    #[command(after_help = HELP)]
    List(list::Args) => list::run,
    Certify(certify::Args) => certify::run,
    Admit(admit::Args) => admit::run,
    Stop(stop::StopArgs) => stop::stop,
    Resume(stop::ResumeArgs) => stop::resume,
}
