//! Which paths no call may touch.

mod defaults;
mod sample;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use serde_json::json;

use self::sample::Sample;
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::glob::{Globs, Reading, problem};
use crate::facts::{Action, Facts, PathFact};

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
};

struct ForbiddenPaths {
    patterns: Vec<String>,
    globs: Globs,
    exceptions: Globs,
    /// What the patterns stand for, to compare with paths that are patterns themselves.
    samples: Vec<Sample>,
    /// The patterns are the default ones.
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
    section.enabled(true)?;
    let globs = compiled(section, "patterns", &patterns, Reading::Wide)?;
    let exceptions = compiled(section, "exceptions", &exceptions, Reading::Anywhere)?;
    let samples = patterns.iter().flat_map(|pattern| Sample::of(pattern)).collect();
    let guard = ForbiddenPaths { patterns, globs, exceptions, samples, by_default: !own };
    let forbidden = guard.example();
    Some(Built::refusing(KIND.name, forbidden, move |input| guard.refuses(input)))
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

/// Why a call may not touch one of its paths, by a rule about paths. Arguments of a file call that
/// cannot be read are refused. `steps` tells what the rule takes for a path besides a look at it.
pub(super) fn paths(
    input: &GuardInput<'_>,
    steps: impl Fn(&str) -> usize,
    refuses: impl Fn(&PathFact) -> Option<String>,
) -> Result<Option<String>, String> {
    use Action::{FileRead, FileWrite, Other, Patch};
    let facts = Facts::of_call(input)?;
    match &facts.malformed {
        Some(why) if matches!(facts.action, FileRead | FileWrite | Patch | Other) => {
            Ok(Some(format!("it cannot be told which paths the call touches: {why}")))
        }
        _ => {
            for path in &facts.paths {
                let steps = steps(&path.normal).saturating_add(path.normal.len());
                input.work.charge_each(steps, 1).map_err(|spent| spent.to_string())?;
                if let Some(why) = refuses(path) {
                    return Ok(Some(why));
                }
            }
            Ok(None)
        }
    }
}

/// Whether a path is a pattern itself.
fn is_wild(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

impl ForbiddenPaths {
    fn refuses(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        // Each wild name is held against each name of a sample.
        let samples = self.samples.len().saturating_mul(2);
        let steps = |path: &str| if is_wild(path) { path.len().saturating_mul(samples) } else { 0 };
        paths(input, steps, |path| {
            let pattern = self.forbids(&path.normal)?;
            let whose = if self.by_default { ", by default" } else { "" };
            Some(format!("a path is forbidden by `{pattern}` of `{}`{whose}", KIND.section))
        })
    }

    /// The pattern that forbids a path.
    fn forbids(&self, path: &str) -> Option<&str> {
        let found = self.globs.first_match(path).and_then(|place| self.patterns.get(place));
        if let Some(pattern) = found {
            return (!self.exceptions.matches(path)).then_some(pattern);
        }
        if !is_wild(path) {
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
