//! `chio capability`: tokens, made, handed on, read and checked.

mod beside;
mod delegate;
mod find;
mod import;
mod inspect;
mod issue;
mod list;
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

Examples:
  chio capability list
  chio capability issue --subject agent.key --grant files/read_file --out token.json
  chio capability verify token.json
  chio capability revoke cap-019a2b3c-4d5e";

subcommands! {
    /// List, issue, hand on, read, check and revoke capability tokens
    #[command(after_help = HELP)]
    List(list::Args) => list::run,
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
