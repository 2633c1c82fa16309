//! Keeps calls away from this machine, from private networks and from cloud metadata.

pub(super) mod embedded;

use std::net::IpAddr;

use chio_kernel::GuardInput;
use chio_net::address::{AddressClass, AddressError, AddressPattern, AddressRules};
use chio_yaml::{Key, Section};
use serde_json::json;

use super::egress::destinations;
use super::egress::hosts::HostSet;
use super::malformed::AMBIGUOUS;
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::Facts;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "internal-network",
    section: "chio.internal_network",
    about: "Denies calls that name this machine, a private or link-local network, or the metadata \
            service of a cloud, in whatever form the address is written. Names are judged by their \
            text and not looked up: a public name that resolves to a private address is stopped \
            where Chio itself connects, and a tool server that connects on its own has to do the same.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "extra_blocked_hosts",
            "a list of hosts, `*.host` or blocks of addresses",
            "[]",
            "what is denied besides",
        ),
        Key::new(
            "allow",
            "a list of hosts, `*.host` or blocks of addresses",
            "[]",
            "what may be reached although it is internal; metadata addresses only one by one",
        ),
        Key::flag(
            "metadata_only",
            "false",
            "whether only metadata services and `extra_blocked_hosts` are denied",
        ),
    ],
    always: true,
    build,
};

/// Names by which clouds issue credentials; some of them look public.
const METADATA_NAMES: [&str; 12] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.oraclecloud.com",
    "instance-data",
    "instance-data.ec2.internal",
    "rancher-metadata",
    "kubernetes.default.svc",
];

struct InternalNetwork {
    rules: AddressRules,
    /// Names that are allowed, whatever address they have in them.
    allow: HostSet,
    metadata_only: bool,
}

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let mut rules = AddressRules::public_only();
    for pattern in patterns(section, "extra_blocked_hosts") {
        rules = rules.deny(pattern);
    }
    for pattern in patterns(section, "allow") {
        rules = rules.allow(pattern);
    }
    let allow = HostSet::read(section, "allow");
    let metadata_only = section.flag("metadata_only", false);
    section.enabled(true)?;
    let guard = InternalNetwork { rules, allow, metadata_only };
    let forbidden = guard
        .forbidden_host()
        .map(|host| ExampleCall::new("http_request", json!({"url": format!("http://{host}/")})));
    let refuse = move |input: &GuardInput<'_>| {
        let refused = destinations(input, |host| guard.refuses(host))?;
        let ambiguous = refused.is_none() && Facts::of_call(input)?.is_ambiguous;
        Ok(refused.or_else(|| {
            ambiguous.then(|| format!("it cannot be told where the call goes: {AMBIGUOUS}"))
        }))
    };
    Some(Built::refusing(KIND.name, forbidden, refuse))
}

fn patterns(section: &Section<'_>, key: &str) -> Vec<AddressPattern> {
    let read = |item: chio_yaml::Item<'_>| match item.text.parse() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let error: chio_net::address::PatternError = error;
            section.problem_at(item.place, &error.to_string());
            None
        }
    };
    section.texts(key).into_iter().filter_map(read).collect()
}

