//! Bounds, blocks and redactions of a tool's output.

mod pii;

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Verdict};
use chio_yaml::{Key, Section};
use regex::{Regex, RegexSet};
use serde_json::{Map, Value};

use super::secret_patterns::tree::unused;
use super::{Building, Built, GuardKind};

use crate::document::patterns;
use crate::size::json_bytes;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "output-redaction",
    section: "chio.output",
    about: "Looks at what tools answer: replaces what matches `redact` and the personal data of \
            `pii`, and holds back output that matches `block` or is larger than `max_bytes`. A \
            stream is judged chunk by chunk: what is split over two chunks is not seen, and \
            `max_bytes` counts for each.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "redact",
            "a list of maps with `name`, `pattern` and `with`",
            "[]",
            "what is replaced",
        )
        .of(REDACT_KEYS),
        patterns::key("block", "[]", "output that may not leave"),
        Key::new("max_bytes", "a whole number", "no bound", "how large output may be, as JSON"),
        Key::new(
            "pii",
            "a list of `email`, `phone`, `credit_card`, `ssn` and `iban`",
            "[]",
            "personal data that is replaced",
        ),
    ],
    always: false,
    build,
};

const REDACT_KEYS: &[Key] = &[
    Key::new("name", "text", "required", "what it is called"),
    Key::new("pattern", "a regular expression", "required", "what is replaced"),
    Key::new("with", "text", "[redacted:NAME]", "what stands there instead"),
];

/// Something that is replaced.
struct Redaction {
    regex: Regex,
    with: String,
    check: fn(&str) -> bool,
}

struct OutputRules {
    redactions: Vec<Redaction>,
    /// All redactions at once, for texts that need none.
    quick: RegexSet,
    block: Vec<Regex>,
    max_bytes: Option<usize>,
}

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let mut redactions = written(section);
    redactions.extend(personal(section));
    let block = patterns::list(section, "block");
    let max_bytes = section.number("max_bytes", 1..=1 << 40);
    section.enabled(true)?;
    let Ok(quick) = RegexSet::new(redactions.iter().map(|it| it.regex.as_str())) else {
        section
            .problem("redact", "expected patterns that fit in memory together, found larger ones");
        return None;
    };
    let max_bytes = max_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let guard = OutputRules { redactions, quick, block, max_bytes };
    // It judges output, and a proof at the start is about calls.
    Some(Built { guard: Arc::new(guard), forbidden: None })
}

fn written(section: &Section<'_>) -> Vec<Redaction> {
    let mut redactions = Vec::new();
    for entry in section.sections("redact", REDACT_KEYS) {
        let missing = "expected text, found nothing";
        let name = entry.required("name", entry.text("name"), missing);
        let pattern = entry.required("pattern", patterns::one(&entry, "pattern"), missing);
        let with = entry.text("with").map(|item| item.text.to_owned());
        if pattern.as_ref().is_some_and(|pattern| pattern.is_match("")) {
            entry.problem(
                "pattern",
                "expected a pattern of some text, found one that matches none at all",
            );
        }
        if let (Some(name), Some(regex)) = (name, pattern) {
            let with = with.unwrap_or_else(|| format!("[redacted:{}]", name.text));
            redactions.push(Redaction { regex, with, check: |_| true });
        }
    }
    redactions
}

fn personal(section: &Section<'_>) -> Vec<Redaction> {
    let mut redactions = Vec::new();
    for item in section.texts("pii") {
        match pii::find(item.text) {
            Some((name, regex, check)) => {
                redactions.push(Redaction { regex, with: format!("[redacted:{name}]"), check });
            }
            None => section.unknown_word(item, &pii::NAMES),
        }
    }
    redactions
}

impl OutputRules {
    /// The text with what has to be replaced; none where nothing has to.
    fn less(&self, text: &str) -> Option<String> {
        let matches = self.quick.matches(text);
        let mut left = Cow::Borrowed(text);
        for redaction in matches.iter().filter_map(|place| self.redactions.get(place)) {
            let replaced = redaction.regex.replace_all(&left, |found: &regex::Captures<'_>| {
                let found = found.get(0).map_or("", |found| found.as_str());
                let with = redaction.with.as_str();
                if (redaction.check)(found) { with.to_owned() } else { found.to_owned() }
            });
            if let Cow::Owned(replaced) = replaced {
                left = Cow::Owned(replaced);
            }
        }
        Some(left.into_owned()).filter(|left| left != text)
    }

    /// The value with what has to be replaced; none where nothing has to.
    fn less_value(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.less(text).map(Value::String),
            Value::Array(items) => {
                let less: Vec<Option<Value>> =
                    items.iter().map(|item| self.less_value(item)).collect();
                less.iter().any(Option::is_some).then(|| {
                    let items = items.iter().zip(less);
                    items.map(|(item, less)| less.unwrap_or_else(|| item.clone())).collect()
                })
            }
            Value::Object(members) => {
                let (mut left, mut is_changed) = (Map::with_capacity(members.len()), false);
                for (name, value) in members {
                    let (new_name, new_value) = (self.less(name), self.less_value(value));
                    is_changed |= new_name.is_some() || new_value.is_some();
                    let name = unused(new_name.as_deref().unwrap_or(name), &left);
                    left.insert(name, new_value.unwrap_or_else(|| value.clone()));
                }
                is_changed.then_some(Value::Object(left))
            }
            // A number is a card's or an account's as much as text is.
            Value::Number(number) => self.less(&number.to_string()).map(Value::String),
            Value::Null | Value::Bool(_) => None,
        }
    }

    fn blocks(&self, value: &Value) -> Option<usize> {
        let within = |text: &str| self.block.iter().position(|regex| regex.is_match(text));
        match value {
            Value::String(text) => within(text),
            Value::Array(items) => items.iter().find_map(|item| self.blocks(item)),
            Value::Object(members) => {
                members.iter().find_map(|(name, value)| within(name).or_else(|| self.blocks(value)))
            }
            Value::Number(number) => within(&number.to_string()),
            Value::Null | Value::Bool(_) => None,
        }
    }
}

#[async_trait]
impl Guard for OutputRules {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, _: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        Ok(Verdict::Allow.into())
    }

    fn review_mode(&self) -> ReviewMode {
        ReviewMode::EachChunk
    }

    async fn review(&self, input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        let size = json_bytes(output);
        let patterns = 2 + self.block.len() + self.redactions.len();
        input.work.charge_each(size, patterns).map_err(|spent| spent.to_string())?;
        if let Some(limit) = self.max_bytes.filter(|limit| size > *limit) {
            let reason = format!(
                "expected output of at most {limit} bytes (`chio.output.max_bytes`), found {size}"
            );
            return Ok(Review::Block(reason));
        }
        if !self.block.is_empty()
            && let Some(place) = self.blocks(output)
        {
            return Ok(Review::Block(format!("the output matches `chio.output.block[{place}]`")));
        }
        Ok(self.less_value(output).map_or(Review::Pass, Review::Replace))
    }
}
