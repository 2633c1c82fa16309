//! `chio policy`: documents that say which calls are allowed, read, explained and tried.

mod check;
mod explain;
mod init;
mod list;
mod shadowed;
mod show;
mod test;

const HELP: &str = "\
A policy is a document that says which calls are allowed, which are denied, and which wait for an
approval. It is a file, or one of those that are built in.

Examples:
  chio policy init policy.yaml
  chio policy check policy.yaml
  chio policy explain policy.yaml --tool read_file --args '{\"path\": \"/workspace/.env\"}'
  chio policy test policy.yaml cases.yaml
  chio up --policy policy.yaml";

subcommands! {
    /// Write, check, explain and test policies
    #[command(after_help = HELP)]
    Init(init::Args) => init::run,
    Check(check::Args) => check::run,
    Explain(Box<explain::Args>) => explain::run,
    Test(test::Args) => test::run,
    List(list::Args) => list::run,
    Show(show::Args) => show::run,
    Shadowed(Box<shadowed::Args>) => shadowed::run,
}
