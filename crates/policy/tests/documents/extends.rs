//! What extends what, what becomes of both, and what is noted about it.

use std::fs;
use std::path::{Path, PathBuf};

use chio_policy::document::{Document, MAX_EXTENDS, RULESETS, load, of_text};
use chio_yaml::MAX_BYTES;
use serde_json::{Value, json};

/// A folder of files that goes away again.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path =
            std::env::temp_dir().join(format!("chio-documents-{}-{name}", std::process::id()));
        let _fresh = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            let file = path.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(path)
    }

    fn load(&self, reference: &str) -> Result<Document, String> {
        load(reference, &self.0).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            problems.join("\n")
        })
    }

    fn files(&self, document: &Document) -> Vec<String> {
        let names = document.files.iter().map(|file| file.strip_prefix(&self.0).unwrap());
        names.map(|name| name.display().to_string()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

const BASE: &str = r#"
hushspec: "0.1.0"
name: base
description: the base
rules:
  egress: {allow: [a.example, b.example], block: [c.example], default: block}
  tool_access: {block: ["rm_*"]}
extensions:
  detection:
    prompt_injection: {enabled: true, block_at_or_above: high, max_scan_bytes: 1000}
chio:
  internal_network: {extra_blocked_hosts: [x.example], metadata_only: true}
  bridge: {native_only: true}
"#;

fn child(strategy: &str, rest: &str) -> String {
    format!("hushspec: \"0.1.0\"\nname: child\nextends: ./base.yaml\n{strategy}\n{rest}")
}

/// The effective document without its head.
fn body(document: &Document) -> Value {
    let mut value = document.root.to_value();
    for head in ["hushspec", "name", "description", "extends", "merge_strategy"] {
        value.as_object_mut().unwrap().remove(head);
    }
    value
}

const CHANGES: &str = r#"
rules:
  egress: {allow: [d.example]}
extensions:
  detection:
    prompt_injection: {block_at_or_above: critical}
chio:
  internal_network: {metadata_only: false}
"#;

#[test]
fn deep_merge_replaces_rules_whole_and_goes_member_by_member_elsewhere() {
    for (number, strategy) in ["", "merge_strategy: deep_merge"].into_iter().enumerate() {
        let files = [("base.yaml", BASE), ("child.yaml", &*child(strategy, CHANGES))];
        let folder = Folder::new(&format!("deep-{number}"), &files);
        let document = folder.load("child.yaml").unwrap();
        assert_eq!(
            body(&document),
            json!({
                "rules": {
                    "egress": {"allow": ["d.example"]},
                    "tool_access": {"block": ["rm_*"]},
                },
                "extensions": {"detection": {"prompt_injection": {
                    "enabled": true, "block_at_or_above": "critical", "max_scan_bytes": 1000,
                }}},
                "chio": {
                    "internal_network": {"extra_blocked_hosts": ["x.example"], "metadata_only": false},
                    "bridge": {"native_only": true},
                },
            })
        );
        assert_eq!(document.name.as_deref(), Some("child"));
        assert_eq!(folder.files(&document), ["base.yaml", "child.yaml"]);
        assert_eq!(document.folder.as_deref(), Some(&*folder.0));
    }
}

#[test]
fn merge_replaces_every_section_whole() {
    let files = [("base.yaml", BASE), ("child.yaml", &*child("merge_strategy: merge", CHANGES))];
    let folder = Folder::new("merge", &files);
    assert_eq!(
        body(&folder.load("child.yaml").unwrap()),
        json!({
            "rules": {
                "egress": {"allow": ["d.example"]},
                "tool_access": {"block": ["rm_*"]},
            },
            "extensions": {"detection": {"prompt_injection": {"block_at_or_above": "critical"}}},
            "chio": {"internal_network": {"metadata_only": false}, "bridge": {"native_only": true}},
        })
    );
}

#[test]
fn replace_keeps_the_child_alone_but_still_needs_the_base() {
    let text = child("merge_strategy: replace", CHANGES);
    let folder = Folder::new("replace", &[("base.yaml", BASE), ("child.yaml", &text)]);
    let document = folder.load("child.yaml").unwrap();
    assert_eq!(body(&document)["rules"], json!({"egress": {"allow": ["d.example"]}}));
    assert_eq!(body(&document)["chio"], json!({"internal_network": {"metadata_only": false}}));
    assert_eq!(folder.files(&document), ["base.yaml", "child.yaml"]);
    let folder = Folder::new("replace-alone", &[("child.yaml", &text)]);
    let problem = folder.load("child.yaml").unwrap_err();
    assert_eq!(problem, "child.yaml:3:10: `extends`: `base.yaml`: there is no such file");
}

#[test]
fn a_member_without_a_value_says_nothing() {
    let text = child("", "rules:\n  egress:\nextensions:\nchio:\n  internal_network:\n");
    let folder = Folder::new("nothing", &[("base.yaml", BASE), ("child.yaml", &text)]);
    let document = folder.load("child.yaml").unwrap();
    let base = folder.load("base.yaml").unwrap();
    assert_eq!(body(&document), body(&base));
    assert!(document.notes.is_empty());
}

#[test]
fn what_a_child_takes_away_is_noted() {
    let changes = r#"
rules:
  egress: {allow: [b.example, a.example, d.example]}
  tool_access: {enabled: false}
chio:
  internal_network: {extra_blocked_hosts: []}
"#;
    let files = [("base.yaml", BASE), ("child.yaml", &*child("", changes))];
    let folder = Folder::new("notes", &files);
    let notes = folder.load("child.yaml").unwrap().notes;
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "child.yaml:7:11: `rules.egress.block` is left out here, where base.yaml:6:50 has 1 item; \
             a section of `rules` is replaced as a whole",
            "child.yaml:8:16: `rules.tool_access` is switched off here; base.yaml:7:16 has it in \
             force",
            "child.yaml:10:43: `chio.internal_network.extra_blocked_hosts`: lists are not joined; 1 of \
             the 1 items of base.yaml:12:43 is not here",
        ]
    );
}

