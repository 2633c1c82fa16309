//! What must hold of a store at any moment, given what was answered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chio_core::canonical;
use chio_core::message::ToolCallResponse;
use chio_core::receipt::{ChioReceipt, Decision, Execution};
use serde_json::Value;

use crate::snapshot::{Entry, Open, Snapshot};

/// What the callers know.
#[derive(Default)]
pub(crate) struct Record {
    /// Every answer that came.
    pub(crate) answers: Vec<ToolCallResponse>,
    /// How many of them are known to verify.
    verified: usize,
    /// Entries as they were last read.
    pub(crate) parsed: HashMap<i64, Arc<Entry>>,
}

/// A budget that must come out right.
pub(crate) struct Counted {
    /// The token and grant that are debited.
    pub(crate) capability: &'static str,
    pub(crate) grant: u32,
    /// The tokens under which calls are made: itself, or those that come from it.
    pub(crate) presented: &'static [&'static str],
    /// The most calls.
    pub(crate) calls: Option<u64>,
    /// The most cents.
    pub(crate) cents: Option<u64>,
}

/// What is wrong with a store.
pub(crate) fn problems(
    snapshot: &Snapshot,
    record: &mut Record,
    counted: &[Counted],
) -> Vec<String> {
    let mut found = Vec::new();
    check_unique(snapshot, &mut found);
    check_answers(snapshot, record, &mut found);
    check_notes(snapshot, &mut found);
    for budget in counted {
        check_budget(snapshot, budget, &mut found);
    }
    found
}

fn request_id(receipt: &ChioReceipt) -> Option<&str> {
    receipt.metadata.as_ref()?.pointer("/receipt_context/request_id")?.as_str()
}

fn check_unique(snapshot: &Snapshot, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for entry in &snapshot.receipts {
        let receipt = &entry.receipt;
        let Some(request) = request_id(receipt) else {
            found.push(format!("receipt {} is of no request", receipt.id));
            continue;
        };
        for name in [receipt.id.as_str(), request] {
            if !seen.insert(name) {
                found.push(format!("`{name}` occurs a second time"));
            }
        }
        let key = receipt.kernel_key.to_hex();
        if snapshot.logs.get(&key) != Some(&entry.log) {
            found.push(format!("receipt {} is in the log of another kernel", receipt.id));
        }
    }
    for open in &snapshot.intents {
        let request = open.reservation.intent.request_id.as_str();
        if !seen.insert(request) {
            found.push(format!("call `{request}` is open and has a receipt, or is open twice"));
        }
    }
}

/// Whatever was answered has its receipt in the log, to the byte.
fn check_answers(snapshot: &Snapshot, record: &mut Record, found: &mut Vec<String>) {
    for answer in record.answers.iter().skip(record.verified) {
        if let Err(error) = answer.receipt.verify() {
            found.push(format!("the receipt of answer `{}` does not verify: {error}", answer.id));
        }
    }
    record.verified = record.answers.len();
    let logged: HashMap<&str, &Entry> =
        snapshot.receipts.iter().map(|entry| (entry.receipt.id.as_str(), &**entry)).collect();
    for answer in &record.answers {
        match logged.get(answer.receipt.id.as_str()) {
            None => found.push(format!("lost: the receipt of answer `{}`", answer.id)),
            Some(entry) if entry.receipt == answer.receipt => {}
            Some(_) => found.push(format!("another receipt than that of answer `{}`", answer.id)),
        }
    }
    // Equal receipts have equal bytes, if those in the log are canonical.
    for entry in record.answers.iter().rev().take(20).filter_map(|it| logged.get(&*it.receipt.id)) {
        if canonical::to_vec(&entry.receipt).unwrap() != entry.body {
            found.push(format!("receipt {} is not canonical", entry.receipt.id));
        }
    }
}

