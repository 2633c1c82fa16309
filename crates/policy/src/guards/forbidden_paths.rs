//! Which paths no call may touch.

mod defaults;
mod sample;

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::json;

use self::sample::Sample;
use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::facts::glob::{Globs, Reading, problem};
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "forbidden-path",
    section: "rules.forbidden_paths",
    about: "Denies calls that touch a forbidden path, however it is written: encoded, climbing, \
            through `/proc`, in other letters, or in the words of a command. Without patterns of \
            your own it keeps keys, credentials, password stores and system accounts safe. Links \
            in the file system are not followed.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "patterns",
            "a list of globs: `**/.env`, `~/.ssh`, `/etc/shadow`, `*.pem`",
            "(keys, credentials, password stores, system accounts)",
            "what may not be touched, in any case of letters, and what is below it",
        ),
        Key::new(
            "exceptions",
            "a list of globs",
            "(with the default patterns: `.env.example` and the like)",
            "what may be touched although a pattern names it",
        ),
    ],
    always: false,
    build,
    samples: SAMPLES,
};

struct ForbiddenPaths {
    patterns: Vec<String>,
    globs: Globs,
    exceptions: Globs,
    /// What the patterns stand for, to compare with paths that are patterns themselves.
    samples: Vec<Sample>,
    /// Nobody wrote the patterns.
    by_default: bool,
}

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    building.note_replaced(section, "patterns");
    let own = section.has("patterns");
    let mut patterns = globs_of(section, "patterns");
    let mut exceptions = globs_of(section, "exceptions");
    if !own {
        patterns = defaults::PATTERNS.iter().map(|&text| text.to_owned()).collect();
        exceptions.extend(defaults::EXCEPTIONS.iter().map(|&text| text.to_owned()));
    }
    if !section.flag("enabled", true) {
        return None;
    }
    let globs = compiled(section, "patterns", &patterns, Reading::Wide)?;
    let exceptions = compiled(section, "exceptions", &exceptions, Reading::Anywhere)?;
    let samples = patterns.iter().flat_map(|pattern| Sample::of(pattern)).collect();
    let guard = ForbiddenPaths { patterns, globs, exceptions, samples, by_default: !own };
    let forbidden = guard.example();
    Some(Built { guard: Arc::new(guard), forbidden })
}

/// The globs of a list; those that cannot be read are problems.
pub(super) fn globs_of(section: &Section<'_>, key: &str) -> Vec<String> {
    let mut globs = Vec::new();
    for item in section.texts(key) {
        match problem(item.text) {
            Some(why) => {
                section
                    .problem_at(item.place, &format!("this glob in `{key}` cannot be read: {why}"));
            }
            None => globs.push(item.text.to_owned()),
        }
    }
    globs
}

/// The globs, compiled.
pub(super) fn compiled(
    section: &Section<'_>,
    key: &str,
    globs: &[String],
    reading: Reading,
) -> Option<Globs> {
    Globs::new(globs, reading).map_err(|why| section.problem(key, &why)).ok()
}

/// Why it cannot be told which paths a call touches, if it cannot.
pub(super) fn unreadable(facts: &Facts) -> Option<String> {
    let why = facts.malformed.as_ref()?;
    let files = matches!(
        facts.action,
        Action::FileRead | Action::FileWrite | Action::Patch | Action::Other
    );
    files.then(|| format!("it cannot be told which paths the call touches: {why}"))
}

impl ForbiddenPaths {
    /// The pattern that forbids a path.
    fn forbids(&self, path: &str) -> Option<&str> {
        let found = self.globs.first_match(path).and_then(|place| self.patterns.get(place));
        if let Some(pattern) = found {
            return (!self.exceptions.matches(path)).then_some(pattern);
        }
        if !path.contains(['*', '?', '[']) {
            return None;
        }
        self.samples.iter().find(|sample| sample.fits(path)).map(Sample::pattern)
    }

    fn example(&self) -> Option<ExampleCall> {
        let mut paths = self.samples.iter().map(Sample::path);
        let path = paths.find(|path| self.forbids(path).is_some())?;
        Some(ExampleCall::new("read_file", json!({ "path": path })))
    }
}

#[async_trait]
impl Guard for ForbiddenPaths {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let facts = Facts::of_call(input)?;
        if let Some(why) = unreadable(facts) {
            return Ok(Verdict::Deny(why).into());
        }
        let Some(pattern) = facts.paths.iter().find_map(|path| self.forbids(&path.normal)) else {
            return Ok(Verdict::Allow.into());
        };
        let whose = if self.by_default { ", by default" } else { "" };
        let reason = format!("a path is forbidden by `{pattern}` of `{}`{whose}", KIND.section);
        Ok(Verdict::Deny(reason).into())
    }
}

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  rules:
    forbidden_paths:
      patterns: ["**/.env", "**/.env.*", "~/.ssh", "/etc/shadow", "**/*.pem"]
      exceptions: ["**/.env.example"]
cases:
  - {name: a file of the project, tool: read_file, args: {path: /workspace/src/main.rs}, expect: allow}
  - {name: an exception, tool: read_file, args: {path: /workspace/.env.example}, expect: allow}
  - {name: nothing of files, tool: echo, args: {text: the .env file}, expect: allow}
  - {name: a forbidden name, tool: read_file, args: {path: /workspace/.env}, expect: deny, by: forbidden-path, says: "**/.env"}
  - {name: in other case, tool: read_file, args: {path: /workspace/.ENV}, expect: deny, by: forbidden-path}
  - {name: the folder itself, tool: list_directory, args: {path: "~/.ssh"}, expect: deny, by: forbidden-path}
  - {name: below it by another way, tool: read_file, args: {path: /Users/ann/.ssh/id_ed25519}, expect: deny, by: forbidden-path}
  - {name: climbing out of an exception, tool: read_file, args: {path: /w/.env.example/../.env}, expect: deny, by: forbidden-path}
  - {name: encoded twice, tool: read_file, args: {path: "%252e%252e/%252e%252e/etc/shadow"}, expect: deny, by: forbidden-path}
  - {name: in a command, tool: bash, args: {command: "cat ~/.ss*/id_rsa"}, expect: deny, by: forbidden-path}
  - {name: no path at all, tool: read_file, args: {path: 7}, expect: deny, by: forbidden-path, says: no path}
"#;
