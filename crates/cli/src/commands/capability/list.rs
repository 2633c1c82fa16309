//! `chio capability list`: who holds what, from whom, until when.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use chio_core::capability::{CapabilityToken, ChioScope, WILDCARD};
use chio_kernel::store::{ReceiptQuery, SharedStore};
use serde_json::{Value, json};

use super::find;
use crate::commands::receipt::principal_of;
use crate::date::iso;
use crate::io::Io;
use crate::store_args::{StoreArgs, block_on};
use crate::table::{Row, Table};
use crate::text;

const HELP: &str = "\
The tokens that the store knows: those that were issued into it, presented in a call, or imported. \
Newest first: until when, how it stands, its id, who holds it, and what it grants. A holder is shown \
by the name under which it called last, else by the first digits of its key; the issuer where it is \
not the store's authority.

Examples:
  chio capability list
  chio capability list --all --json";

const HEADS: [&str; 5] = ["UNTIL", "STATE", "ID", "HOLDER", "GRANTS"];

/// List who holds which tokens, from whom, until when
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Those that have expired or were revoked as well
    #[arg(long)]
    all: bool,
    /// Only those of this holder: a public key, its key file, or the name of a principal
    #[arg(long, value_name = "KEY|NAME")]
    subject: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A token, and what the store knows of it.
struct Held {
    token: CapabilityToken,
    state: &'static str,
    /// Under which name its holder called last.
    principal: Option<String>,
    is_own: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let subject = args.subject.as_ref().filter(|text| io.is_public_key(text));
    let key = match subject {
        Some(text) => Some(io.public_key("--subject", text)?),
        None => None,
    };
    let mut held = block_on(read(args, io))?;
    held.retain(|it| args.all || it.state == VALID || it.state == TO_COME);
    if let Some(name) = &args.subject {
        held.retain(|it| match &key {
            Some(key) => it.token.subject == *key,
            None => it.principal.as_ref() == Some(name),
        });
    }
    held.sort_by(|a, b| (b.token.issued_at, &b.token.id).cmp(&(a.token.issued_at, &a.token.id)));
    let left_out = held.len().saturating_sub(usize::try_from(args.limit)?);
    held.truncate(usize::try_from(args.limit)?);
    if args.json {
        let rows: Vec<Value> = held.iter().map(document).collect();
        return io.json(&json!({"capabilities": rows, "leftOut": left_out}));
    }
    if held.is_empty() {
        return io.say("none");
    }
    let ids = text::short_ids(held.iter().map(|it| it.token.id.as_str()));
    let rows: Vec<Row> = held.iter().zip(ids).map(|(it, id)| row(it, id)).collect();
    Table::of(&HEADS, 1, &rows).write(io, rows)?;
    match left_out {
        0 => Ok(()),
        more => io.say(format_args!("and {more} more: --limit shows them")),
    }
}

const VALID: &str = "valid";
const TO_COME: &str = "to come";

async fn read(args: &Args, io: &Io<'_>) -> Result<Vec<Held>> {
    let open = args.store.open_existing(io).await?;
    let (authority, store) = (open.authority_public().await?, open.shared());
    let revoked: HashSet<String> = store.revoked_since(0).await?.ids.into_iter().collect();
    let mut names = HashMap::new();
    let mut held = Vec::new();
    for token in find::all(&store).await? {
        let above = token.delegation_chain.iter().map(|link| &link.capability_id);
        let is_revoked = std::iter::once(&token.id).chain(above).any(|id| revoked.contains(id));
        let state = match token.validity() {
            _ if is_revoked => "revoked",
            validity if validity.expires_at <= io.now => "expired",
            validity if validity.issued_at > io.now => TO_COME,
            _ => VALID,
        };
        let subject = token.subject.to_hex();
        if !names.contains_key(&subject) {
            names.insert(subject.clone(), name_of(&store, &subject).await?);
        }
        let principal = names.get(&subject).cloned().flatten();
        let is_own = authority.as_ref() == Some(&token.issuer);
        held.push(Held { token, state, principal, is_own });
    }
    Ok(held)
}

/// The name under which the holder of a key called last.
async fn name_of(store: &SharedStore, subject: &str) -> Result<Option<String>> {
    let subject = Some(subject.to_owned());
    let query = ReceiptQuery { subject, newest_first: true, limit: 1, ..ReceiptQuery::default() };
    Ok(store.query(&query).await?.first().and_then(principal_of))
}

fn document(held: &Held) -> Value {
    let token = &held.token;
    json!({
        "id": token.id, "state": held.state, "subject": token.subject, "principal": held.principal,
        "issuer": token.issuer, "issued_at": token.issued_at, "expires_at": token.expires_at,
        "scope": token.scope, "handed_on": token.delegation_chain.len(),
    })
}

fn row(held: &Held, id: String) -> Row {
    let token = &held.token;
    let holder = held.principal.clone().unwrap_or_else(|| text::short_id(&token.subject.to_hex()));
    let mut note = vec![grants(&token.scope)];
    if !held.is_own {
        note.push(format!("from {}", text::short_id(&token.issuer.to_hex())));
    }
    if let Some(link) = token.delegation_chain.last() {
        note.push(format!("handed on by {}", text::short_id(&link.delegator.to_hex())));
    }
    let cells = vec![iso(token.expires_at), held.state.to_owned(), id, text::fitted(&holder, 16)];
    Row { cells, note: note.join("; ") }
}

/// What a scope grants, in short.
fn grants(scope: &ChioScope) -> String {
    let mut tools: Vec<String> = Vec::new();
    for grant in &scope.grants {
        let calls = grant.max_invocations.map_or_else(String::new, |most| format!(" x{most}"));
        tools.push(format!("{}/{}{calls}", grant.server_id, grant.tool_name));
    }
    let patterns = scope.resource_grants.iter().map(|it| ("resource", it.uri_pattern.as_str()));
    let prompts = scope.prompt_grants.iter().map(|it| ("prompt", it.prompt_name.as_str()));
    for (kind, name) in patterns.chain(prompts) {
        let all = format!("every {kind}");
        tools.push(if name == WILDCARD { all } else { format!("{kind} {name}") });
    }
    if tools.is_empty() { "nothing".to_owned() } else { tools.join(", ") }
}
