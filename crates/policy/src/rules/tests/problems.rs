//! What is wrong with rules, and where.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{Otherwise, call, read, verdict};
use crate::document::of_text;
use crate::policy::Policy;
use crate::rules::bounds::{MAX_DEPTH, MAX_STEPS};
use crate::state::State;

/// Rules where everything is allowed that is not forbidden, and what is wrong with them.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "forbid(principal, action, resource)",
        &["1:36: unexpected end of input; expected `;` or identifier"],
    ),
    (
        "deny(principal, action, resource);",
        &["1:1: invalid policy effect: deny; effect must be either `permit` or `forbid`"],
    ),
    (
        "\n  forbid(principal, action, resource)\n  when { context.pathz.contains(\"é\") };",
        &[
            "3:10: attribute `pathz` in context for Action::\"call\" not found; did you mean `path`?",
        ],
    ),
    (
        "forbid(principal, action, resource) when { \"é\" == context.actoin };",
        &[
            "1:51: attribute `actoin` in context for Action::\"call\" not found; did you mean `action`?",
        ],
    ),
    (
        "forbid(principal, action, resource) when { context.cost.units > 3 };",
        &[
            "1:44: unable to guarantee safety of access to optional attribute `cost` in context for \
           Action::\"call\"; try testing for the attribute's presence with `context has cost && ..`",
        ],
    ),
    (
        "forbid(principal, action, resource) when { context.writes > 3 };",
        &["1:44: unexpected type: expected Long but saw Bool"],
    ),
    (
        "forbid(principal, action == Action::\"read\", resource);",
        &["1:29: unrecognized action `Action::\"read\"`; did you mean `Action::\"call\"`?"],
    ),
    (
        "forbid(principal, action, resource == Server::\"a\");",
        &[
            "1:1: the head of this rule fits no call: principals are of type Agent, resources of type \
           Tool, and the one action is Action::\"call\"; try replacing `==` with `in` in the \
           resource clause",
        ],
    ),
    (
        "forbid(principal, action, resource);\nforbid(principal, action, resource) when { false };",
        &["2:1: this rule can never apply: what it says is false for every call"],
    ),
    (
        "forbid(principal == ?principal, action, resource);",
        &[
            "1:1: this is a template (`?principal`, `?resource`), which nothing fills in here; name \
           the agent or the tool",
        ],
    ),
    (
        "forbid(principal == Agent::\"alice\", action, resource);",
        &["1:1: expected Agent::\"…\" with a public key of 64 small hex digits"],
    ),
    (
        "forbid(principal, action, resource) unless { principal == Agent::\"AAAAAAAAAAAAAAAAAAAAAAAA\
         AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\" };",
        &["1:1: expected Agent::\"…\" with a public key of 64 small hex digits"],
    ),
    (
        "forbid(principal, action, resource == Tool::\"read\");",
        &["1:1: expected Tool::\"SERVER/TOOL\", found no server and tool in it"],
    ),
    (
        "// a comment\n\npermit(principal, action, resource);",
        &["3:1: a `permit` changes nothing where all is permitted that no rule forbids; set \
           `default: deny`, or write what is forbidden"],
    ),
    (
        "@approval(\"x\") forbid(principal, action, resource);",
        &["1:1: `@approval` takes no value; its words are those of `@reason`"],
    ),
    (
        "@aproval forbid(principal, action, resource);",
        &["1:1: there is no `@aproval`; there is `@id`, `@reason` and `@approval`"],
    ),
    ("@id(\"\") forbid(principal, action, resource);", &["1:1: `@id`: expected text, found none"]),
    (
        "@reason(\"two\\nlines\") forbid(principal, action, resource);",
        &["1:1: `@reason`: expected one line of plain text"],
    ),
    (
        "@id(\"a\") forbid(principal, action, resource);\n@id(\"a\") forbid(principal, action, resource);",
        &["2:1: the id `a` is here a second time; the first is at rules.cedar:1:1"],
    ),
    (
        "forbid(principal, action, resource) when { \"\u{202e}abc\" == context.action };",
        &["1:44: string `\"?abc\"` contains BIDI control characters"],
    ),
];

#[test]
fn every_mistake_is_told_with_its_place() {
    for (text, expected) in MISTAKES {
        let found = read(text, Otherwise::Allow).expect_err(text);
        let expected: Vec<String> = expected.iter().map(|it| format!("rules.cedar:{it}")).collect();
        assert_eq!(found, expected, "{text}");
    }
    let text = "@approval permit(principal, action, resource);";
    let found = read(text, Otherwise::Deny).expect_err(text);
    assert_eq!(found, ["rules.cedar:1:1: `@approval` belongs to a `forbid`, this is a `permit`"]);
}

