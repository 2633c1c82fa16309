//! Secrets in every place and disguise, and what only looks like one.

use serde_json::{Value, json};

use super::*;

fn finder() -> Finder {
    Finder::new(kinds::defaults()).unwrap()
}

fn names(value: &Value) -> Vec<String> {
    scan(&finder(), value, &Work::long()).unwrap().map(|found| found.names).unwrap_or_default()
}

const TOKEN: &str = concat!("gh", "p_Zk3vQ9xR7mT2wY8nB4cH6jL1pD5sF0gAe7Uq");
/// The same in base64, in hex, and with an escape and percent signs.
const BASE64: &str = "Z2hwX1prM3ZROXhSN21UMndZOG5CNGNINmpMMXBENXNGMGdBZTdVcQ==";
const HEX: &str = "6768705f5a6b337651397852376d543277593\
                   86e423463 48366a4c3170443573463067416537 5571";

#[test]
fn a_secret_is_taken_out_of_every_place_where_it_stands() {
    let hex = HEX.replace(' ', "");
    let (one, two) = TOKEN.split_at(11);
    let wide: String =
        TOKEN.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
    let thin: String = TOKEN.chars().flat_map(|c| [c, '\u{200b}']).collect();
    let spaced: String = TOKEN.chars().flat_map(|c| [c, ' ']).collect();
    let codes: Vec<u8> = TOKEN.bytes().collect();
    let mut percent = String::new();
    TOKEN.bytes().for_each(|byte| percent.push_str(&format!("%{byte:02X}")));
    for value in [
        json!({"text": TOKEN}),
        json!({"text": format!("a {TOKEN}, b")}),
        json!([{"deep": [[TOKEN]]}]),
        json!({TOKEN: 1}),
        json!({"part1": one, "part2": two}),
        json!([one, two]),
        json!({one: 1, two: 2}),
        json!({"text": format!("{one}\n  {two}")}),
        json!({"code": format!("\"{one}\" + \"{two}\"")}),
        json!({"text": thin}),
        json!({"text": wide}),
        json!({"text": spaced}),
        json!({"text": format!("x {BASE64} y")}),
        json!({"text": hex}),
        json!({"text": percent}),
        json!({"text": TOKEN.replace('g', "\\u0067")}),
        json!({"codes": codes}),
        json!(TOKEN),
    ] {
        let found =
            scan(&finder(), &value, &Work::long()).unwrap().unwrap_or_else(|| panic!("{value}"));
        assert_eq!(found.names, ["github-token"], "{value}");
        let left = found.redacted.to_string();
        assert!(left.contains("[redacted:github-token]"), "{left}");
        for piece in [TOKEN, one, two, BASE64, &hex, &wide, &thin, &spaced, &percent] {
            assert!(!left.contains(piece), "{left}");
        }
        assert_eq!(names(&found.redacted), [""; 0], "nothing is found twice: {left}");
    }
}

#[test]
fn what_is_around_a_secret_stays() {
    let value = json!({"a": format!("before {TOKEN} after"), "b": 7, "c": [true, "d"]});
    let found = scan(&finder(), &value, &Work::long()).unwrap().unwrap();
    let expected = json!({"a": "before [redacted:github-token] after", "b": 7, "c": [true, "d"]});
    assert_eq!(found.redacted, expected);
}

