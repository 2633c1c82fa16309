//! Where a browser that an agent drives may go, and what it may do there.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use regex::{Regex, RegexSet};
use serde_json::{Value, json};

use super::egress::hosts::HostSet;
use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "browser-automation",
    section: "rules.browser_automation",
    about: "For tools that drive a browser: the domains that it may open, the verbs that it may \
            be told, and no passwords typed into pages. It sees what the tool is told, not where \
            the page leads on.",
    keys: &[
        Key::new("enabled", "true or false", "false", "whether it is in force"),
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
        Key::new(
            "credential_detection",
            "true or false",
            "true",
            "whether typing passwords is denied",
        ),
        Key::new(
            "extra_credential_patterns",
            "a list of regular expressions",
            "[]",
            "names of fields and texts that are credentials besides",
        ),
    ],
    always: false,
    build,
    samples: SAMPLES,
};

/// Members that say what the browser is told to do.
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
    let extra = section.patterns("extra_credential_patterns");
    let detects = section.flag("credential_detection", true);
    if !section.flag("enabled", false) {
        return None;
    }
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
    Some(Built { guard: Arc::new(guard), forbidden })
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

    fn refuses(&self, facts: &Facts, input: &GuardInput<'_>) -> Option<String> {
        if let Some(why) = &facts.malformed {
            return Some(format!("it cannot be told what the browser is to do: {why}"));
        }
        let verbs = match verbs(input.tool_name, input.arguments) {
            Ok(verbs) => verbs,
            Err(why) => return Some(why),
        };
        let mut places = facts.destinations.iter();
        places
            .find_map(|to| self.refuses_host(to.host.as_deref()))
            .or_else(|| self.refuses_verb(&verbs))
            .or_else(|| self.refuses_typing(&verbs, input.arguments))
    }
}

/// What the browser is told to do: what the arguments say, else what the tool's name says.
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

#[async_trait]
impl Guard for Browser {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let facts = Facts::of_call(input)?;
        if facts.action != Action::Browser {
            return Ok(Verdict::Allow.into());
        }
        Ok(self.refuses(facts, input).map_or(Verdict::Allow, Verdict::Deny).into())
    }
}

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  rules:
    browser_automation:
      enabled: true
      allowed_domains: ["docs.example.com", "*.example.org"]
      blocked_domains: ["admin.example.org"]
      allowed_verbs: [navigate, click, type, screenshot]
      extra_credential_patterns: ["(?i)mother's maiden"]
cases:
  - {name: an allowed page, tool: browser_navigate, args: {url: "https://docs.example.com/"}, expect: allow}
  - {name: a click, tool: browser_click, args: {selector: ".next"}, expect: allow}
  - {name: text in a field, tool: browser_type, args: {selector: ".search", text: "rust"}, expect: allow}
  - {name: no browser, tool: echo, args: {text: "https://other.example/"}, expect: allow}
  - {name: another page, tool: browser_navigate, args: {url: "https://other.example.net/"}, expect: deny, by: browser-automation, says: allowed_domains}
  - {name: a blocked page, tool: puppeteer_navigate, args: {url: "https://ADMIN.example.org./"}, expect: deny, by: browser-automation, says: blocked_domains}
  - {name: another verb, tool: browser_evaluate, args: {expression: "1"}, expect: deny, by: browser-automation, says: allowed_verbs}
  - {name: another verb as an argument, tool: browser, args: {action: download}, expect: deny, by: browser-automation, says: allowed_verbs}
  - {name: a password, tool: browser_type, args: {selector: "input[name=password]", text: "x"}, expect: deny, by: browser-automation, says: credential}
  - {name: somebody's own pattern, tool: browser_type, args: {selector: ".q", label: "Mother's maiden name"}, expect: deny, by: browser-automation}
  - {name: a verb that is none, tool: browser, args: {action: [click]}, expect: deny, by: browser-automation}
"#;
