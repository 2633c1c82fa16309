//! Which tools may be called at all, and how large their arguments may be.

use chio_kernel::{GuardInput, Verdict};
use chio_yaml::{Key, Section};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

/// A tool that no policy allows: the proof of the guard is that it denies it.
pub(crate) const FORBIDDEN_TOOL: &str = "chio.forbidden";

/// How large arguments may be by default, in bytes of their canonical form.
const MAX_ARGUMENTS: u64 = 1 << 20;

const KEYS: &[Key] = &[
    Key::ENABLED,
    ToolPatterns::key("allow", "[]", "tools that may be called"),
    ToolPatterns::key("block", "[]", "tools that may not, whatever allows them"),
    ToolPatterns::key("require_confirmation", "[]", "tools whose calls wait for an approval"),
    Key::new("default", "`allow` or `block`", "allow", "what becomes of tools that are not listed"),
    Key::new(
        "max_args_size",
        "a number of bytes",
        "1048576",
        "how large the arguments may be, as canonical JSON",
    ),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: "tool-access",
    section: "rules.tool_access",
    about: "Says which tools may be called and how large their arguments may be. A name with a `/` \
            is about one server, such as `files/read_*`. It is always there.",
    keys: KEYS,
    always: true,
    build,
};

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    // Switched off, it still denies what no policy allows.
    let enabled = section.flag("enabled", true);
    let open =
        !enabled || section.one_of("default", &[("allow", true), ("block", false)]).unwrap_or(true);
    let max = section.number("max_args_size", 1..=(64 << 20)).unwrap_or(MAX_ARGUMENTS);
    let listed = |key| {
        if enabled { ToolPatterns::read(section, key) } else { ToolPatterns::default() }
    };
    let notes = building.notes;
    if open && section.has("allow") {
        section.note(notes, "allow", "this has no effect while `default` is `allow`");
    }
    let listed_any =
        !section.texts("allow").is_empty() || !section.texts("require_confirmation").is_empty();
    if !open && !listed_any {
        section.note_at(notes, section.place(), "this denies every call: no tool is listed");
    }
    let guard = ToolAccess {
        allow: listed("allow"),
        block: listed("block"),
        confirm: listed("require_confirmation"),
        open,
        max_args: enabled.then(|| usize::try_from(max).unwrap_or(usize::MAX)),
    };
    let forbidden = Some(ExampleCall::new(FORBIDDEN_TOOL, json!({})));
    Some(Built::deciding(KIND.name, forbidden, move |input| Ok(guard.verdict(input))))
}

struct ToolAccess {
    allow: ToolPatterns,
    block: ToolPatterns,
    confirm: ToolPatterns,
    /// Whether tools that are not listed may be called.
    open: bool,
    max_args: Option<usize>,
}

impl ToolAccess {
    fn verdict(&self, input: &GuardInput<'_>) -> Verdict {
        let (server, tool) = (input.server_id, input.tool_name);
        if tool == FORBIDDEN_TOOL || tool.trim().is_empty() {
            return Verdict::Deny("no policy allows this tool".to_owned());
        }
        if let Some(pattern) = self.block.find(server, tool) {
            return Verdict::Deny(format!("the tool is blocked by `{pattern}`"));
        }
        let confirm = self.confirm.find(server, tool);
        if !self.open && confirm.is_none() && self.allow.find(server, tool).is_none() {
            return Verdict::Deny("the tool is not listed, and `default` is `block`".to_owned());
        }
        if let Some(max) = self.max_args.filter(|max| input.argument_bytes > *max) {
            let found = input.argument_bytes;
            return Verdict::Deny(format!(
                "expected arguments of at most {max} bytes, found {found}"
            ));
        }
        match confirm {
            Some(pattern) => {
                Verdict::AwaitApproval(format!("`{pattern}` of `require_confirmation` names it"))
            }
            None => Verdict::Allow,
        }
    }
}
