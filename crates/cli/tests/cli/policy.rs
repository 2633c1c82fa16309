//! `chio policy`: what people are told about documents and calls.

use crate::support::Folder;

const SMALL: &str = "\
hushspec: \"0.1.0\"
name: small
rules:
  tool_access:
    block: [drop_*]
    require_confirmation: [deploy]
  forbidden_paths:
    patterns: [\"**/.env\"]
";

const CASES: &str = "\
cases:
  - {tool: echo, expect: allow}
  - {tool: drop_all, expect: deny, by: tool-access, says: \"`drop_*`\"}
  - {name: a deploy asks, tool: deploy, expect: ask}
  - {tool: read_file, args: {path: /workspace/.env}, expect: deny, by: forbidden-path}
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("small.yaml", SMALL);
    folder.write("cases.yaml", CASES);
    folder
}

/// The same, with one text in place of another.
fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}");
    text.replace(old, new)
}

#[test]
fn a_policy_in_order_is_told_by_its_hash_and_its_guards() {
    let folder = folder();
    let run = folder.line("policy check small.yaml").ends(0);
    let hash = folder.line("policy check small.yaml --json").ends(0).json()["hash"].clone();
    let hash = hash.as_str().unwrap();
    assert_eq!(hash.len(), 64);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines[..3],
        ["policy      small", &format!("hash        {hash}"), "files       small.yaml"]
    );
    assert!(run.stdout.contains("guards      tool-access\n"), "{run:#?}");
    assert!(run.stdout.contains("\n            forbidden-path\n"), "{run:#?}");
    assert!(
        run.stdout.ends_with("result      valid, and every guard stops the call made for it\n")
    );

    // The hash is of what is in force, not of how it is written.
    folder.write("same.yaml", &format!("# The same.\n{}", with(SMALL, "name: small\n", "")));
    let same = folder.line("policy check same.yaml --json").ends(0).json();
    assert_eq!((same["hash"].as_str(), same["name"].as_str()), (Some(hash), Some("same.yaml")));
    folder.write("other.yaml", &with(SMALL, "drop_*", "drop"));
    let other = folder.line("policy check other.yaml --json").ends(0).json();
    assert_ne!(other["hash"], hash);
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    let folder = folder();
    folder.write(
        "bad.yaml",
        &with(&with(SMALL, "block:", "blok:"), "patterns: [\"**/.env\"]", "patterns: 3"),
    );
    let run = folder.line("policy check bad.yaml").ends(1);
    assert_eq!(
        run.stdout,
        "bad.yaml:5:5: `rules.tool_access`: there is no `blok`; did you mean `block`?\n\
         bad.yaml:8:15: `rules.forbidden_paths.patterns`: expected a list of texts, found a whole number, each after `- `\n\
         result      NOT VALID, 2 problems\n"
    );
    let told = folder.line("policy check bad.yaml --json").ends(1).json();
    assert_eq!(told["valid"], false);
    let places: Vec<_> = told["problems"].as_array().unwrap().iter().collect();
    assert_eq!((places[0]["line"].as_u64(), places[0]["column"].as_u64()), (Some(5), Some(5)));
    assert_eq!((places.len(), places[1]["file"].as_str()), (2, Some("bad.yaml")));

    // Every command that uses it tells the same, and does nothing.
    let files = folder.files();
    for line in [
        "policy explain bad.yaml --tool echo",
        "policy test bad.yaml cases.yaml",
        "up --policy bad.yaml",
        "up --shadow-policy bad.yaml",
        "native serve --unix a.sock --policy bad.yaml",
    ] {
        let run =
            folder.line(line).ends(2).complains("bad.yaml:5:5: ").complains("bad.yaml:8:15: ");
        assert_eq!(run.stderr.lines().last(), Some("error: `bad.yaml` cannot be used: 2 problems"));
        assert_eq!(run.stdout, "", "{line}");
    }
    assert_eq!(folder.files(), files);
}

