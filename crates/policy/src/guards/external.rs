//! Asks services of the operator's own about calls, over HTTP.

mod service;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use chio_net::address::{AddressPattern, AddressRules};
use chio_net::client::{ClientOptions, HttpClient, Limits};
use chio_yaml::{Key, NodeKind, Section};

use self::service::{DEFAULT_PARTS, Part, Service};
use super::{Building, Built, GuardKind};
use crate::document::words;
use crate::pattern::ToolPatterns;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "external",
    section: "chio.external",
    about: "Asks services of your own about calls: each gets a POST with JSON and answers \
            `{\"verdict\": \"allow\" | \"deny\" | \"ask\", \"reason\": \"…\"}`. Another status, no answer in \
            time, a redirect, an answer of more than 64 KiB or of another form denies. A service \
            is told the arguments only where `send` says so.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "services",
            "a list of maps",
            "[]",
            "the services, asked in this order until one denies",
        )
        .of(SERVICE_KEYS),
    ],
    always: false,
    build,
};

const SERVICE_KEYS: &[Key] = &[
    Key::new("name", "text", "required", "what it is called in reasons"),
    Key::new("url", "an https URL", "required", "where it is"),
    Key::new("timeout", "a time such as `2s`, at most `30s`", "2s", "how long it is waited for"),
    Key::new(
        "send",
        "a list of `tool`, `server`, `args`, `args_hash`, `agent`, `session`, `capability`, \
         `protocol`, `model`, `cost`, `time` and `request`",
        "[tool, server, args_hash, agent, session, protocol]",
        "what it is told",
    ),
    Key::new(
        "headers_from_env",
        "a map from headers to names of environment variables",
        "{}",
        "headers with secrets, which are never shown",
    ),
    Key::new(
        "on",
        "a list of tools: `deploy_*`, `files/*`",
        "all tools",
        "which calls it is asked about",
    ),
    Key::flag(
        "allow_private",
        "false",
        "whether it may be in a private network, or on this machine over http",
    ),
];

/// Networks that are private.
const PRIVATE: [&str; 5] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

struct External {
    services: Vec<Service>,
}

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let entries = section.sections("services", SERVICE_KEYS);
    let services: Vec<Service> = entries.iter().filter_map(service_of).collect();
    section.enabled(true)?;
    if services.is_empty() {
        return None;
    }
    // What a service says is not known before it is asked, so nothing can be proved here.
    Some(Built { guard: Arc::new(External { services }), forbidden: None })
}

fn service_of(section: &Section<'_>) -> Option<Service> {
    let text = |key| section.required(key, section.text(key), "expected text, found nothing");
    let name = text("name")?.text.to_owned();
    let url = text("url")?.text.to_owned();
    let rules = rules(section.flag("allow_private", false), &url);
    if let Err(error) = rules.judge(&url) {
        section.problem("url", &format!("{error}; a service on this machine or in a private network needs `allow_private: true`"));
        return None;
    }
    let timeout = section.duration("timeout").unwrap_or(DEFAULT_TIMEOUT);
    if timeout > MAX_TIMEOUT {
        section.problem("timeout", "expected at most `30s`, found more: calls wait for it");
    }
    let limits = Limits { connect: timeout, total: timeout, ..Limits::default() };
    let client = HttpClient::new(ClientOptions { rules, limits, ..ClientOptions::default() });
    let client = client.map_err(|error| section.problem("url", &error.to_string())).ok()?;
    let headers = headers(section, |name| std::env::var(name).ok());
    let on = ToolPatterns::read(section, "on");
    Some(Service { name, url, timeout, send: parts(section), headers, on, client })
}

/// Where a service may be.
fn rules(allow_private: bool, url: &str) -> AddressRules {
    let public = AddressRules::public_only();
    if !allow_private {
        return public;
    }
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    let patterns = PRIVATE.into_iter().chain(host.as_deref());
    let patterns = patterns.filter_map(|text| text.parse::<AddressPattern>().ok());
    patterns.fold(public.with_loopback(), AddressRules::allow)
}

fn parts(section: &Section<'_>) -> Vec<Part> {
    if !section.has("send") {
        return DEFAULT_PARTS.to_vec();
    }
    section.words("send", &words())
}

/// Headers whose values are in the environment.
fn headers(
    section: &Section<'_>,
    look_up: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let Some(node) = section.node("headers_from_env") else { return Vec::new() };
    let NodeKind::Map(members) = &node.kind else {
        section.problem("headers_from_env", &format!("expected a map, found {}", node.found()));
        return Vec::new();
    };
    let mut headers = Vec::new();
    for (header, value) in members {
        let NodeKind::Text(variable) = &value.kind else {
            let found = value.found();
            section.problem_at(
                &value.place,
                &format!("expected the name of an environment variable, found {found}"),
            );
            continue;
        };
        match look_up(variable) {
            Some(value) => headers.push((header.text.clone(), value)),
            None => section.problem_at(
                &value.place,
                "expected an environment variable that is set, found one that is not",
            ),
        }
    }
    headers
}

#[async_trait]
impl Guard for External {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let mut verdict = Verdict::Allow;
        for service in self.services.iter().filter(|service| service.concerns(input)) {
            match service.ask(input).await {
                Verdict::Allow => {}
                denied @ (Verdict::Deny(_) | Verdict::WrongArguments(_)) => {
                    return Ok(denied.into());
                }
                // Another service may still deny.
                asks @ Verdict::AwaitApproval(_) if verdict == Verdict::Allow => verdict = asks,
                Verdict::AwaitApproval(_) => {}
            }
        }
        Ok(verdict.into())
    }
}
