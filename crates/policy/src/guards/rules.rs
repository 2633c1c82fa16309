//! Rules in Cedar, as a guard.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use chio_core::fidelity::BridgeFidelity;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{GuardMemo, Verdict, Work};
use chio_yaml::{Item, Key, Place, Section};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::rules::{Otherwise, Rules, Scope, Source};

/// How long a file of rules may be, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// How many rules are tried in search of a call that one forbids.
const MAX_TRIED: usize = 64;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "rules",
    section: "chio.rules",
    about: "Rules in Cedar, over agent, server, tool and a context of what the call does and where \
            it comes from. A `forbid` wins over everything; `@id`, `@reason` and `@approval` name \
            a rule, explain it, and ask an approver instead of denying. A rule that fails denies.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "default",
            "`allow` or `deny`",
            "allow",
            "what becomes of calls that no rule speaks of; `deny` leaves only what a `permit` names",
        ),
        Key::new("cedar", "rules in Cedar, as a block after `|`", "none", "rules in the document"),
        Key::new(
            "file",
            "a path, relative to the document",
            "none",
            "rules in a file of their own",
        ),
    ],
    always: false,
    build,
};

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    section.enabled(true)?;
    let words = [("allow", Otherwise::Allow), ("deny", Otherwise::Deny)];
    let otherwise = section.one_of("default", &words).unwrap_or_default();
    let (inline, named) = (section.text("cedar"), section.text("file"));
    let loaded = match named {
        Some(item) => Some((item, read_file(section, item, building)?)),
        None => None,
    };
    let mut sources: Vec<Source<'_>> = Vec::new();
    if let Some(item) = inline {
        sources.push(Source { text: item.text, start: start_of(item), file: None });
    }
    if let Some((item, text)) = &loaded {
        let start = Place { file: item.text.into(), line: 1, column: 1 };
        sources.push(Source { text, start, file: Some(item.text) });
    }
    let rules = Rules::read(&sources, otherwise, section.problems())?;
    if otherwise == Otherwise::Deny && !rules.permits_anything() {
        section.problem("default", "`deny` without any rule that permits denies every call");
        return None;
    }
    if rules.is_empty() {
        return None;
    }
    let forbidden = forbidden(&rules);
    Some(Built::deciding(KIND.name, forbidden, move |input| Ok(rules.ask(input))))
}

/// Where the text of a member begins. The place of a block is that of its first line with words.
fn start_of(item: Item<'_>) -> Place {
    let blank = item.text.chars().take_while(|c| *c == '\n').count();
    Place { line: item.place.line.saturating_sub(blank), ..item.place.clone() }
}

fn read_file(section: &Section<'_>, item: Item<'_>, building: &Building<'_>) -> Option<String> {
    let Some(folder) = building.folder else {
        section.problem("file", "a built-in document has no files beside it");
        return None;
    };
    let path = folder.join(item.text);
    match read_bounded(&path) {
        Ok(bytes) => {
            building.files.borrow_mut().push((path, bytes.clone()));
            let text = String::from_utf8(bytes);
            if text.is_err() {
                section.problem("file", "expected rules in UTF-8, found other bytes in the file");
            }
            text.ok()
        }
        Err(error) => {
            section.problem("file", &format!("the file cannot be read: {error}"));
            None
        }
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it has more than {MAX_FILE} bytes")));
    }
    Ok(bytes)
}

/// A call that the rules do not let pass, if one is easily found.
fn forbidden(rules: &Rules) -> Option<ExampleCall> {
    let scopes = rules.scopes().iter().take(MAX_TRIED).filter_map(call_in);
    let calls = scopes.chain([ExampleCall::new("example", json!({}))]);
    let mut calls = calls.flat_map(|call| [bridged(call.clone()), call]);
    calls.find(|call| {
        rules.ask(&call.input(&GuardMemo::default(), &Work::default())).verdict != Verdict::Allow
    })
}

fn call_in(scope: &Scope) -> Option<ExampleCall> {
    let (server, tool) = scope.example();
    let mut call = ExampleCall::new(&tool, json!({}));
    call.server_id = server;
    if let Some(agent) = &scope.agent {
        call.token.subject = agent.parse().ok()?;
    }
    Some(call)
}

/// The same over a bridge that is as bad as it can be.
fn bridged(mut call: ExampleCall) -> ExampleCall {
    call.session.protocol = DiscoveryProtocol::A2a;
    call.target = DiscoveryProtocol::Mcp;
    call.fidelity = Some(BridgeFidelity::Adapted { caveats: Vec::new() });
    call
}
