//! What a new session may do: the capabilities that a policy issues.

use std::collections::BTreeMap;
use std::time::Duration;

use chio_core::capability::{
    ChioScope, Operation, PromptGrant, ResourceGrant, ToolGrant, WILDCARD,
};
use chio_core::money::MonetaryAmount;

use chio_yaml::{Key, Section};

use crate::document::words;

/// The path of the section.
pub const SECTION: &str = "chio.capabilities";

/// How long a capability is valid by default.
const TTL: Duration = Duration::from_secs(3600);
/// How long one may be valid at most.
const MAX_TTL: Duration = Duration::from_secs(30 * 86_400);

/// The keys of the section.
pub const KEYS: &[Key] = &[
    Key::new("ttl", "a time such as `1h`", "1h", "how long they hold, at most `30d`"),
    Key::new("tools", "a list of maps with `server` and `tool`", "[]", "tools that may be called")
        .of(TOOL),
    Key::new("resources", "a list of maps with `uri`", "[]", "resources that may be read")
        .of(RESOURCE),
    Key::new("prompts", "a list of maps with `prompt`", "[]", "prompts that may be used")
        .of(PROMPT),
];

const TOOL: &[Key] = &[
    Key::new("server", "a server's name or `*`", "required", "the server"),
    Key::new("tool", "a tool's name or `*`", "required", "the tool"),
    Key::new("operations", "a list of operations", "[invoke]", "what may be done with it"),
    Key::new("ttl", "a time such as `5m`", "`ttl` above", "how long it holds"),
    Key::new("max_invocations", "a whole number", "no limit", "how many calls"),
    Key::new(
        "max_cost_per_call",
        "minor units, such as `500 USD`",
        "no limit",
        "the most for one call",
    ),
    Key::new(
        "max_total_cost",
        "minor units, such as `5000 USD`",
        "no limit",
        "the most for all calls",
    ),
    Key::flag("proof", "false", "whether each call must prove the caller's key"),
];
const RESOURCE: &[Key] = &[
    Key::new("uri", "a URI, with `*`", "required", "the resource"),
    Key::new("operations", "a list of operations", "[read]", "what may be done with it"),
    Key::new("ttl", "a time such as `5m`", "`ttl` above", "how long it holds"),
];
const PROMPT: &[Key] = &[
    Key::new("prompt", "a name or `*`", "required", "the prompt"),
    Key::new("operations", "a list of operations", "[get]", "what may be done with it"),
    Key::new("ttl", "a time such as `5m`", "`ttl` above", "how long it holds"),
];

/// One capability that is issued to a new session.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultCapability {
    /// What it allows.
    pub scope: ChioScope,
    /// How long it holds.
    pub ttl: Duration,
}

/// The capabilities that a section names, one for each time that they hold.
pub(crate) fn read(section: &Section<'_>) -> Vec<DefaultCapability> {
    let ttl = section.duration("ttl").unwrap_or(TTL);
    let mut scopes: BTreeMap<Duration, ChioScope> = BTreeMap::new();
    let of = |item: &Section<'_>| {
        let ttl = item.duration("ttl").unwrap_or(ttl);
        if ttl > MAX_TTL {
            item.problem("ttl", "expected at most `30d`");
        }
        ttl
    };
    for item in section.sections("tools", TOOL) {
        let (server, tool) = (required(&item, "server"), required(&item, "tool"));
        let (Some(server), Some(tool)) = (server, tool) else { continue };
        let mut grant = ToolGrant::new(server, tool, &operations(&item, Operation::Invoke));
        grant.max_invocations = item
            .number("max_invocations", 1..=u64::from(u32::MAX))
            .and_then(|number| u32::try_from(number).ok());
        grant.max_cost_per_invocation = money(&item, "max_cost_per_call");
        grant.max_total_cost = money(&item, "max_total_cost");
        grant.dpop_required = item.flag("proof", false).then_some(true);
        scopes.entry(of(&item)).or_default().grants.push(grant);
    }
    for item in section.sections("resources", RESOURCE) {
        let Some(uri_pattern) = required(&item, "uri") else { continue };
        let operations = operations(&item, Operation::Read);
        let grant = ResourceGrant { uri_pattern, operations };
        scopes.entry(of(&item)).or_default().resource_grants.push(grant);
    }
    for item in section.sections("prompts", PROMPT) {
        let Some(prompt_name) = required(&item, "prompt") else { continue };
        let operations = operations(&item, Operation::Get);
        let grant = PromptGrant { prompt_name, operations };
        scopes.entry(of(&item)).or_default().prompt_grants.push(grant);
    }
    scopes.into_iter().map(|(ttl, scope)| DefaultCapability { scope, ttl }).collect()
}

fn required(item: &Section<'_>, key: &str) -> Option<String> {
    let found = item.required(key, item.text(key), "expected a name here, or `*`")?;
    // Grants know no other wildcard: `read_*` would be a tool of that very name.
    let partial = found.text.contains('*') && found.text != WILDCARD && key != "uri";
    if partial {
        item.problem(key, "expected a whole name or `*`; a part of a name cannot be granted");
        return None;
    }
    Some(found.text.to_owned())
}

fn operations(item: &Section<'_>, default: Operation) -> Vec<Operation> {
    let operations = item.words("operations", &words());
    if operations.is_empty() { vec![default] } else { operations }
}

fn money(item: &Section<'_>, key: &str) -> Option<MonetaryAmount> {
    let found = item.text(key)?;
    let parsed = MonetaryAmount::parse(found.text);
    if parsed.is_none() {
        item.problem(key, "expected minor units and a currency, such as `500 USD`");
    }
    parsed
}
