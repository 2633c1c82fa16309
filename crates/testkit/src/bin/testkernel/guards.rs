//! Guards that do as they are told.

use std::str::FromStr;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Verdict};
use serde_json::Value;

/// How a secret begins, as far as these guards know.
const SECRET: &str = "sk-";
/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// A guard, named by its kind.
#[derive(Debug, Clone)]
pub(crate) struct TestGuard {
    kind: Kind,
    word: String,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Allows everything, with evidence.
    Allow,
    DenyTool,
    PanicOnTool,
    ErrorOnTool,
    AwaitOnTool,
    /// Allows, and has secrets in arguments kept out of the receipt.
    RedactSecrets,
    /// Denies arguments with secrets, and keeps them out of the receipt.
    DenySecrets,
    /// Takes secrets out of each value and chunk.
    RedactOutput,
    /// Blocks a value or chunk with this word.
    BlockOutput,
    PanicOnOutput,
    ErrorOnOutput,
    /// Looks at all output at once, and blocks it when this word is in it.
    BlockWhole,
}

const KINDS: [(&str, Kind); 12] = [
    ("allow", Kind::Allow),
    ("deny-tool", Kind::DenyTool),
    ("panic-on-tool", Kind::PanicOnTool),
    ("error-on-tool", Kind::ErrorOnTool),
    ("await-on-tool", Kind::AwaitOnTool),
    ("redact-secrets", Kind::RedactSecrets),
    ("deny-secrets", Kind::DenySecrets),
    ("redact-output", Kind::RedactOutput),
    ("block-output", Kind::BlockOutput),
    ("panic-on-output", Kind::PanicOnOutput),
    ("error-on-output", Kind::ErrorOnOutput),
    ("block-whole", Kind::BlockWhole),
];

impl FromStr for TestGuard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, word) = text.split_once('=').unwrap_or((text, ""));
        let kind = KINDS.iter().find(|(kind, _)| *kind == name).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| format!("there is no guard `{name}`"))?;
        Ok(Self { kind, word: word.to_owned() })
    }
}

#[async_trait]
impl Guard for TestGuard {
    fn name(&self) -> &str {
        let found = KINDS.iter().find(|(_, kind)| *kind as u8 == self.kind as u8);
        found.map_or("", |(name, _)| *name)
    }

    #[expect(clippy::panic, reason = "to see what a panic comes to")]
    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let is_named = input.tool_name == self.word;
        match self.kind {
            Kind::Allow => Ok(GuardOutcome {
                verdict: Verdict::Allow,
                evidence: Some("looked at".to_owned()),
                redacted: None,
            }),
            Kind::DenyTool if is_named => Ok(Verdict::Deny("not this tool".to_owned()).into()),
            Kind::PanicOnTool if is_named => panic!("as told"),
            Kind::ErrorOnTool if is_named => Err("the oracle is silent".to_owned()),
            Kind::AwaitOnTool if is_named => {
                Ok(Verdict::AwaitApproval("ask a grown-up".to_owned()).into())
            }
            Kind::RedactSecrets | Kind::DenySecrets => Ok(self.look_for_secrets(input.arguments)),
            _ => Ok(Verdict::Allow.into()),
        }
    }

    fn review_mode(&self) -> ReviewMode {
        match self.kind {
            Kind::RedactOutput | Kind::BlockOutput | Kind::PanicOnOutput | Kind::ErrorOnOutput => {
                ReviewMode::EachChunk
            }
            Kind::BlockWhole => ReviewMode::Whole,
            _ => ReviewMode::Nothing,
        }
    }

    #[expect(clippy::panic, reason = "to see what a panic comes to")]
    async fn review(&self, input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        let has_word = output.to_string().contains(&self.word);
        match self.kind {
            Kind::RedactOutput => Ok(match redacted(output) {
                (_, 0) => Review::Pass,
                (value, _) => Review::Replace(value),
            }),
            Kind::BlockOutput | Kind::BlockWhole if has_word => {
                Ok(Review::Block("that word does not leave".to_owned()))
            }
            Kind::PanicOnOutput if input.tool_name == self.word => panic!("as told"),
            Kind::ErrorOnOutput if input.tool_name == self.word => {
                Err("the oracle is silent".to_owned())
            }
            _ => Ok(Review::Pass),
        }
    }
}

impl TestGuard {
    fn look_for_secrets(&self, arguments: &Value) -> GuardOutcome {
        let (kept, count) = redacted(arguments);
        let found = count > 0;
        let verdict = match self.kind {
            Kind::DenySecrets if found => Verdict::Deny("there are secrets in it".to_owned()),
            _ => Verdict::Allow,
        };
        let evidence = found.then(|| format!("{count} secrets"));
        GuardOutcome { verdict, evidence, redacted: found.then_some(kept) }
    }
}

/// The value without its secrets, and how many there were.
fn redacted(value: &Value) -> (Value, usize) {
    let mut count = 0;
    let mut clean = |value: &Value| {
        let (value, found) = redacted(value);
        count += found;
        value
    };
    let value = match value {
        Value::String(text) if text.contains(SECRET) => return (Value::from(REDACTED), 1),
        Value::Array(items) => items.iter().map(&mut clean).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), clean(value))).collect()
        }
        other => other.clone(),
    };
    (value, count)
}