#[test]
fn a_policy_that_is_not_there_is_named() {
    let folder = Folder::new();
    for (name, problem) in [
        ("missing.yaml", "missing.yaml:1:1: there is no such file\n"),
        ("./missing", "there is no such file\n"),
        ("defualt", "did you mean `default`?\n"),
        ("chio:nothing", "there is no built-in ruleset `nothing`"),
        ("https://example.com/policy.yaml", "found a web address"),
    ] {
        for line in ["policy check", "policy explain --tool t", "up --policy", "up --shadow-policy"]
        {
            let words: Vec<&str> = line.split(' ').chain([name]).collect();
            let run = folder.run(&words).ends(2).complains(problem);
            assert_eq!(run.stdout, "", "{line}");
        }
    }
    assert!(folder.files().is_empty());
}

#[test]
fn what_a_document_takes_away_from_the_one_below_is_noted() {
    let folder = folder();
    folder.write(
        "mine.yaml",
        "hushspec: \"0.1.0\"\nextends: small.yaml\nrules:\n  tool_access:\n    block: [x]\n",
    );
    let run = folder.line("policy check mine.yaml").ends(0);
    let run = run.says("\nnote: mine.yaml:5:12: `rules.tool_access.block`: lists are not joined;");
    let told = folder.line("policy check mine.yaml --json").ends(0).json();
    let notes = run.stdout.lines().filter(|line| line.starts_with("note: ")).count();
    assert_eq!(told["notes"].as_array().unwrap().len(), notes);
    assert_eq!(told["files"], serde_json::json!(["small.yaml", "mine.yaml"]));
}

#[test]
fn every_built_in_policy_is_listed_shown_and_in_order() {
    let folder = Folder::new();
    let listed = folder.line("policy list --json").ends(0).json();
    let listed = listed["policies"].as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "strict", "permissive", "code-agent"]);
    let people = folder.line("policy list").ends(0);
    for (name, policy) in names.iter().zip(listed) {
        assert!(policy["description"].as_str().unwrap().len() > 20);
        assert!(people.stdout.contains(&format!("{name:12}")), "{people:#?}");
        let built_in = folder.line(&format!("policy check {name} --json")).ends(0).json();
        let text = folder.line(&format!("policy show {name}")).ends(0).stdout;
        folder.write("copy.yaml", &text);
        let copy = folder.line("policy check copy.yaml --json").ends(0).json();
        assert_eq!(built_in["hash"], copy["hash"], "{name}");
    }
    assert!(people.stdout.lines().all(|line| line.chars().count() <= 100));
    folder.line("policy show strcit").ends(2).complains("default, strict, permissive, code-agent");
}