#[test]
fn every_kind_of_secret_is_known_by_its_name() {
    let random = "Zk3vQ9xR7mT2wY8nB4cH6jL1pD5sF0gAe7UqXi9oKb2Wc4Vd6Nf8Mg0Lh1Jj3Pk5";
    let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let upper = "ZK3VQ9XR7MT2WY8NB4CH6JL1PD5SF0GA";
    let part = |length: usize| random.split_at(length).0;
    let block = format!(
        "-----BEGIN RSA {}-----\n{random}{random}\n-----END RSA {}-----",
        "PRIVATE KEY", "PRIVATE KEY"
    );
    for (text, name) in [
        (block, "private-key"),
        (format!("AKIA{}", upper.split_at(16).0), "aws-access-key"),
        (format!("aws_secret_access_key = {}", part(40)), "aws-secret-key"),
        (format!("github_pat_{random}"), "github-token"),
        (format!("glpat-{}", part(20)), "gitlab-token"),
        (format!("xoxb-123456789012-{}", part(24)), "slack-token"),
        (
            format!("https://hooks.slack.com/services/T0A1B2C3D/B0A1B2C3D/{}", part(24)),
            "slack-webhook",
        ),
        (format!("sk_live_{}", part(24)), "stripe-key"),
        (format!("sk-ant-api03-{}", part(60)), "anthropic-key"),
        (format!("sk-proj-{}", part(48)), "openai-key"),
        (format!("AIza{}", part(35)), "google-key"),
        (format!("AccountKey={}==", part(64)), "azure-key"),
        (format!("npm_{}", part(36)), "npm-token"),
        (format!("pypi-AgEIcHlwaS5vcmc{}", part(50)), "pypi-token"),
        (format!("SG.{}.{}", part(22), part(43)), "sendgrid-key"),
        (format!("SK{}", hex.split_at(32).0), "twilio-key"),
        (format!("hf_{}", part(34)), "huggingface-token"),
        (format!("dop_v1_{hex}"), "digitalocean-token"),
        (format!("hvs.{}", part(32)), "vault-token"),
        (format!("dckr_pat_{}", part(27)), "docker-token"),
        (format!("123456789:AA{}", part(33)), "telegram-token"),
        (format!("authority key: {hex}"), "chio-key"),
        (format!("kernel key: {hex}"), "chio-key"),
        (format!("kernel_seed={hex}"), "chio-key"),
        (format!("eyJ{}.eyJ{}.{}", part(20), part(30), part(43)), "jwt"),
        ("postgres://app:kT9x-mQ2vR7p@db.example.com/app".to_owned(), "connection-string"),
        ("Server=db;User=app;Password=kT9xmQ2vR7p;".to_owned(), "password"),
        (format!("Authorization: Bearer {}", part(40)), "authorization"),
    ] {
        let found = names(&json!({ "text": text }));
        assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
    }
}

#[test]
fn the_public_key_of_a_kernel_in_a_receipt_is_no_secret() {
    let hex = "0123456789abcdef".repeat(4);
    let receipt = json!({"kernel_key": hex, "subject_key": hex, "issuer_key": hex});
    assert_eq!(names(&json!({"receipt": receipt.to_string(), "kernelKey": hex})), [""; 0]);
    assert_eq!(names(&receipt), [""; 0]);
}

#[test]
fn members_with_telling_names_are_kept_out_of_receipts_and_not_denied() {
    let value = json!({"user": "a", "Client-Secret": "open sesame", "password": {"type": "string"}, "secret": "string"});
    let found = scan(&finder(), &value, &Work::long()).unwrap().unwrap();
    assert_eq!((found.severity, found.names), (Severity::Warn, vec!["member".to_owned()]));
    assert_eq!(found.redacted["Client-Secret"], "[redacted:member]");
    assert_eq!(found.redacted["secret"], "string");
}

#[test]
fn every_pattern_of_ours_can_be_compiled() {
    assert!(finder().patterns().all(|pattern| pattern.regex().is_some()));
}

#[test]
fn an_operators_pattern_replaces_ours_and_is_joined_too() {
    let kind = Kind::written(
        "own".to_owned(),
        Severity::Error,
        regex::Regex::new("KEY-[0-9]{8}").unwrap(),
    );
    let finder = Finder::new(vec![kind]).unwrap();
    let found = scan(&finder, &json!(["KEY-1234", "5678"]), &Work::long()).unwrap().unwrap();
    assert_eq!(found.redacted, json!(["[redacted:own]", "[redacted:own]"]));
    assert!(scan(&finder, &json!(TOKEN), &Work::long()).unwrap().is_none());
}
