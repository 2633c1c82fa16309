//! The address rules against every textual form of an address, and against what names resolve to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Deserialize;
use url::Host;

use super::{AddressError, AddressPattern, AddressRules, Destination};

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    url: String,
    verdict: String,
    class: String,
}

fn vectors() -> Vec<Case> {
    let text = include_str!("../../../../spec/vectors/net/addresses.json");
    serde_json::from_str::<Vectors>(text).unwrap().cases
}

fn told(outcome: &Result<Destination, AddressError>) -> (&'static str, &'static str) {
    let class = match outcome {
        Ok(destination) if matches!(destination.parsed_host(), Host::Domain(_)) => {
            return ("resolve", "name");
        }
        Ok(_) => return ("allow", "public"),
        Err(AddressError::Class { class, .. }) => class.into(),
        Err(AddressError::LocalName { .. }) => "local-name",
        Err(AddressError::Malformed(_)) => "malformed",
        Err(AddressError::PlainHttp { .. }) => "plain-http",
        Err(AddressError::Port(_)) => "port",
        Err(AddressError::UserInfo) => "userinfo",
        Err(AddressError::Denied { .. } | AddressError::NoAddress { .. }) => "other",
    };
    ("deny", class)
}

fn pattern(text: &str) -> AddressPattern {
    text.parse().unwrap()
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn every_textual_form_is_judged_as_the_vectors_say() {
    let cases = vectors();
    let urls: BTreeSet<_> = cases.iter().map(|case| &case.url).collect();
    assert!(urls.len() >= 150, "{}", urls.len());
    let rules = AddressRules::public_only();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let outcome = rules.judge(&case.url);
            let found = told(&outcome);
            let expected = (case.verdict.as_str(), case.class.as_str());
            (found != expected).then(|| format!("{}: {expected:?}, {outcome:?}", case.url))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_name_that_has_an_address_of_any_case_is_judged_as_the_address_is() {
    let rules = AddressRules::public_only();
    let name = rules.judge("https://name.example/").unwrap();
    for case in vectors() {
        let Ok(url) = url::Url::parse(&case.url) else { continue };
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => continue,
        };
        let outcome = rules.judge_addresses(&name, &[address]);
        match case.verdict.as_str() {
            "allow" => assert_eq!(outcome, Ok(()), "{address}"),
            _ if super::classify(address) == super::AddressClass::Public => {}
            _ => assert!(matches!(outcome, Err(AddressError::Class { .. })), "{address}"),
        }
    }
}

#[test]
fn one_forbidden_address_spoils_a_name() {
    let rules = AddressRules::public_only();
    let name = rules.judge("https://name.example/").unwrap();
    assert_eq!(rules.judge_addresses(&name, &addresses(&["8.8.8.8", "2606:4700::1"])), Ok(()));
    for spoiled in [["8.8.8.8", "127.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::1"]] {
        assert!(rules.judge_addresses(&name, &addresses(&spoiled)).is_err(), "{spoiled:?}");
    }
    let none = rules.judge_addresses(&name, &[]).unwrap_err();
    assert_eq!(none.to_string(), "expected an address for `name.example`, found none");
}

/// What the rules are, a URL, the addresses of its name, and whether it may be reached.
type Rule = (fn() -> AddressRules, &'static str, &'static [&'static str], bool);

#[test]
fn options_open_what_they_name_and_nothing_else() {
    let plain = AddressRules::public_only;
    let loopback: fn() -> AddressRules = || AddressRules::public_only().with_loopback();
    let http: fn() -> AddressRules = || AddressRules::public_only().with_http();
    let cases: &[Rule] = &[
        (plain, "https://name.example/", &["8.8.8.8"], true),
        (plain, "http://name.example/", &["8.8.8.8"], false),
        (http, "http://name.example/", &["8.8.8.8"], true),
        (http, "http://name.example/", &["127.0.0.1"], false),
        (http, "http://127.0.0.1/", &[], false),
        (loopback, "http://127.0.0.1:9090/", &["127.0.0.1"], true),
        (loopback, "http://[::1]:9090/", &["::1"], true),
        (loopback, "http://[::ffff:127.0.0.1]/", &["::ffff:127.0.0.1"], true),
        (loopback, "http://localhost:9090/", &["127.0.0.1", "::1"], true),
        (loopback, "http://a.localhost/", &["127.0.0.1"], true),
        (loopback, "http://a.localhost/", &["8.8.8.8"], false),
        (loopback, "https://a.localhost/", &["10.0.0.1"], false),
        (loopback, "http://name.example/", &["127.0.0.1"], false),
        (loopback, "https://name.example/", &["127.0.0.1"], true),
        (loopback, "http://10.0.0.1/", &[], false),
        (loopback, "http://0.0.0.0/", &[], false),
        (loopback, "http://metadata.google.internal/", &[], false),
        // What only hides a loopback address is not this machine.
        (loopback, "http://[2606:4700::5efe:7f00:1]/", &[], false),
        (loopback, "https://[2606:4700::5efe:7f00:1]/", &[], false),
        (loopback, "http://[64:ff9b:1:a9fe:a9:fe00:7f00:1]/", &[], false),
        (loopback, "http://[2002:7f00:1::1]/", &[], false),
        (loopback, "http://[2001:0:7f00:1:0:0:5601:5601]/", &[], false),
        (loopback, "http://[64:ff9b::7f00:1]/", &[], false),
        (loopback, "http://evil.localhost/", &["2606:4700::5efe:7f00:1"], false),
        (loopback, "https://name.example/", &["64:ff9b::7f00:1"], false),
    ];
    for (rules, url, resolved, expected) in cases {
        let rules = rules();
        let reached = rules
            .judge(url)
            .and_then(|destination| rules.judge_addresses(&destination, &addresses(resolved)));
        assert_eq!(reached.is_ok(), *expected, "{url} {resolved:?}: {reached:?}");
    }
}

/// What is allowed, what is denied, a host and its address, and whether it may be reached.
type Listed = (&'static [&'static str], &'static [&'static str], &'static str, &'static str, bool);

#[test]
fn lists_open_and_close_blocks_and_names() {
    let cases: &[Listed] = &[
        (&["10.1.0.0/16"], &[], "10.1.2.3", "10.1.2.3", true),
        (&["10.1.0.0/16"], &[], "[::ffff:10.1.2.3]", "::ffff:10.1.2.3", true),
        (&["10.1.0.0/16"], &[], "10.2.0.1", "10.2.0.1", false),
        (&["10.1.0.0/16"], &["10.1.2.0/24"], "10.1.2.3", "10.1.2.3", false),
        (&["10.1.0.0/16"], &["10.1.2.0/24"], "[::ffff:10.1.2.3]", "::ffff:10.1.2.3", false),
        (&["10.1.0.0/16"], &[], "a.example", "10.1.0.1", true),
        (&["fd00::/8"], &[], "[fd00::1]", "fd00::1", true),
        (&["db.internal"], &[], "db.internal", "10.0.0.1", true),
        (&["db.internal"], &[], "x.internal", "10.0.0.1", false),
        (&["*.internal"], &[], "x.internal", "fd00::1", true),
        (&["*.internal"], &["x.internal"], "x.internal", "fd00::1", false),
        (&["*.internal"], &["fd00::/8"], "x.internal", "fd00::1", false),
        (&["db.internal"], &[], "db.internal", "0.0.0.0", false),
        (&["db.internal"], &[], "db.internal", "224.0.0.1", false),
        // Neither a wide block nor a trusted name reaches credentials.
        (&["0.0.0.0/0"], &[], "169.254.169.254", "169.254.169.254", false),
        (&["169.254.0.0/16"], &[], "169.254.169.254", "169.254.169.254", false),
        (&["*.internal"], &[], "metadata.google.internal", "169.254.169.254", false),
        (&["169.254.169.254"], &[], "169.254.169.254", "169.254.169.254", true),
        (&["::/0"], &[], "[fd00:ec2::254]", "fd00:ec2::254", false),
        (&[], &["8.8.8.0/24"], "8.8.8.8", "8.8.8.8", false),
        (&[], &["8.8.8.0/24"], "[64:ff9b::8.8.8.8]", "64:ff9b::8.8.8.8", false),
        (&["corp.example"], &[], "corp.example", "64:ff9b:1:a9fe:a9:fe00:a00:1", false),
        (&["corp.example"], &[], "corp.example", "2001:0:a00:1::5601:5601", false),
        (&["corp.example"], &[], "corp.example", "fd00:c1::a9fe:a9fe", false),
        (&["corp.example"], &[], "corp.example", "fe80::a9fe:a9fe", false),
        (&["corp.example"], &[], "corp.example", "64:ff9b:1:a9:fe:a9fe:a00:1", false),
        (&["corp.example"], &[], "corp.example", "64:ff9b:1:0:a9:fea9:fe00:1", false),
        (&["64:ff9b:1::/48"], &[], "a.example", "64:ff9b:1::a9fe:a9fe", false),
        (&["64:ff9b:1::/48"], &[], "a.example", "64:ff9b:1::8.8.8.8", true),
        (&["169.254.169.254"], &[], "a.example", "64:ff9b::a9fe:a9fe", false),
        // A trusted name or an IPv4 block opens no address that others turn into another one.
        (&["corp.example"], &[], "corp.example", "10.0.0.1", true),
        (&["corp.example"], &[], "corp.example", "::ffff:10.0.0.1", true),
        (&["corp.example"], &[], "corp.example", "::1", true),
        (&["corp.example"], &[], "corp.example", "64:ff9b::10.0.0.1", false),
        (&["corp.example"], &[], "corp.example", "2002:a00:1::1", false),
        (&["corp.example"], &[], "corp.example", "2002:808:808::1", false),
        (&["10.0.0.0/8"], &[], "a.example", "64:ff9b::10.0.0.1", false),
        (&[], &["8.8.8.0/24"], "a.example", "8.8.8.8", false),
        (&["2002::/16"], &["8.8.8.0/24"], "a.example", "2002:808:808::1", false),
        (&[], &["::ffff:8.8.8.0/120"], "8.8.8.8", "8.8.8.8", false),
        (&[], &["::ffff:8.8.8.0/120"], "[::ffff:8.8.8.8]", "::ffff:8.8.8.8", false),
        (&[], &["*.example"], "a.example", "8.8.8.8", false),
        (&[], &["*.example"], "A.EXAMPLE.", "8.8.8.8", false),
        (&["a.example"], &["*.example"], "a.example", "8.8.8.8", false),
    ];
    for (allow, deny, host, address, expected) in cases {
        let rules = allow.iter().fold(AddressRules::default(), |rules, p| rules.allow(pattern(p)));
        let rules = deny.iter().fold(rules, |rules, p| rules.deny(pattern(p)));
        let reached = rules
            .judge(&format!("https://{host}/"))
            .and_then(|destination| rules.judge_addresses(&destination, &addresses(&[address])));
        assert_eq!(reached.is_ok(), *expected, "{allow:?} {deny:?} {host}: {reached:?}");
    }
}

#[test]
fn a_relative_place_is_judged_as_an_absolute_one() {
    let rules = AddressRules::public_only();
    let base = rules.judge("https://a.example/x/y?z").unwrap();
    for (text, expected) in [
        ("../w", Some("https://a.example/w")),
        ("//b.example/", Some("https://b.example/")),
        ("https://b.example./#f", Some("https://b.example/")),
        ("//127.0.0.1/", None),
        ("//2130706433/", None),
        ("https://u@b.example/", None),
        ("http://a.example/", None),
        ("\\\\127.0.0.1\\", None),
        ("file:///x", None),
        ("https:w", None),
        ("https:/b.example/", None),
        ("https:b.example://c.example/", None),
    ] {
        let outcome = rules.judge_from(&base, text);
        let found = outcome.as_ref().ok().map(|destination| destination.url().as_str());
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn rules_without_grants_know_public_addresses_alone() {
    let rules = AddressRules::public_only().with_http().with_loopback();
    let rules = rules.allow(pattern("10.0.0.0/8")).allow(pattern("db.internal"));
    let rules = rules.deny(pattern("8.8.8.0/24")).without_grants();
    for (url, expected) in [
        ("http://1.1.1.1/", true),
        ("https://name.example/", true),
        ("https://8.8.8.8/", false),
        ("https://10.0.0.1/", false),
        ("https://127.0.0.1/", false),
        ("https://localhost/", false),
        ("https://db.internal/", false),
    ] {
        assert_eq!(rules.judge(url).is_ok(), expected, "{url}");
    }
}

#[test]
fn neither_errors_nor_debug_texts_repeat_paths_queries_or_credentials() {
    let rules = AddressRules::public_only();
    let allowed = rules.judge("https://a.example/secret?secret#secret").unwrap();
    assert_eq!(format!("{allowed:?}"), "Destination(https://a.example:443)");
    for url in [
        "https://secret:secret@a.example/",
        "http://a.example/secret?secret",
        "https://127.0.0.1/secret?secret",
        "https://localhost/secret?secret",
        "https://a.example:22/secret",
        "https://a b/secret",
    ] {
        let error = rules.judge(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}
