//! Calls that wait for an approval, by rules of our own.

use chio_kernel::{GuardInput, Verdict};
use chio_yaml::{Key, Section};
use regex::Regex;

use super::forbidden_paths::{compiled, globs_of};
use super::shell_commands::texts;
use super::{Building, Built, GuardKind};
use crate::document::patterns;
use crate::example::ExampleCall;
use crate::facts::glob::{Globs, Reading};
use crate::facts::{Access, Facts};
use crate::pattern::ToolPatterns;

const KEYS: &[Key] = &[
    Key::ENABLED,
    Key::flag(
        "ask_client",
        "false",
        "whether the user of the calling client may answer, where its protocol can ask them \
         (MCP elicitation); otherwise only approvers do",
    ),
    Key::new("rules", "a list of maps", "[]", "which calls wait, and why").of(RULE),
];

const RULE: &[Key] = &[
    ToolPatterns::key("tools", "[\"*\"]", "the tools"),
    Key::flag(
        "side_effects",
        "false",
        "only tools that are published as having side effects, or not published at all",
    ),
    Key::new("paths", "a list of globs", "[]", "only calls that write to one of these paths"),
    Key::new("commands", "a list of patterns", "[]", "only calls that run such a command"),
    ToolPatterns::key("except", "[]", "tools that need none after all"),
    Key::new("reason", "text", "the rule's place", "what the approver is told"),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: "approval",
    section: "chio.approvals",
    about: "Parks calls in the inbox until an approver approves them: tools by name, all that have \
            side effects, calls that write to chosen paths or run chosen commands. All that a rule \
            says has to fit. Tools published with `x-chio-approval-required` always wait.",
    keys: KEYS,
    always: false,
    build,
};

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let mut rules = Vec::new();
    for (number, item) in section.sections("rules", RULE).iter().enumerate() {
        let rule = Rule {
            tools: ToolPatterns::read(item, "tools"),
            side_effects: item.flag("side_effects", false),
            paths: written_paths(item),
            commands: patterns::list(item, "commands"),
            except: ToolPatterns::read(item, "except"),
            reason: item.text("reason").map_or_else(
                || format!("rule {} of `chio.approvals` names it", number + 1),
                |item| item.text.to_owned(),
            ),
        };
        let narrow = rule.paths.is_some() || item.has("commands") || rule.side_effects;
        if rule.tools.is_empty() && !narrow {
            let expected =
                "expected `tools`, `paths`, `commands` or `side_effects: true` in each rule";
            item.problem("tools", expected);
        }
        rules.push(rule);
    }
    section.enabled(true)?;
    if rules.is_empty() {
        return None;
    }
    let forbidden = rules.iter().find_map(Rule::example);
    Some(Built::deciding(KIND.name, forbidden, move |input| {
        for rule in &rules {
            if rule.asks(input)? {
                return Ok(Verdict::AwaitApproval(rule.reason.clone()));
            }
        }
        Ok(Verdict::Allow)
    }))
}

/// The paths that a rule is about; none where it does not say.
fn written_paths(item: &Section<'_>) -> Option<Globs> {
    let globs = globs_of(item, "paths");
    if globs.is_empty() {
        return None;
    }
    compiled(item, "paths", &globs, Reading::Wide)
}

struct Rule {
    tools: ToolPatterns,
    side_effects: bool,
    /// Only calls that write to one of these.
    paths: Option<Globs>,
    /// Only calls that run one of these, unless there is none.
    commands: Vec<Regex>,
    except: ToolPatterns,
    reason: String,
}

impl Rule {
    fn asks(&self, input: &GuardInput<'_>) -> Result<bool, String> {
        let harmless = input.tool.is_some_and(|tool| !tool.has_side_effects);
        let named = self.tools.covers(input)
            && !(self.side_effects && harmless)
            && self.except.find(input.server_id, input.tool_name).is_none();
        if !named || (self.paths.is_none() && self.commands.is_empty()) {
            return Ok(named);
        }
        let facts = Facts::of_call(input)?;
        // What cannot be read may be anything.
        Ok(facts.malformed.is_some() || (self.writes(facts) && self.runs(facts)))
    }

    fn writes(&self, facts: &Facts) -> bool {
        let Some(globs) = &self.paths else { return true };
        let mut written = facts.paths.iter().filter(|path| path.access != Access::Read);
        written.any(|path| globs.matches(&path.normal))
    }

    fn runs(&self, facts: &Facts) -> bool {
        if self.commands.is_empty() {
            return true;
        }
        let named = |text: &String| self.commands.iter().any(|it| it.is_match(text));
        // As they are written and as they would be run; what cannot be read may be anything.
        let runs = |script: &Result<_, _>| {
            script.as_ref().map_or(true, |script| texts(script).iter().any(named))
        };
        facts.commands.iter().any(named) || facts.scripts.iter().any(runs)
    }

    /// A call that the rule asks about, where one is easily found.
    fn example(&self) -> Option<ExampleCall> {
        if self.paths.is_some() || !self.commands.is_empty() {
            return None;
        }
        let call = self.tools.example_call("chio.example");
        let asked = self.except.find(&call.server_id, &call.tool_name).is_none();
        asked.then_some(call)
    }
}
