//! `chio policy shadowed`: what a policy on trial would have done, from receipts.

use std::collections::BTreeMap;

use anyhow::Result;
use chio_core::receipt::{ChioReceipt, LoggedReceipt};
use chio_kernel::store::{ReceiptQuery, ReceiptRow, SharedStore};
use chio_policy::shadow::SHADOW;
use serde_json::{Value, json};

use crate::commands::receipt::Filter;
use crate::io::Io;
use crate::store_args::{StoreArgs, block_on};
use crate::table::{Row, Table};
use crate::text;

/// How many receipts are read at once.
const PAGE: usize = 1000;

const HELP: &str = "\
A policy on trial (`chio up --shadow-policy`) judges every call and stops none; what it would have
done stands in the call's receipt. Here that is told for each guard and tool: how often, and the
latest receipt, which `chio receipt show` shows with the reason. Answers count as well: those that
it would have held back (deny output), and those of which it would have taken a part out (redact
output).

Examples:
  chio policy shadowed --since 1d
  chio policy shadowed --data .chio --json";

/// Tell what a policy on trial would have stopped
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What it may do with a call, and with what a tool answers.
const WORDS: [&str; 4] = ["deny", "ask", DENY_OUTPUT, REDACT_OUTPUT];
const DENY_OUTPUT: &str = "deny output";
const REDACT_OUTPUT: &str = "redact output";

/// What a policy on trial would have done with one call, or with its answer.
#[derive(Debug, PartialEq, Eq)]
struct Note<'a> {
    policy_hash: &'a str,
    /// What it would have done, one of [`WORDS`], by which guard; none where it would have allowed.
    stop: Option<(&'a str, &'a str)>,
}

impl<'a> Note<'a> {
    /// Reads what stands in a receipt, such as `HASH would deny: GUARD: REASON`.
    fn read(details: &'a str) -> Option<Self> {
        let (policy_hash, rest) = details.split_once(" would ")?;
        if rest == "allow" {
            return Some(Self { policy_hash, stop: None });
        }
        let (word, rest) = rest.split_once(": ")?;
        let guard = rest.split_once(": ").map_or(rest, |(guard, _)| guard);
        WORDS.contains(&word).then_some(Self { policy_hash, stop: Some((word, guard)) })
    }

    /// All that stand in a receipt: about the call in its evidence, about the answer behind it.
    fn all(receipt: &'a ChioReceipt) -> Vec<Self> {
        let evidence = receipt.evidence.iter().filter(|it| it.guard_name == SHADOW);
        let mut notes: Vec<Self> =
            evidence.filter_map(|it| Self::read(it.details.as_deref()?)).collect();
        let noted = receipt.metadata.as_ref().and_then(|it| it.pointer("/post_invocation/notes"));
        let noted = noted.and_then(Value::as_array).into_iter().flatten();
        for text in noted.filter(|it| it["guard"] == SHADOW).filter_map(|it| it["note"].as_str()) {
            let Some(note) = Self::read(text).filter(|it| !it.is_about_call()) else { continue };
            // What it would have denied would have had no answer. A stream has a note for each
            // reason, and is still one call.
            let denies = |it: &Self| {
                it.policy_hash == note.policy_hash
                    && it.stop.is_some_and(|(word, _)| word == "deny")
            };
            if !notes.contains(&note) && !notes.iter().any(denies) {
                notes.push(note);
            }
        }
        notes
    }

    fn is_about_call(&self) -> bool {
        self.stop.is_none_or(|(word, _)| matches!(word, "deny" | "ask"))
    }
}

/// What one policy on trial would have done.
#[derive(Debug, Default)]
struct Trial {
    calls: u64,
    /// How many calls, by what it would have done.
    totals: BTreeMap<String, u64>,
    /// By what it would have done, the guard and the tool.
    stops: BTreeMap<(String, String, String), Stop>,
}

#[derive(Debug, Default)]
struct Stop {
    calls: u64,
    latest: String,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let query = args.filter.query(io, PAGE)?;
    let trials = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        read(&store, query).await
    })?;
    if args.json {
        let rows: Vec<Value> = trials.iter().map(|(hash, trial)| document(hash, trial)).collect();
        return io.json(&json!({"policies": rows}));
    }
    if trials.is_empty() {
        io.say("no policy was on trial: `chio up --shadow-policy FILE|NAME` tries one")?;
    }
    for (hash, trial) in &trials {
        show(io, hash, trial)?;
    }
    Ok(())
}

