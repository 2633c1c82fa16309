//! Where a browser that an agent drives may go, and what it may do there.

use std::collections::BTreeSet;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use regex::{Regex, RegexSet};
use serde_json::{Value, json};

use super::egress::hosts::HostSet;
use super::{Building, Built, GuardKind};
use crate::document::patterns;
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "browser-automation",
    section: "rules.browser_automation",
    about: "For tools that drive a browser: the domains that it may open, the verbs that it may \
            be told, and no passwords typed into pages. It sees what the tool is told, not where \
            the page leads on.",
    keys: &[
        Key::flag("enabled", "false", "whether it is in force"),
        Key::new(
            "allowed_domains",
            "a list of hosts: `example.com`, `*.example.com`",
            "all",
            "where it may go",
        ),
        Key::new(
            "blocked_domains",
            "a list of hosts",
            "[]",
            "where it may not go, whatever is allowed",
        ),
        Key::new(
            "allowed_verbs",
            "a list of words such as `navigate` and `click`",
            "all",
            "what it may be told",
        ),
        Key::flag("credential_detection", "true", "whether typing passwords is denied"),
        patterns::key(
            "extra_credential_patterns",
            "[]",
            "names of fields and texts that are credentials besides",
        ),
    ],
    always: false,
    build,
};

/// Members that name the verb for the browser.
const VERB_MEMBERS: [&str; 6] = ["action", "verb", "operation", "command", "method", "type"];
/// Words of tools that are no verbs.
const TOOL_WORDS: [&str; 10] = [
    "browser",
    "puppeteer",
    "playwright",
    "webpage",
    "page",
    "mcp",
    "tool",
    "web",
    "computer",
    "use",
];
/// Verbs that put text into a page.
const TYPING: [&str; 10] =
    ["type", "fill", "input", "enter", "write", "set", "insert", "paste", "press", "form"];
/// Names and labels of fields that take credentials, and the forms of one-time codes' fields.
const CREDENTIAL_FIELDS: &str = r#"(?i)passw(?:or)?d|passphrase|passcode|(?-u:\b)pwd(?-u:\b)|(?-u:\b)pin(?-u:\b)|(?-u:\b)otp(?-u:\b)|one.?time.?code|2fa|mfa|(?-u:\b)cvv|(?-u:\b)cvc(?-u:\b)|card.?number|security.?code|secret.?(?:key|answer|question)|api.?key|private.?key|type=.?password|current-password|new-password"#;

struct Browser {
    /// None where every domain is allowed.
    allowed: Option<HostSet>,
    blocked: HostSet,
    /// None where every verb is allowed.
    verbs: Option<BTreeSet<String>>,
    credentials: RegexSet,
}

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let allowed = HostSet::read(section, "allowed_domains");
    let blocked = HostSet::read(section, "blocked_domains");
    let verbs =
        section.texts("allowed_verbs").iter().map(|item| item.text.to_lowercase()).collect();
    let extra = patterns::list(section, "extra_credential_patterns");
    let detects = section.flag("credential_detection", true);
    section.enabled(false)?;
    let own = detects.then_some(CREDENTIAL_FIELDS);
    let patterns = own.into_iter().chain(extra.iter().map(Regex::as_str));
    let Ok(credentials) = RegexSet::new(patterns) else {
        section.problem(
            "extra_credential_patterns",
            "expected patterns that fit in memory together, found larger ones",
        );
        return None;
    };
    let guard = Browser {
        allowed: section.has("allowed_domains").then_some(allowed),
        blocked,
        verbs: section.has("allowed_verbs").then_some(verbs),
        credentials,
    };
    let forbidden = guard.forbidden(detects);
    Some(Built::refusing(KIND.name, forbidden, move |input| guard.refuses(input)))
}

