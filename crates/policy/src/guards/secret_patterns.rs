//! Keeps secrets out of arguments, out of output and out of receipts.

pub(crate) mod decode;
mod finder;
pub(crate) mod fold;
mod kinds;
mod likely;
mod scan;
mod skip;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Spent, Verdict, Work};
use chio_yaml::{Key, Section};
use serde_json::{Value, json};

use self::finder::{Finder, Kind, Severity};
use self::scan::{Found, scan};
use self::skip::Skip;
use super::{Building, Built, GuardKind};
use crate::document::patterns;
use crate::example::ExampleCall;
use crate::facts::Facts;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "secret-leak",
    section: "rules.secret_patterns",
    about: "Denies calls whose arguments have a secret in them: as it is, in pieces that are \
            neighbours, between spaces and invisible characters, or encoded once (base64, hex, \
            percent signs, escapes). Receipts keep such arguments redacted. In output secrets are \
            replaced, chunk by chunk: one that is split over two chunks of a stream is not seen. \
            Nor is one that is encrypted, encoded twice, or put together from places that are no \
            neighbours.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "patterns",
            "a list of maps with `name`, `pattern`, `severity` and `description`",
            "those of Chio, for the tokens of many services, private keys and passwords",
            "what is a secret; a list replaces Chio's own",
        )
        .of(PATTERN_KEYS),
        Key::new(
            "skip_paths",
            "a list of globs",
            "[]",
            "files where secrets may stand, such as those of tests; receipts stay redacted",
        ),
    ],
    always: false,
    build,
};

const PATTERN_KEYS: &[Key] = &[
    Key::new("name", "text", "required", "what the secret is called in reasons and redactions"),
    Key::new("pattern", "a regular expression", "required", "its form"),
    Key::new("severity", "`critical`, `error` or `warn`", "error", "`warn` only redacts"),
    Key::new("description", "text", "none", "for people"),
];

/// The same for every policy that names no patterns, and not quick to compile.
static DEFAULTS: LazyLock<Result<Arc<Finder>, regex::Error>> =
    LazyLock::new(|| Finder::new(kinds::defaults()).map(Arc::new));

struct SecretLeak {
    finder: Arc<Finder>,
    skip: Skip,
}

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    building.note_replaced(section, "patterns");
    let is_default = !section.has("patterns");
    let written = written(section);
    let skip = Skip::read(section);
    section.enabled(true)?;
    let finder = if is_default { DEFAULTS.clone() } else { Finder::new(written).map(Arc::new) };
    let Ok(finder) = finder else {
        section.problem(
            "patterns",
            "expected patterns that fit in memory together, found larger ones",
        );
        return None;
    };
    // An example secret is known only for the built-in patterns.
    let text = concat!("ghp", "_Zk3vQ9xR7mT2wY8nB4cH6jL1pD5sF0gAe7Uq");
    let forbidden = is_default.then(|| ExampleCall::new("echo", json!({ "text": text })));
    Some(Built { guard: Arc::new(SecretLeak { finder, skip }), forbidden })
}

/// The kinds of the document.
fn written(section: &Section<'_>) -> Vec<Kind> {
    let words =
        [("critical", Severity::Critical), ("error", Severity::Error), ("warn", Severity::Warn)];
    let mut kinds = Vec::new();
    for entry in section.sections("patterns", PATTERN_KEYS) {
        let missing = "expected a name for the pattern, found none";
        let name = entry.required("name", entry.text("name"), missing);
        let missing = "expected a regular expression, found none";
        let pattern = entry.required("pattern", patterns::one(&entry, "pattern"), missing);
        let severity = entry.one_of("severity", &words).unwrap_or(Severity::Error);
        if let (Some(name), Some(pattern)) = (name, pattern) {
            if pattern.is_match("") {
                entry.problem(
                    "pattern",
                    "expected a pattern of some text, found one that matches none at all",
                );
                continue;
            }
            kinds.push(Kind::written(name.text.to_owned(), severity, pattern));
        }
    }
    kinds
}

impl SecretLeak {
    /// Secrets in the stated intent or in what the model says of itself.
    fn in_statements(&self, input: &GuardInput<'_>) -> Result<Option<Found>, Spent> {
        let intent = input.intent.and_then(|intent| serde_json::to_value(intent).ok());
        let model = input.model.and_then(|model| serde_json::to_value(model).ok());
        for stated in [intent, model].into_iter().flatten() {
            let found = scan(&self.finder, &stated, input.work)?;
            if let Some(found) = found.filter(|found| found.severity != Severity::Warn) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn reason(found: &Found) -> String {
        let names = found.names.join(", ");
        format!("the arguments have a secret in them ({names}; `rules.secret_patterns`)")
    }
}

#[async_trait]
impl Guard for SecretLeak {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let spent = |spent: Spent| spent.to_string();
        if let Some(found) = self.in_statements(input).map_err(spent)? {
            // An approval is bound to what is stated, so it cannot be kept otherwise.
            let names = found.names.join(", ");
            let reason = format!("what the caller states has a secret in it ({names})");
            let redacted = self.redact(input.arguments);
            return Ok(GuardOutcome { verdict: Verdict::Deny(reason), evidence: None, redacted });
        }
        let Some(found) = scan(&self.finder, input.arguments, input.work).map_err(spent)? else {
            return Ok(Verdict::Allow.into());
        };
        let skipped = !self.skip.is_empty() && self.skip.covers(Facts::of_call(input)?);
        let verdict = if found.severity == Severity::Warn || skipped {
            Verdict::Allow
        } else {
            Verdict::Deny(Self::reason(&found))
        };
        let evidence = Some(format!("redacted: {}", found.names.join(", ")));
        Ok(GuardOutcome { verdict, evidence, redacted: Some(found.redacted) })
    }

    fn redact(&self, arguments: &Value) -> Option<Value> {
        // What cannot be looked through cannot be kept.
        match scan(&self.finder, arguments, &Work::long()) {
            Ok(found) => found.map(|found| found.redacted),
            Err(_) => Some(json!({"redacted": "too much to look through"})),
        }
    }

    fn review_mode(&self) -> ReviewMode {
        ReviewMode::EachChunk
    }

    async fn review(&self, input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        let found = scan(&self.finder, output, input.work).map_err(|spent| spent.to_string())?;
        Ok(found.map_or(Review::Pass, |found| Review::Replace(found.redacted)))
    }
}
