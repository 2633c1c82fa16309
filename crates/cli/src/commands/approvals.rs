//! `chio approvals`: the inbox of calls that wait until an approver says yes.

mod answer;
mod find;
mod list;
mod show;

const HELP: &str = "\
A call of a tool that needs approval waits in the inbox of the store until an approver answers, the
caller loses interest, or its time is up. An answer is signed, for exactly this call and this once;
it works from any terminal while the kernel runs, and the call goes on within a second.

Examples:
  chio approvals list
  chio approvals show appr-019ace00-7d1c
  chio approvals approve appr-019ace00-7d1c";

subcommands! {
    /// Answer calls that wait for approval
    #[command(after_help = HELP)]
    List(list::Args) => list::run,
    Show(show::Args) => show::run,
    Approve(answer::ApproveArgs) => answer::approve,
    Deny(answer::DenyArgs) => answer::deny,
}