impl InternalNetwork {
    /// A host that it must not let through: one that is not allowed expressly.
    fn forbidden_host(&self) -> Option<String> {
        let hosts =
            ["169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "100.100.100.200"];
        let refused = hosts.into_iter().find(|host| self.refuses(Some(host)).is_some());
        refused.map(ToOwned::to_owned)
    }

    /// Why a host may not be reached.
    fn refuses(&self, host: Option<&str>) -> Option<String> {
        let Some(host) = host else {
            return Some("a destination has no host that can be told".to_owned());
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        if METADATA_NAMES.contains(&host) && self.allow.find(host).is_none() {
            return Some("a destination is the metadata service of a cloud".to_owned());
        }
        if let Some(why) = self.judge(host) {
            return Some(why);
        }
        if host.parse::<IpAddr>().is_ok() || self.allow.find(host).is_some() {
            return None;
        }
        let inside = embedded::addresses(host);
        let mut reasons = inside.into_iter().filter_map(|address| self.judge(&address.to_string()));
        reasons.next().map(|why| format!("{why}, which its name has in it"))
    }

    fn judge(&self, host: &str) -> Option<String> {
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        // As https and without a port: only where it goes counts here.
        let url =
            if is_bare_v6 { format!("https://[{host}]/") } else { format!("https://{host}/") };
        let refused = self.rules.judge(&url).err()?;
        if self.metadata_only {
            let metadata = AddressClass::Metadata;
            let counts = matches!(&refused, AddressError::Denied { .. })
                || matches!(&refused, AddressError::Class { class, .. } if *class == metadata);
            if !counts {
                return None;
            }
        }
        Some(match refused {
            AddressError::Class { class, .. } => format!("a destination is a {class} address"),
            AddressError::LocalName { .. } => {
                "a destination has a name that means something only inside a network".to_owned()
            }
            AddressError::Denied { .. } => {
                "a destination is in `chio.internal_network.extra_blocked_hosts`".to_owned()
            }
            _ => "a destination's host is neither a name nor an address".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allow: &[&str], metadata_only: bool) -> InternalNetwork {
        let mut guard = InternalNetwork {
            rules: AddressRules::public_only().deny("*.blocked.example".parse().unwrap()),
            allow: HostSet::default(),
            metadata_only,
        };
        for text in allow {
            guard.rules = guard.rules.allow(text.parse().unwrap());
            guard.allow.add(text).unwrap();
        }
        guard
    }

    #[test]
    fn internal_places_are_refused_in_every_form() {
        let guard = guard(&[], false);
        for host in [
            "127.0.0.1",
            "10.1.2.3",
            "[::1]",
            "::1",
            "::ffff:7f00:1",
            "64:ff9b::a9fe:a9fe",
            "fd00:ec2::254",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "localhost",
            "x.localhost",
            "metadata.google.internal",
            "metadata.goog",
            "printer.local",
            "intranet",
            "10.0.0.1.nip.io",
            "a.b.10-0-0-1.sslip.io",
            "app.localtest.me",
            "7f000001.nip.io",
            "7f000001.08080808.rbndr.us",
            "x.blocked.example",
            "a..b",
            "169.254.169.254.",
        ] {
            assert!(guard.refuses(Some(host)).is_some(), "{host}");
        }
        assert!(guard.refuses(None).is_some());
        for host in
            ["example.com", "8.8.8.8", "8.8.8.8.nip.io", "2606:4700::1111", "internal.example.com"]
        {
            assert_eq!(guard.refuses(Some(host)), None, "{host}");
        }
    }

    #[test]
    fn what_is_allowed_expressly_may_be_reached_and_nothing_beside_it() {
        let guard = guard(
            &["localhost", "127.0.0.0/8", "10.0.0.5", "*.dev.corp", "192-168-0-1.nip.io"],
            false,
        );
        for host in [
            "localhost",
            "127.0.0.1",
            "10.0.0.5",
            "a.dev.corp",
            "127.0.0.1.nip.io",
            "192-168-0-1.nip.io",
        ] {
            assert_eq!(guard.refuses(Some(host)), None, "{host}");
        }
        for host in ["10.0.0.6", "dev.corp", "b.localhost", "169.254.169.254", "192-168-0-2.nip.io"]
        {
            assert!(guard.refuses(Some(host)).is_some(), "{host}");
        }
    }

    #[test]
    fn metadata_only_leaves_the_rest_of_the_network_alone() {
        let guard = guard(&[], true);
        for host in [
            "169.254.169.254",
            "metadata",
            "::ffff:169.254.169.254",
            "169.254.169.254.nip.io",
            "a.blocked.example",
        ] {
            assert!(guard.refuses(Some(host)).is_some(), "{host}");
        }
        for host in ["127.0.0.1", "printer.local", "10.0.0.1"] {
            assert_eq!(guard.refuses(Some(host)), None, "{host}");
        }
    }

    #[test]
    fn the_proof_is_a_host_that_is_refused_also_where_much_is_allowed() {
        for allow in
            [&[][..], &["169.254.169.254"], &["169.254.169.254", "metadata.google.internal"]]
        {
            let guard = guard(allow, false);
            let host = guard.forbidden_host().unwrap();
            assert!(guard.refuses(Some(&host)).is_some(), "{host}");
        }
    }
}