/// What the tool has done is recorded once, and what is recorded as done, it has done.
fn check_notes(snapshot: &Snapshot, found: &mut Vec<String>) {
    let mut accounts: HashMap<&str, Vec<Account<'_>>> = HashMap::new();
    for entry in snapshot.receipts.iter().filter(|entry| entry.receipt.tool_name == "note_put") {
        let text = text_of(&entry.receipt.action.parameters);
        accounts.entry(text).or_default().push(Account::Receipt(&entry.receipt));
    }
    for open in &snapshot.intents {
        let intent = &open.reservation.intent;
        if intent.tool_name == "note_put" {
            accounts.entry(text_of(&intent.action.parameters)).or_default().push(Account::Open);
        }
    }
    let mut put = HashSet::new();
    for text in &snapshot.notes {
        if !put.insert(text.as_str()) {
            found.push(format!("note `{text}` was put twice"));
        }
        match accounts.get(text.as_str()).map(Vec::as_slice) {
            None => found.push(format!("lost: note `{text}` was put without a record")),
            Some([Account::Open]) => {}
            Some([Account::Receipt(receipt)]) if may_have_run(receipt) => {}
            Some([_]) => found.push(format!("note `{text}` was put and denied")),
            Some(several) => {
                found.push(format!("note `{text}` has {} records", several.len()));
            }
        }
    }
    put.extend(snapshot.notes_since.iter().map(String::as_str));
    for (text, accounts) in accounts {
        let allowed = |it: &Account<'_>| matches!(it, Account::Receipt(r) if r.decision == Some(Decision::Allow));
        if accounts.iter().any(allowed) && !put.contains(text) {
            found.push(format!("note `{text}` is recorded and was not put"));
        }
    }
}

/// What is known of a side effect.
enum Account<'a> {
    Receipt(&'a ChioReceipt),
    Open,
}

fn text_of(parameters: &Value) -> &str {
    parameters["text"].as_str().unwrap()
}

/// Whether the receipt admits that the tool was called.
fn may_have_run(receipt: &ChioReceipt) -> bool {
    receipt.execution() != Some(Execution::NotBegun)
}

/// What was debited is what receipts and open intents say, and never more than was granted.
fn check_budget(snapshot: &Snapshot, budget: &Counted, found: &mut Vec<String>) {
    let name = format!("budget {} of `{}`", budget.grant, budget.capability);
    let is_it = |id: &str, index: Option<u64>| {
        budget.presented.contains(&id) && index == Some(u64::from(budget.grant))
    };
    let (mut calls, mut cents) = (0, 0);
    for entry in &snapshot.receipts {
        let receipt = &entry.receipt;
        let metadata = receipt.metadata.as_ref().unwrap();
        let index = metadata.pointer("/attribution/grant_index").and_then(Value::as_u64);
        if !is_it(&receipt.capability_id, index) {
            continue;
        }
        if receipt.execution() == Some(Execution::Failed) {
            found.push(format!("{name}: a tool failed, which these tests do not expect"));
        }
        if may_have_run(receipt) {
            calls += 1;
            let cost = metadata.pointer("/financial/cost_charged").and_then(Value::as_u64);
            cents += cost.unwrap_or_default();
        }
    }
    for Open { reservation, chosen, .. } in &snapshot.intents {
        let taken = &reservation.alternatives[*chosen];
        if is_it(&reservation.intent.capability_id, Some(u64::from(taken.grant_index))) {
            calls += 1;
            cents += taken.price.as_ref().map_or(0, |price| price.units);
        }
    }
    let key = (budget.capability.to_owned(), budget.grant);
    let debited = snapshot.budgets.get(&key).copied().unwrap_or_default();
    if budget.calls.is_some_and(|most| debited.0 != calls || calls > most) {
        let most = budget.calls;
        found.push(format!("{name}: {} calls debited, {calls} recorded, of {most:?}", debited.0));
    }
    if budget.cents.is_some_and(|most| debited.1 != cents || cents > most) {
        let most = budget.cents;
        found.push(format!("{name}: {} cents debited, {cents} recorded, of {most:?}", debited.1));
    }
}