#[test]
fn the_policy_to_begin_with_is_in_order_and_takes_nothing_away() {
    let folder = Folder::new();
    let run = folder.line("policy init").ends(0).says("written to  policy.yaml\n");
    for line in run.stdout.lines().filter_map(|line| line.strip_prefix("  chio policy ")) {
        let check = folder.line(&format!("policy {line}")).ends(0);
        assert!(!check.stdout.contains("note:"), "{check:#?}");
    }
    let guards = |name: &str| {
        let told = folder.line(&format!("policy check {name} --json")).ends(0).json();
        let guards = told["guards"].as_array().unwrap().clone();
        guards.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mine = guards("policy.yaml");
    assert!(guards("default").iter().all(|guard| mine.contains(guard)), "{mine:?}");

    // The part that is commented out is in order, too.
    let text = folder.read("policy.yaml");
    let all =
        text.replace("\n  # capabilities:", "\n  capabilities:").replace("\n  #   ", "\n    ");
    folder.write("all.yaml", &all);
    folder.line("policy check all.yaml").ends(0).says("hands out   2 tool grants for 1h\n");

    // It is not overwritten unasked.
    folder.write("policy.yaml", "mine");
    folder.line("policy init").ends(2).complains("`policy.yaml` exists already");
    assert_eq!(folder.read("policy.yaml"), "mine");
    folder.line("policy init --force").ends(0);
    assert_eq!(folder.read("policy.yaml"), text);
    folder.line("policy init missing/x.yaml").ends(2).complains("cannot write `missing/x.yaml`");
}

#[test]
fn what_the_guide_says_of_the_policy_to_begin_with_is_so() {
    let folder = Folder::new();
    let guide = include_str!("../../../../docs/policy.md");
    let blocks: Vec<&str> = guide.split("```yaml\n").skip(1).collect();
    let block = |begin: &str| {
        let found = blocks.iter().find(|block| block.starts_with(begin)).unwrap();
        found.split_once("```").unwrap().0
    };
    folder.line("policy init").ends(0);
    folder.write("cases.yaml", block("cases:"));
    folder.line("policy test policy.yaml cases.yaml").ends(0).says("5 cases, all as expected");
    folder.write("hand.yaml", &format!("hushspec: \"0.1.0\"\n{}", block("chio:\n  capabilities:")));
    folder.line("policy check hand.yaml").ends(0).says("hands out   1 tool grant for 5m\n");
    folder.write("policy.yaml", &with(&folder.read("policy.yaml"), "block:", "blok:"));
    let told = folder.line("policy check policy.yaml").ends(1).stdout;
    assert!(guide.contains(&told), "{told}");
}

#[test]
fn a_decision_is_explained_guard_by_guard() {
    let folder = folder();
    let explain = |words: &[&str]| {
        folder.run(&[&["policy", "explain", "small.yaml", "--tool"], words].concat()).ends(0)
    };
    let run = explain(&["read_file", "--args", r#"{"path": "/workspace/secretname/.env"}"#]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "policy      small",
            "call        example/read_file",
            "SAYS   GUARD",
            "allow  tool-access"
        ]
    );
    assert_eq!(lines.last(), Some(&"decision    DENY, by forbidden-path"));
    assert!(run.stdout.contains("deny   forbidden-path\n"), "{run:#?}");
    assert!(run.stdout.contains("`**/.env`"), "{run:#?}");
    assert!(!run.stdout.contains("secretname"), "arguments are not printed: {run:#?}");

    let ends_with = |words: &[&str], end: &str| {
        let run = explain(words);
        assert!(run.stdout.ends_with(&format!("decision    {end}\n")), "{run:#?}");
    };
    ends_with(&["echo"], "allow: no guard stands in the way");
    ends_with(&["deploy"], "ASK for an approval, by tool-access");
    ends_with(&["drop_all"], "DENY, by tool-access");
    let told = explain(&["deploy", "--server", "prod", "--json"]).json();
    assert_eq!(
        (told["tool"].as_str(), told["decision"].as_str()),
        (Some("prod/deploy"), Some("ask"))
    );
    assert_eq!(told["steps"][0]["guard"], "tool-access");
    assert_eq!(told["policy_hash"], folder.line("policy check small.yaml --json").json()["hash"]);
    // Arguments may come from standard input.
    let words = ["policy", "explain", "small.yaml", "--tool", "read_file", "--args", "-"];
    folder.run_with(br#"{"path": "/a/.env"}"#, &words).ends(0).says("DENY, by forbidden-path");
}

#[test]
fn every_thing_that_a_guard_looks_at_can_be_told() {
    let folder = Folder::new();
    folder.write(
        "all.yaml",
        r#"
hushspec: "0.1.0"
rules:
  human_in_loop: {approve_above: 500, approve_above_currency: USD}
chio:
  bridge: {native_only: true, require_attenuation: true, refuse_adapted: true}
  models: {deny: ["bad-*"]}
"#,
    );
    for (words, expected) in [
        (&[][..], "allow: "),
        (&["--cost", "500 USD"], "allow: "),
        (&["--cost", "501 USD"], "ASK for an approval, by human-in-loop"),
        (&["--protocol", "a2a"], "DENY, by bridge"),
        (&["--protocol", "a2a", "--depth", "1"], "allow: "),
        (&["--protocol", "a2a", "--depth", "1", "--fidelity", "adapted"], "DENY, by bridge"),
        (&["--target", "mcp", "--depth", "1"], "DENY, by bridge"),
        (&["--model", r#"{"model_id": "bad-1"}"#], "DENY, by model-constraint"),
        (&["--model", r#"{"model_id": "good-1"}"#], "allow: "),
        (&["--schema", r#"{"required": ["a"]}"#], "DENY, by argument-schema"),
        (&["--schema", r#"{"required": ["a"]}"#, "--args", r#"{"a": 1}"#], "allow: "),
        (&["--agent", "alice", "--at", "2026-09-24T12:00:00Z"], "allow: "),
        (&["--at", "1790251200"], "allow: "),
    ] {
        let words = [&["policy", "explain", "all.yaml", "--tool", "t"], words].concat();
        folder.run(&words).ends(0).says(&format!("decision    {expected}"));
    }
}

#[test]
fn a_tool_is_taken_as_it_is_published() {
    let folder = Folder::new();
    folder.write("p.yaml", "hushspec: \"0.1.0\"\nrules:\n  human_in_loop: {approve_above: 20, approve_above_currency: USD}\n");
    let unknown = "allow  argument-schema  not judged: no schema was given (--schema)\n";
    for (words, says) in [
        (&["--tool", "t"][..], unknown),
        (&["--tool", "t", "--side-effects", "true"], unknown),
        (&["--tool", "demo/nothing"], unknown),
        (&["--tool", "demo/now"], "allow  argument-schema\n"),
        (&["--tool", "demo/now"], "call        demo/now\n"),
        (&["--tool", "a/b/c"], "call        a/b/c\n"),
        (&["--tool", "a/b", "--server", "s"], "call        s/a/b\n"),
        (&["--tool", "demo/echo"], "DENY, by argument-schema\n"),
        (&["--tool", "echo", "--server", "demo"], "DENY, by argument-schema\n"),
        (&["--tool", "demo/echo", "--schema", r#"{"type": "object"}"#], "decision    allow: "),
        (
            &["--tool", "demo/paid", "--args", r#"{"text": "a"}"#],
            "ASK for an approval, by human-in-loop\n",
        ),
    ] {
        folder.run(&[&["policy", "explain", "p.yaml"], words].concat()).ends(0).says(says);
    }
}

#[test]
fn a_call_that_is_not_understood_is_not_explained() {
    let folder = Folder::new();
    for words in [
        &["--tool", ""][..],
        &["--tool", " "],
        &["--tool", "demo/"],
        &["--tool", "/echo"],
        &["--tool", "t", "--server", ""],
        &["--tool", "t", "--side-effects", "maybe"],
        &["--tool", "t", "--args", "{a"],
        &["--tool", "t", "--args", "-"],
        &["--tool", "t", "--output", "{a"],
        &["--tool", "t", "--schema", "[]"],
        &["--tool", "t", "--model", "{}"],
    ] {
        let run = folder.run(&[&["policy", "explain", "default"], words].concat()).ends(2);
        assert_eq!(run.stdout, "", "{words:?}");
    }
}

#[test]
fn what_an_output_guard_does_is_explained() {
    let folder = Folder::new();
    let token = ["ghp", "_", "0123456789abcdefghijklmnopqrstuvwxyzAB"].concat();
    let output = format!(r#"{{"text": "{token}"}}"#);
    let words = ["policy", "explain", "default", "--tool", "echo", "--output", &output];
    let run = folder.run(&words).ends(0).says("redact  secret-leak (output)");
    let run = run.says("\noutput      {\"text\":\"");
    assert!(run.stdout.ends_with("decision    allow, redacted, by secret-leak\n"), "{run:#?}");
    let words = ["policy", "explain", "default", "--tool", "echo", "--output", r#"{"a": 1}"#];
    let unchanged = folder.run(&words).ends(0);
    assert!(!unchanged.stdout.contains("\noutput "), "{unchanged:#?}");
    let words = ["policy", "explain", "default", "--tool", "echo", "--output", &output];
    assert!(!run.stdout.contains(&token), "{run:#?}");
    let told = folder.run(&[&words[..], &["--json"]].concat()).ends(0);
    assert!(!told.stdout.contains(&token), "the output as it would leave: {told:#?}");
}

#[test]
fn cases_that_come_out_as_expected_end_with_0() {
    let folder = folder();
    let run = folder.line("policy test small.yaml cases.yaml").ends(0);
    assert_eq!(run.stdout, "4 cases, all as expected\n");
    let run = folder.line("policy test small.yaml cases.yaml cases.yaml").ends(0);
    assert_eq!(run.stdout, "8 cases, all as expected\n");
    let told = folder.line("policy test small.yaml cases.yaml --json").ends(0).json();
    assert_eq!((told["passed"].as_u64(), told["failed"].as_u64()), (Some(4), Some(0)));
    assert_eq!(told["cases"][1]["found"]["by"], "tool-access");
}

#[test]
fn a_case_that_comes_out_otherwise_is_shown_and_ends_with_1() {
    let folder = folder();
    let cases = with(CASES, "expect: allow", "expect: deny");
    let cases = with(&cases, "expect: ask", "expect: ask, by: somebody");
    folder.write("cases.yaml", &with(&cases, "by: forbidden-path", "says: no such reason"));
    let run = folder.line("policy test small.yaml cases.yaml").ends(1);
    assert_eq!(
        run.stdout,
        "cases.yaml:2: case 1: echo\n    \
             expected deny, found allow\n\
         cases.yaml:4: a deploy asks\n    \
             expected it to be somebody, found tool-access: `deploy` of `require_confirmation` names it\n\
         cases.yaml:5: case 4: read_file\n    \
             expected a reason with \"no such reason\", found: a path is forbidden by `**/.env` of `rules.forbidden_paths`\n\
         4 cases, 3 NOT as expected\n"
    );
    let told = folder.line("policy test small.yaml cases.yaml --json").ends(1).json();
    assert_eq!((told["passed"].as_u64(), told["failed"].as_u64()), (Some(1), Some(3)));
    let case = &told["cases"][0];
    assert_eq!((case["file"].as_str(), case["line"].as_u64()), (Some("cases.yaml"), Some(2)));
    assert_eq!(
        (&case["expected"]["decision"], &case["found"]["decision"]),
        (&"deny".into(), &"allow".into())
    );
}

#[test]
fn all_that_stands_in_the_way_is_shown_where_it_is_more_than_one() {
    let folder = folder();
    folder
        .write("cases.yaml", "cases:\n  - {tool: deploy, args: {path: /a/.env}, expect: allow}\n");
    let run = folder.line("policy test small.yaml cases.yaml").ends(1);
    run.says("ask   tool-access  `deploy` of").says("deny  forbidden-path\n");
}

#[test]
fn each_case_begins_anew_and_repeats_count() {
    let folder = Folder::new();
    folder.write(
        "cases.yaml",
        r#"
policy:
  hushspec: "0.1.0"
  rules: {velocity: {max_requests_per_agent: 2}}
cases:
  - {tool: echo, expect: allow, repeat: 2}
  - {tool: echo, expect: deny, by: velocity, repeat: 3}
  - {tool: echo, expect: allow, repeat: 2}
"#,
    );
    let run = folder.line("policy test cases.yaml").ends(0);
    assert_eq!(run.stdout, "3 cases, all as expected\n");
}

#[test]
fn cases_that_cannot_be_tried_end_with_2() {
    let folder = folder();
    folder.write("own.yaml", &format!("policy: {{hushspec: \"0.1.0\"}}\n{CASES}"));
    folder.write("named.yaml", "policy: strict\ncases:\n  - {tool: write_x, expect: deny}\n");
    folder.write(
        "wrong.yaml",
        "cases:\n  - {tool: echo, expect: maybe}\n  - {expect: deny, tol: x}\n",
    );
    folder.write("empty.yaml", "cases: []\n");
    folder.write("bytes.yaml", "cases:\n");
    for (line, problem) in [
        ("small.yaml own.yaml", "`own.yaml` has a `policy` of its own"),
        ("cases.yaml", "`chio policy test POLICY cases.yaml`"),
        ("small.yaml wrong.yaml", "wrong.yaml:2:26: "),
        ("small.yaml wrong.yaml", "error: `wrong.yaml` cannot be used: "),
        ("small.yaml empty.yaml", "expected at least one case"),
        ("small.yaml missing.yaml", "cannot read `missing.yaml`"),
        ("small.yaml cases.yaml missing.yaml", "cannot read `missing.yaml`"),
        ("nothing cases.yaml", "neither a file nor a built-in ruleset `nothing`"),
    ] {
        let run = folder.line(&format!("policy test {line}")).ends(2).complains(problem);
        assert_eq!(run.stdout, "", "{line}");
    }
    folder.line("policy test named.yaml").ends(0);
}

#[test]
fn a_policy_on_trial_that_nobody_has_is_told() {
    let folder = Folder::new();
    folder.line("policy shadowed").ends(2).complains("`chio up` makes one here");
}