/// Reads all receipts that the query leaves, newest first; the policies in the same order.
async fn read(store: &SharedStore, mut query: ReceiptQuery) -> Result<Vec<(String, Trial)>> {
    let mut trials: Vec<(String, Trial)> = Vec::new();
    loop {
        let rows = store.query(&query).await?;
        let Some(last) = rows.last() else { return Ok(trials) };
        query.cursor = Some(last.cursor);
        rows.iter().filter_map(call_of).for_each(|receipt| add(&mut trials, &receipt));
    }
}

/// The receipt of a call. What cannot be read is for `chio log audit` to tell.
fn call_of(row: &ReceiptRow) -> Option<Box<ChioReceipt>> {
    match LoggedReceipt::from_slice(&row.body) {
        Ok(LoggedReceipt::Call(receipt)) => Some(receipt),
        _ => None,
    }
}

fn add(trials: &mut Vec<(String, Trial)>, receipt: &ChioReceipt) {
    let notes = Note::all(receipt);
    for (index, note) in notes.iter().enumerate() {
        let known = trials.iter().position(|(hash, _)| hash == note.policy_hash);
        let place = known.unwrap_or_else(|| {
            trials.push((note.policy_hash.to_owned(), Trial::default()));
            trials.len() - 1
        });
        let Some((_, trial)) = trials.get_mut(place) else { continue };
        trial.calls += u64::from(note.is_about_call());
        if let Some((word, guard)) = note.stop {
            // Two guards may have something against one answer.
            let same = |it: &Note<'_>| {
                it.policy_hash == note.policy_hash && it.stop.is_some_and(|(it, _)| it == word)
            };
            if !notes.iter().take(index).any(same) {
                *trial.totals.entry(word.to_owned()).or_default() += 1;
            }
            let tool = format!("{}/{}", receipt.tool_server, receipt.tool_name);
            let stop = trial.stops.entry((word.to_owned(), guard.to_owned(), tool)).or_default();
            stop.calls += 1;
            if stop.latest.is_empty() {
                stop.latest.clone_from(&receipt.id);
            }
        }
    }
}

fn count(trial: &Trial, word: &str) -> u64 {
    trial.totals.get(word).copied().unwrap_or_default()
}

fn show(io: &mut Io<'_>, hash: &str, trial: &Trial) -> Result<()> {
    io.field("on trial", hash)?;
    let calls = text::count(usize::try_from(trial.calls)?, "call");
    let [denied, asked, held_back, redacted] = WORDS.map(|word| count(trial, word));
    io.field("judged", format_args!("{calls}: would deny {denied}, would ask about {asked}"))?;
    let outputs = format!("would deny {held_back}, would redact {redacted}");
    io.field("", format_args!("outputs: {outputs}"))?;
    let row = |((word, guard, tool), stop): (&(String, String, String), &Stop)| Row {
        cells: vec![
            word.clone(),
            stop.calls.to_string(),
            guard.clone(),
            text::short_id(&stop.latest),
            tool.clone(),
        ],
        note: String::new(),
    };
    let rows: Vec<Row> = trial.stops.iter().map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    Table::of(&["WOULD", "CALLS", "GUARD", "LATEST", "TOOL"], 0, &rows).write(io, rows)
}

fn document(hash: &str, trial: &Trial) -> Value {
    let row = |((word, guard, tool), stop): (&(String, String, String), &Stop)| {
        let (would, about) = match word.strip_suffix(" output") {
            Some(would) => (would, "output"),
            None => (word.as_str(), "call"),
        };
        json!({"would": would, "about": about, "guard": guard, "tool": tool, "calls": stop.calls,
            "latest_receipt_id": stop.latest})
    };
    json!({
        "policy_hash": hash,
        "calls": trial.calls,
        "would_deny": count(trial, "deny"),
        "would_ask": count(trial, "ask"),
        "would_deny_output": count(trial, DENY_OUTPUT),
        "would_redact_output": count(trial, REDACT_OUTPUT),
        "stops": trial.stops.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::Note;

    #[test]
    fn what_stands_in_a_receipt_is_read() {
        let note = |stop| Some(Note { policy_hash: "abc", stop });
        for (details, expected) in [
            ("abc would allow", note(None)),
            ("abc would deny: egress: no: way", note(Some(("deny", "egress")))),
            ("abc would ask: human-in-loop: `x`", note(Some(("ask", "human-in-loop")))),
            ("abc would deny output: egress: a", note(Some(("deny output", "egress")))),
            ("abc would redact output: secret-leak", note(Some(("redact output", "secret-leak")))),
            ("abc would dance: egress: x", None),
            ("abc would deny", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(Note::read(details), expected, "{details}");
        }
    }
}
