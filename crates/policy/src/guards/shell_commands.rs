//! Which commands no call may have run.

mod accounts;
mod deletes;
mod fetched;
mod system;
mod text;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use regex::Regex;
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::document::patterns;
use crate::example::ExampleCall;
use crate::facts::shell::{Script, Simple};
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "shell-command",
    section: "rules.shell_commands",
    about: "Denies commands that destroy, take over or hide. It looks at a command as a shell would \
            run it: without quotes and escapes, with variables, braces and substitutions followed, \
            and through `sh -c`, `env`, `xargs`, `find -exec`, pipes and here-documents. A command \
            that no shell could read is denied. What a program does once it runs, its name \
            does not say: an allowlist of tools is the stronger control.",
    keys: &[
        Key::ENABLED,
        patterns::key(
            "forbidden_patterns",
            "(deleting whole trees, overwriting devices, running what was fetched or decoded, \
             reverse shells, taking privileges, hiding traces, staying after the session)",
            "what no command may match, as it is written and as it would be run; in place of the \
             default",
        ),
    ],
    always: false,
    build,
};

/// A check of a command line: what is wrong with it, if anything is.
type Look = fn(&Script) -> Option<&'static str>;

/// The default checks.
const LOOKS: &[Look] = &[
    deletes::whole_trees,
    deletes::devices,
    deletes::traces,
    fetched::run,
    fetched::remote_shells,
    fetched::fork_bombs,
    accounts::privileges,
    accounts::staying,
    accounts::keys_and_users,
    system::stopping,
    system::defences,
    text::forbidden,
];

enum Forbidden {
    Default,
    Patterns(Vec<Regex>),
}

struct ShellCommands(Forbidden);

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    building.note_replaced(section, "forbidden_patterns");
    let patterns = section
        .has("forbidden_patterns")
        .then(|| Forbidden::Patterns(patterns::list(section, "forbidden_patterns")));
    section.enabled(true)?;
    let guard = ShellCommands(patterns.unwrap_or(Forbidden::Default));
    // What no shell can read is always denied.
    let forbidden = ExampleCall::new("bash", json!({"command": "echo 'no end"}));
    Some(Built::refusing(KIND.name, Some(forbidden), move |input| guard.refuses_call(input)))
}

impl ShellCommands {
    fn refuses_call(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        let facts = Facts::of_call(input)?;
        if let Some(why) = facts.malformed.as_ref().filter(|_| facts.action == Action::Shell) {
            return Ok(Some(format!("the command cannot be read: {why}")));
        }
        for script in &facts.scripts {
            let refusal = match script {
                Ok(script) => {
                    // The borders of words are harder to find between other letters.
                    let each = if script.seen.is_ascii() { self.looks() } else { self.looks() * 4 };
                    let steps = script.size().saturating_mul(each);
                    input.work.charge_each(steps, 1).map_err(|spent| spent.to_string())?;
                    self.refuses(script)
                }
                Err(why) => Some(format!("a command cannot be read: {}", why.why())),
            };
            if refusal.is_some() {
                return Ok(refusal);
            }
        }
        Ok(None)
    }

    /// How often a command line is looked through.
    const fn looks(&self) -> usize {
        match &self.0 {
            Forbidden::Default => LOOKS.len(),
            Forbidden::Patterns(patterns) => patterns.len() + 1,
        }
    }

    /// Why a command line may not be run.
    fn refuses(&self, script: &Script) -> Option<String> {
        match &self.0 {
            Forbidden::Default => {
                let found = LOOKS.iter().find_map(|look| look(script))?;
                Some(format!("a command {found}; `{}` forbids it by default", KIND.section))
            }
            Forbidden::Patterns(patterns) => {
                let texts = texts(script);
                let found =
                    patterns.iter().find(|it| texts.iter().any(|text| it.is_match(text)))?;
                Some(format!("a command is forbidden by `{found}` of `{}`", KIND.section))
            }
        }
    }
}

/// Every form of a command line: as it is written, and each pipeline as it would be run.
pub(super) fn texts(script: &Script) -> Vec<String> {
    let mut texts = vec![script.seen.clone()];
    texts.extend(script.commands.iter().map(Simple::line));
    for pipeline in script.pipelines().filter(|pipeline| pipeline.len() > 1) {
        let lines: Vec<String> = pipeline.iter().map(|command| command.line()).collect();
        texts.push(lines.join(" | "));
    }
    texts
}