#[test]
fn names_of_any_script_may_be_written() {
    for name in ["/data/データ", "/данные/x", "naïve"] {
        let text = format!(
            "forbid(principal, action, resource) when {{ context.paths.contains(\"{name}\") }};"
        );
        assert!(read(&text, Otherwise::Allow).is_ok(), "{name}");
    }
}

/// What is read is walked by recursion: what is within the bounds fits a small stack.
#[test]
fn the_longest_rules_can_be_read_asked_and_dropped() {
    let (many, deep) = (MAX_STEPS - 4, MAX_DEPTH - 2);
    for (reads, condition) in [
        (true, format!("{}context.writes{}", "(".repeat(deep), ")".repeat(deep))),
        (true, format!("{}context.writes{}", "(!".repeat(deep), ")".repeat(deep))),
        (true, format!("{}context.writes{}", "[".repeat(deep), "].contains(true)".repeat(deep))),
        (true, format!("context.writes{}", " && context.writes".repeat(many / 3))),
        (true, format!("context.writes{}", " || context.writes".repeat(many / 3))),
        (true, format!("context.argumentBytes{} > 3", " + 1".repeat(many - 2))),
        (true, format!("{}context.writes", "if context.writes then true else ".repeat(many / 2))),
        (false, format!("context{}", ".chio".repeat(many))),
        (false, format!("{}context.writes{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH))),
        (false, format!("context.writes{}", " && context.writes".repeat(MAX_STEPS))),
    ] {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        let rules = read(&text, Otherwise::Allow);
        assert_eq!(rules.is_ok(), reads, "{rules:?}");
        drop(rules.map(|rules| verdict(&rules, &call("s", "t"))));
    }
}

/// Everything that is wrong with a document.
fn problems_of(text: &str, folder: &Path) -> Vec<String> {
    let document = of_text(text, "p.yaml", folder).unwrap();
    let read = Policy::of_document(document, &Arc::new(State::default()));
    read.expect_err(text).iter().map(ToString::to_string).collect()
}

#[test]
fn places_are_those_of_the_document() {
    let wrong = "`nope` in context for Action::\"call\" not found; did you mean `now`?";
    for (rules, place) in [
        (
            "  rules:
    cedar: |
      forbid(principal, action, resource) when { context.nope };",
            "5:50",
        ),
        (
            "    rules:
        cedar: |
            // x
            forbid(principal, action, resource)
              when { context.nope };",
            "7:22",
        ),
        (
            "  rules:
    cedar: |


      forbid(principal, action, resource) when { context.nope };",
            "7:50",
        ),
        (
            "  rules:
    cedar: forbid(principal, action, resource) when { context.nope };",
            "4:55",
        ),
    ] {
        let found = problems_of(&format!("hushspec: \"0.1.0\"\nchio:\n{rules}\n"), Path::new("."));
        assert_eq!(found, [format!("p.yaml:{place}: attribute {wrong}")]);
    }
}

#[test]
fn files_are_found_beside_the_document_and_belong_to_it() {
    let folder = std::env::temp_dir().join(format!("chio-rules-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let text = "hushspec: \"0.1.0\"\nchio:\n  rules:\n    file: my.cedar\n";
    let missing = problems_of(text, &folder);
    assert_eq!(missing.len(), 1);
    assert!(missing[0].starts_with("p.yaml:4:11: `chio.rules.file`: the file cannot be read: "));

    fs::write(folder.join("my.cedar"), "\nforbid(principal, action, resource) when { 1 };")
        .unwrap();
    let wrong = problems_of(text, &folder);
    assert_eq!(wrong, ["my.cedar:2:44: unexpected type: expected Bool but saw Long"]);

    let policy = |rule: &str| {
        fs::write(folder.join("my.cedar"), rule).unwrap();
        let document = of_text(text, "p.yaml", &folder).unwrap();
        Policy::of_document(document, &Arc::new(State::default())).unwrap()
    };
    let one = policy("forbid(principal, action, resource);");
    let other = policy("forbid(principal, action, resource == Tool::\"a/b\");");
    assert_ne!(one.hash(), other.hash());
    assert!(one.files().contains(&folder.join("my.cedar")));

    fs::write(folder.join("my.cedar"), [0xff, 0xfe]).unwrap();
    assert!(problems_of(text, &folder)[0].contains("expected rules in UTF-8"));
    fs::write(folder.join("my.cedar"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    assert!(problems_of(text, &folder)[0].contains("more than 1048576 bytes"));
    let nothing = text.replace("my.cedar", ".");
    assert!(problems_of(&nothing, &folder)[0].contains("no ordinary file"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_document_that_denies_everything_by_accident_is_refused() {
    let text = "hushspec: \"0.1.0\"\nchio:\n  rules:\n    default: deny\n";
    let found = problems_of(text, Path::new("."));
    let expected = "p.yaml:4:14: `chio.rules.default`: `deny` without any rule that permits denies \
                    every call";
    assert_eq!(found, [expected]);
}