#[test]
fn files_are_looked_up_from_the_file_that_names_them() {
    let folder = Folder::new(
        "folders",
        &[
            ("a/b/child.yaml", "hushspec: \"0.1.0\"\nextends: ../team.yaml\n"),
            ("a/team.yaml", "hushspec: \"0.1.0\"\nextends: ./deep/base.yaml\nname: team\n"),
            ("a/deep/base.yaml", BASE),
        ],
    );
    let document = folder.load("a/b/child.yaml").unwrap();
    assert_eq!(document.name, None);
    assert_eq!(body(&document)["chio"]["bridge"], json!({"native_only": true}));
    assert_eq!(folder.files(&document), ["a/deep/base.yaml", "a/team.yaml", "a/b/child.yaml"]);
    let place = &document.root.get("rules").unwrap().place;
    assert_eq!(place.to_string(), "a/deep/base.yaml:6:3");
    assert_eq!(document.folder.as_deref(), Some(&*folder.0.join("a/b")));
}

#[test]
fn circles_are_refused_with_the_way_around() {
    let extends = |file: &str| format!("hushspec: \"0.1.0\"\nextends: {file}\n");
    let folder = Folder::new(
        "circle",
        &[
            ("a.yaml", &extends("./b.yaml")),
            ("b.yaml", &extends("./c/c.yaml")),
            ("c/c.yaml", &extends("../b.yaml")),
            ("self.yaml", &extends("./self.yaml")),
            ("same.yaml", &extends("./c/../same.yaml")),
        ],
    );
    assert_eq!(
        folder.load("a.yaml").unwrap_err(),
        "c/c.yaml:2:10: `extends`: this goes in a circle: b.yaml → c/c.yaml → b.yaml"
    );
    assert_eq!(
        folder.load("self.yaml").unwrap_err(),
        "self.yaml:2:10: `extends`: this goes in a circle: self.yaml → self.yaml"
    );
    assert!(folder.load("same.yaml").unwrap_err().contains("in a circle"));
}

#[cfg(unix)]
#[test]
fn a_circle_by_another_name_of_the_file_is_still_one() {
    let folder = Folder::new("link", &[("a.yaml", "hushspec: \"0.1.0\"\nextends: ./b.yaml\n")]);
    std::os::unix::fs::symlink(folder.0.join("a.yaml"), folder.0.join("b.yaml")).unwrap();
    assert!(folder.load("a.yaml").unwrap_err().contains("this goes in a circle: a.yaml → b.yaml"));
}

