//! Which hosts calls may reach.

pub(crate) mod hosts;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use serde_json::json;

use self::hosts::HostSet;
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "egress-allowlist",
    section: "rules.egress",
    about: "Lets calls reach only the hosts of a list. Every place that a call names has to pass; \
            a place whose host cannot be told is denied. What a name resolves to is the business \
            of `internal-network` and of the tool that connects.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "allow",
            "a list of hosts: `example.com`, `*.example.com` (what is below it), `*`, `10.0.0.0/8`",
            "[]",
            "where calls may go",
        ),
        Key::new("block", "a list of hosts", "[]", "where calls may not go, whatever is allowed"),
        Key::new("default", "`allow` or `block`", "block", "what holds for all other hosts"),
    ],
    always: false,
    build,
};

struct Egress {
    allow: HostSet,
    block: HostSet,
    others: bool,
}

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let allow = HostSet::read(section, "allow");
    let block = HostSet::read(section, "block");
    let words = [("allow", true), ("block", false)];
    let others = section.one_of("default", &words).unwrap_or(false);
    section.enabled(true)?;
    let guard = Egress { allow, block, others };
    let forbidden = guard
        .forbidden_host()
        .map(|host| ExampleCall::new("http_request", json!({"url": format!("https://{host}/")})));
    let refuse = move |input: &GuardInput<'_>| destinations(input, |host| guard.refuses(host));
    Some(Built::refusing(KIND.name, forbidden, refuse))
}

impl Egress {
    /// A host that it must not let through.
    fn forbidden_host(&self) -> Option<String> {
        if let Some(host) = self.block.example() {
            return Some(host);
        }
        let unlisted = "egress-self-test.example.org";
        self.refuses(Some(unlisted)).map(|_| unlisted.to_owned())
    }

    /// Why a host may not be reached.
    fn refuses(&self, host: Option<&str>) -> Option<String> {
        let Some(host) = host else {
            return Some("a destination has no host that can be told".to_owned());
        };
        if let Some(pattern) = self.block.find(host) {
            return Some(format!("a destination is in `rules.egress.block`, by `{pattern}`"));
        }
        if self.others || self.allow.find(host).is_some() {
            return None;
        }
        Some("a destination is not in `rules.egress.allow`".to_owned())
    }
}

/// Why a call may not reach one of its destinations, by a rule about hosts. Arguments of a network
/// call that cannot be read are refused.
pub(super) fn destinations(
    input: &GuardInput<'_>,
    refuses: impl Fn(Option<&str>) -> Option<String>,
) -> Result<Option<String>, String> {
    let facts = Facts::of_call(input)?;
    match &facts.malformed {
        Some(why) if matches!(facts.action, Action::Network | Action::Browser) => {
            Ok(Some(format!("it cannot be told where the call goes: {why}")))
        }
        _ => {
            let hosts = || facts.destinations.iter().map(|to| to.host.as_deref());
            let bytes = hosts().flatten().map(str::len).sum();
            input.work.charge_each(bytes, 8).map_err(|spent| spent.to_string())?;
            Ok(hosts().find_map(refuses))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allow: &[&str], block: &[&str], others: bool) -> Egress {
        let set = |texts: &[&str]| {
            let mut set = HostSet::default();
            texts.iter().for_each(|text| set.add(text).unwrap());
            set
        };
        Egress { allow: set(allow), block: set(block), others }
    }

    #[test]
    fn what_is_blocked_is_blocked_whatever_else_is_said() {
        let guard = guard(&["*"], &["evil.example"], true);
        assert!(guard.refuses(Some("evil.example")).is_some());
        assert_eq!(guard.refuses(Some("good.example")), None);
    }

    #[test]
    fn the_default_counts_for_hosts_on_no_list() {
        assert_eq!(guard(&[], &[], true).refuses(Some("a.example")), None);
        assert!(guard(&[], &[], false).refuses(Some("a.example")).is_some());
        assert!(guard(&[], &[], true).refuses(None).is_some(), "no host is no allowed host");
    }

    #[test]
    fn a_guard_that_allows_everything_has_nothing_to_prove() {
        assert_eq!(guard(&[], &[], true).forbidden_host(), None);
        assert_eq!(guard(&["*"], &[], false).forbidden_host(), None);
        for guard in [guard(&["*.example.org"], &["a.example"], false), guard(&["a.b"], &[], false)]
        {
            let host = guard.forbidden_host().unwrap();
            assert!(guard.refuses(Some(&host)).is_some(), "{host}");
        }
    }
}