impl Browser {
    /// A call that it must not let through.
    fn forbidden(&self, detects: bool) -> Option<ExampleCall> {
        let unlisted = "browser-self-test.example.org".to_owned();
        let closed = || self.refuses_host(Some(&unlisted)).map(|_| unlisted.clone());
        if let Some(host) = self.blocked.example().or_else(closed) {
            let arguments = json!({"url": format!("https://{host}/")});
            return Some(ExampleCall::new("browser_navigate", arguments));
        }
        if detects {
            let arguments = json!({"selector": "input[type=password]", "text": "x"});
            return Some(ExampleCall::new("browser_type", arguments));
        }
        let verbs = self.verbs.as_ref()?;
        let verb =
            (0..).map(|number| format!("verb{number}")).find(|verb| !verbs.contains(verb))?;
        Some(ExampleCall::new("browser_do", json!({ "action": verb })))
    }

    fn refuses_host(&self, host: Option<&str>) -> Option<String> {
        let Some(host) = host else {
            return Some("a place has no host that can be told".to_owned());
        };
        if let Some(pattern) = self.blocked.find(host) {
            return Some(format!(
                "the place is in `rules.browser_automation.blocked_domains`, by `{pattern}`"
            ));
        }
        let allowed = self.allowed.as_ref()?;
        let reason = "the place is not in `rules.browser_automation.allowed_domains`";
        allowed.find(host).is_none().then(|| reason.to_owned())
    }

    fn refuses_verb(&self, verbs: &[String]) -> Option<String> {
        let allowed = self.verbs.as_ref()?;
        if verbs.is_empty() {
            return Some("it cannot be told what the browser is to do".to_owned());
        }
        let reason = "a verb is not in `rules.browser_automation.allowed_verbs`";
        verbs.iter().any(|verb| !allowed.contains(verb)).then(|| reason.to_owned())
    }

    /// Whether text is typed where passwords go, or something that is one.
    fn refuses_typing(&self, verbs: &[String], arguments: &Value) -> Option<String> {
        let types = verbs.iter().any(|verb| verb.split('_').any(|word| TYPING.contains(&word)));
        let is_credential = || any_text(arguments, &|text| self.credentials.is_match(text));
        let reason =
            "credentials are typed into a page (`rules.browser_automation.credential_detection`)";
        (types && !self.credentials.is_empty() && is_credential()).then(|| reason.to_owned())
    }

    fn refuses(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        let facts = Facts::of_call(input)?;
        if facts.action != Action::Browser {
            return Ok(None);
        }
        if let Some(why) = &facts.malformed {
            return Ok(Some(format!("it cannot be told what the browser is to do: {why}")));
        }
        let steps = input.work.charge_each(input.argument_bytes, self.credentials.len() + 1);
        steps.map_err(|spent| spent.to_string())?;
        let verbs = match verbs(input.tool_name, input.arguments) {
            Ok(verbs) => verbs,
            Err(why) => return Ok(Some(why)),
        };
        let mut hosts = facts.destinations.iter().map(|to| to.host.as_deref());
        Ok(hosts
            .find_map(|host| self.refuses_host(host))
            .or_else(|| self.refuses_verb(&verbs))
            .or_else(|| self.refuses_typing(&verbs, input.arguments)))
    }
}

/// The verbs for the browser: those of the arguments, else that of the tool's name.
fn verbs(tool_name: &str, arguments: &Value) -> Result<Vec<String>, String> {
    let mut said = Vec::new();
    if let Value::Object(members) = arguments {
        for (name, value) in members {
            if !VERB_MEMBERS.contains(&name.to_lowercase().as_str()) {
                continue;
            }
            match value {
                Value::String(verb) => said.push(verb.trim().to_lowercase()),
                _ => {
                    return Err(
                        "expected a word for what the browser is to do, found something else"
                            .to_owned(),
                    );
                }
            }
        }
    }
    let mut words = String::new();
    for c in tool_name.chars() {
        if c.is_uppercase() && !words.ends_with('_') {
            words.push('_');
        }
        if c.is_alphanumeric() { words.extend(c.to_lowercase()) } else { words.push('_') }
    }
    let own: Vec<&str> =
        words.split('_').filter(|word| !word.is_empty() && !TOOL_WORDS.contains(word)).collect();
    // `browser_do` with an action is named by the action, `browser_click` by itself.
    if said.is_empty() && !own.is_empty() {
        said.push(own.join("_"));
    }
    Ok(said)
}

fn any_text(value: &Value, holds: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, holds)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| holds(name) || any_text(value, holds))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
