//! `chio capability`: tokens, made, handed on, read and checked.

mod delegate;
mod import;
mod inspect;
mod issue;
mod revoke;
mod scope;
mod verify;
mod view;

use uuid::Uuid;

/// What a text is not when it is no token.
const TOKEN: &str = "a capability token";

const HELP: &str = "\
A capability token says who may call which tools, until when. Its issuer signs it; its subject uses
it, and may hand a part of it on where the token says so.

Example:
  chio capability issue --key authority.key --subject agent.key --grant files/read_file";

subcommands! {
    /// Issue, hand on, read, check and revoke capability tokens
    #[command(after_help = HELP)]
    Issue(issue::Args) => issue::run,
    Delegate(delegate::Args) => delegate::run,
    Inspect(inspect::Args) => inspect::run,
    Verify(verify::Args) => verify::run,
    Revoke(revoke::Args) => revoke::run,
    Import(import::Args) => import::run,
}

/// A name for a token that no other has.
fn new_id() -> String {
    format!("cap-{}", Uuid::now_v7())
}
