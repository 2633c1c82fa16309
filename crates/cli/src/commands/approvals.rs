//! `chio approvals`: the inbox of calls that wait until an approver says yes.

mod answer;
mod find;
mod list;
mod show;

const HELP: &str = "\
A call of a tool that needs approval waits in the inbox of the store until somebody answers, the
caller loses interest, or its time is up. An answer is signed, for exactly this call and this once;
it works from any terminal while the kernel runs, and the call goes on within a second.

Examples:
  chio approvals list
  chio approvals show appr-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11
  chio approvals approve appr-019ace00-7d1c";

subcommands! {
    /// Answer calls that wait for approval
    #[command(after_help = HELP)]
    List(list::Args) => list::run,
    Show(show::Args) => show::run,
    Approve(answer::ApproveArgs) => answer::approve,
    Deny(answer::DenyArgs) => answer::deny,
}