#[test]
fn at_most_eight_documents_extend_one_another() {
    let chain = |length: usize| {
        let files: Vec<(String, String)> = (0..=length)
            .map(|number| {
                let next = format!("extends: ./{}.yaml\n", number + 1);
                let next = if number == length { String::new() } else { next };
                (format!("{number}.yaml"), format!("hushspec: \"0.1.0\"\n{next}"))
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (&**name, &**text)).collect();
        Folder::new(&format!("chain-{length}"), &files)
    };
    assert_eq!(chain(MAX_EXTENDS).load("0.yaml").unwrap().files.len(), MAX_EXTENDS + 1);
    let problem = chain(MAX_EXTENDS + 1).load("0.yaml").unwrap_err();
    assert!(
        problem.starts_with("8.yaml:2:10: `extends`: expected at most 8 documents"),
        "{problem}"
    );
}

#[test]
fn built_in_rulesets_are_found_by_all_their_names() {
    let nowhere = Path::new("nowhere");
    for ruleset in RULESETS {
        for prefix in ["", "chio:", "hushspec:"] {
            let document = load(&format!("{prefix}{}", ruleset.name), nowhere).unwrap();
            assert_eq!(document.name.as_deref(), Some(ruleset.name));
            assert!(document.files.is_empty());
            assert_eq!(document.folder, None);
        }
        for prefix in ["", "chio:", "hushspec:"] {
            let text = format!("hushspec: \"0.1.0\"\nextends: {prefix}{}\n", ruleset.name);
            let document = of_text(&text, "inline", nowhere).unwrap();
            let whole = load(ruleset.name, nowhere).unwrap();
            assert_eq!(body(&document), body(&whole));
            assert!(document.notes.is_empty());
        }
    }
}

#[test]
fn a_file_wins_over_a_ruleset_only_where_it_is_there_or_looks_like_a_path() {
    let folder = Folder::new("names", &[("strict", "hushspec: \"0.1.0\"\nname: mine\n")]);
    assert_eq!(folder.load("strict").unwrap().name.as_deref(), Some("mine"));
    assert_eq!(folder.load("chio:strict").unwrap().name.as_deref(), Some("strict"));
    assert_eq!(folder.load("default").unwrap().name.as_deref(), Some("default"));
    assert_eq!(folder.load("./default").unwrap_err(), "default:1:1: there is no such file");
    assert_eq!(
        folder.load("defualt").unwrap_err(),
        "defualt:1:1: there is neither a file nor a built-in ruleset `defualt`; did you mean `default`?"
    );
    assert_eq!(
        folder.load("chio:lax").unwrap_err(),
        "chio:lax:1:1: there is no built-in ruleset `lax`; there is `default`, `strict`, `permissive` \
         and `code-agent`"
    );
}

#[test]
fn files_that_are_none_are_refused_by_name() {
    let large = format!("# {}\n", "x".repeat(MAX_BYTES));
    let folder = Folder::new("odd", &[("large.yaml", &large), ("folder/x", "")]);
    fs::write(folder.0.join("latin.yaml"), b"hushspec: \"0.1.0\"\nname: caf\xe9\n").unwrap();
    for (file, expected) in [
        (
            "large.yaml",
            "large.yaml:1:1: expected a document of at most 1048576 bytes, found a larger one",
        ),
        ("./folder", "folder:1:1: expected a file, found a folder"),
        ("latin.yaml", "latin.yaml:2:10: expected UTF-8 text, found bytes that are none"),
        ("gone.yaml", "gone.yaml:1:1: there is no such file"),
        (
            "https://x.example/p",
            "https://x.example/p:1:1: expected a file or a built-in ruleset, found \
          a web address; save the document as a file and name that",
        ),
    ] {
        assert_eq!(folder.load(file).unwrap_err(), expected);
    }
}

#[test]
fn a_mistake_in_the_base_is_told_with_the_name_of_the_base() {
    let base = "hushspec: \"0.1.0\"\nrules:\n  egres: {}\n";
    let folder =
        Folder::new("base", &[("base.yaml", base), ("child.yaml", &child("", "nme: x\n"))]);
    assert_eq!(
        folder.load("child.yaml").unwrap_err(),
        "base.yaml:3:3: `rules`: there is no `egres`; did you mean `egress`?\n\
         child.yaml:5:1: the document: there is no `nme`; did you mean `name`?"
    );
}

#[test]
fn what_is_not_enforced_counts_in_the_effective_document() {
    let base = "hushspec: \"0.1.0\"\nrules:\n  computer_use: {enabled: true}\n";
    let off = child("", "rules:\n  computer_use: {enabled: false}\n");
    let folder = Folder::new(
        "enforced",
        &[("base.yaml", base), ("child.yaml", &child("", "")), ("off.yaml", &off)],
    );
    assert_eq!(
        folder.load("child.yaml").unwrap_err(),
        "base.yaml:3:17: `rules.computer_use`: this kernel does not enforce it; remove it or set \
         `enabled: false`"
    );
    assert!(folder.load("off.yaml").is_ok());
}

#[test]
fn inline_documents_look_files_up_in_the_folder_that_they_are_given() {
    let folder = Folder::new("inline", &[("base.yaml", BASE)]);
    let text = child("", "");
    let document = of_text(&text, "cases.yaml", &folder.0).unwrap();
    assert_eq!(folder.files(&document), ["base.yaml"]);
    assert_eq!(document.folder.as_deref(), Some(&*folder.0));
    let problems = of_text(&text, "cases.yaml", Path::new("nowhere")).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "cases.yaml:3:10: `extends`: `base.yaml`: there is no such file"
    );
}
