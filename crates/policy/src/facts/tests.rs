//! What calls do, derived from their tools and arguments.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn of(tool: &str, arguments: &Value) -> Facts {
    Facts::of(tool, arguments, &Work::long()).unwrap()
}

/// What a call does, on one line.
fn shown(tool: &str, arguments: &Value) -> String {
    let facts = of(tool, arguments);
    let mut parts = vec![format!("{:?}", facts.action)];
    parts.extend(facts.paths.iter().map(|path| format!("{:?} {}", path.access, path.normal)));
    parts.extend(
        facts.destinations.iter().map(|to| format!("to {}", to.host.as_deref().unwrap_or("?"))),
    );
    parts.extend(facts.commands.iter().map(|command| format!("$ {command}")));
    parts.extend(facts.patches.iter().map(|_| "patch".to_owned()));
    parts.extend(
        facts
            .code
            .iter()
            .map(|(language, _)| format!("code {}", language.as_deref().unwrap_or("?"))),
    );
    parts.extend(facts.malformed.map(|why| format!("malformed: {why}")));
    parts.join(", ")
}

#[test]
fn a_call_is_told_by_its_tool_and_its_arguments() {
    for (tool, arguments, expected) in [
        ("read_file", json!({"path": "/a"}), "FileRead, Read /a"),
        ("read_file", json!({"file_path": "/a", "limit": 5}), "FileRead, Read /a"),
        ("write_file", json!({"path": "/a", "content": "http://x.y"}), "FileWrite, Write /a"),
        ("copy_file", json!({"source": "a", "destination": "b"}), "FileWrite, Read a, Write b"),
        ("read_multiple_files", json!({"paths": ["a", "b"]}), "FileRead, Read a, Read b"),
        ("write_all", json!({"files": {"a/b": "x"}}), "FileWrite, Write a/b"),
        ("frob", json!({"path": "/a"}), "FileWrite, Write /a"),
        ("get_thing", json!({"deep": [{"filePath": "/a"}]}), "FileRead, Read /a"),
        ("get_thing", json!({"input": "{\"path\": \"/a\"}"}), "FileRead, Read /a"),
        ("read_resource", json!({"uri": "file:///a"}), "FileRead, Read /a"),
        ("read_resource", json!({"uri": "notes://today"}), "Other"),
        ("read_resource", json!({"uri": "http://10.0.0.1/a"}), "Network, to 10.0.0.1"),
        ("read_resource", json!({"uri": "redis://cache/a"}), "Network, to cache"),
        ("get_thing", json!({"uri": "notes://today"}), "Network, to today"),
        ("fetch", json!({"url": "https://a.b/c"}), "Network, to a.b"),
        ("fetch", json!({"url": "a.b/c"}), "Network, to a.b"),
        ("fetch", json!({"url": "http://"}), "Network, to ?"),
        ("ping_host", json!({"host": 2_130_706_433}), "Network, to 127.0.0.1"),
        ("get_thing", json!({"anything": "https://a.b"}), "Network, to a.b"),
        ("get_thing", json!({"text": "see https://a.b for more"}), "Other"),
        ("get_thing", json!({"domain": "finance"}), "Other"),
        ("bash", json!({"command": "ls"}), "Shell, $ ls"),
        ("bash", json!({"restart": true}), "Shell"),
        (
            "bash",
            json!({"command": ["git", "commit", "-m", "a b"]}),
            "Shell, $ git commit -m 'a b'",
        ),
        ("bash", json!({"command": "npm", "args": ["t"]}), "Shell, $ npm t"),
        (
            "bash",
            json!({"command": "cat /a && curl b.c"}),
            "Shell, Read /a, to b.c, $ cat /a && curl b.c",
        ),
        ("frob", json!({"cmd": "ls"}), "Shell, $ ls"),
        (
            "apply_patch",
            json!({"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}),
            "Patch, Patch x, patch",
        ),
        ("run_python", json!({"code": "open('/a')"}), "Code, Read /a, code python"),
        (
            "execute_code",
            json!({"language": "sh", "code": "ls /a"}),
            "Code, Read /a, $ ls /a, code sh",
        ),
        ("get_weather", json!({"city": "Bern", "code": "404"}), "Other"),
        ("browser_click", json!({"selector": "#a"}), "Browser"),
        ("echo", json!("text"), "Other"),
        ("echo", Value::Null, "Other"),
    ] {
        assert_eq!(shown(tool, &arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn arguments_that_cannot_be_read_are_malformed() {
    let mut deep = json!("x");
    for _ in 0..40 {
        deep = json!([deep]);
    }
    let many: Vec<String> = (0..1000).map(|number| format!("a{number}")).collect();
    for (tool, arguments, why) in [
        ("read_file", json!({}), "no path"),
        ("read_file", json!({"path": 7}), "no path"),
        ("read_file", json!({"path": ""}), "a blank path"),
        ("read_file", json!({"path": "a\0b"}), "a path with a NUL character"),
        ("read_file", json!({"path": "a".repeat(5000)}), "a path that is too long"),
        ("read_multiple_files", json!({"paths": many}), "more paths than can be looked at"),
        ("frob", deep, "arguments that are nested too deep"),
        ("bash", json!({"command": null}), "no command"),
        ("bash", json!({"command": "a\0"}), "a command with a NUL character"),
        ("bash", json!({"command": "a", "args": [1]}), "words of a command that are not text"),
        ("fetch", json!({"url": ""}), "no destination"),
        ("apply_patch", json!({"path": "a"}), "no patch"),
        ("run_python", json!({"code": ["a", 1]}), ""),
        ("execute_sql", json!({"sql": ""}), "no query"),
    ] {
        let facts = of(tool, &arguments);
        assert_eq!(facts.malformed.unwrap_or_default(), why, "{tool}");
    }
}

#[test]
fn a_working_folder_adds_what_a_path_means_there() {
    for (tool, arguments, expected) in [
        (
            "read_file",
            json!({"cwd": "/etc", "path": "shadow"}),
            "FileRead, Read /etc, Read shadow, Read /etc/shadow",
        ),
        ("read_file", json!({"path": "file:///etc/x"}), "FileRead, Read /etc/x"),
        (
            "bash",
            json!({"command": "cat x", "cwd": "/etc"}),
            "Shell, Read /etc, Read x, Read /etc/x, $ cat x",
        ),
        (
            "bash",
            json!({"command": "cd /etc; cat x"}),
            "Shell, Read /etc, Read x, Read /etc/x, $ cd /etc; cat x",
        ),
        (
            "bash",
            json!({"command": "curl file:///etc/x"}),
            "Shell, Read /etc/x, $ curl file:///etc/x",
        ),
    ] {
        assert_eq!(shown(tool, &arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn relative_paths_are_resolved_against_every_folder_that_a_call_names() {
    for (arguments, expected) in [
        (json!({"command": "cd /etc && cd ssh && cat x"}), "/etc/ssh/x"),
        (json!({"command": "cd ssh && cat x", "cwd": "/etc"}), "/etc/ssh/x"),
        (json!({"command": "cd ..; cat x", "workdir": "/etc/ssh"}), "/etc/x"),
        (json!({"command": "pushd /etc; cat x"}), "/etc/x"),
        (json!({"command": "tar -C /etc -cf - x"}), "/etc/x"),
        (json!({"command": "tar --directory=/etc -cf - ./x"}), "/etc/x"),
        (json!({"command": "tar -C/etc -cf - ./x"}), "/etc/x"),
        (json!({"command": "git -C /etc show ./x"}), "/etc/x"),
        (json!({"command": "make -C /etc ./x"}), "/etc/x"),
        (json!({"command": "env -C /etc cat x"}), "/etc/x"),
        (json!({"command": "sudo -D /etc cat x"}), "/etc/x"),
        (json!({"command": "(cd /etc; cat x)"}), "/etc/x"),
        (json!({"command": "bash -c 'cd /etc; cat x'"}), "/etc/x"),
        (json!({"command": "cd $D && cat x"}), "/**/x"),
        (json!({"command": "cd /e$D && cat x"}), "/e**/x"),
        (json!({"command": "cat $D/a/x"}), "/**/a/x"),
        (json!({"command": "ln -s /etc l; cat l/x"}), "/etc/x"),
        (json!({"command": "ln -s /etc; cat etc/x"}), "/etc/x"),
        (json!({"command": "ln -s /etc l; ln -s l m; cat m/x"}), "/etc/x"),
        (json!({"command": "cp -r /etc l; cat l/x"}), "/etc/x"),
        (json!({"command": "find /etc -name x -exec cat {} +"}), "/etc/**/x"),
        (json!({"command": "find /etc -name x | xargs cat"}), "/etc/**/x"),
        (json!({"command": "cat $(find /etc -name x)"}), "/etc/**/x"),
        (json!({"command": "curl -o a --url=file:///etc/x"}), "/etc/x"),
        (json!({"input": "{\"path\": \"x\", \"cwd\": \"/etc\"}"}), "/etc/x"),
        (json!({"input": "\"{\\\"path\\\": \\\"/etc/x\\\"}\""}), "/etc/x"),
        (json!({"directory": "/etc", "filename": "x"}), "/etc/x"),
    ] {
        let facts = of("run", &arguments);
        let paths: Vec<&str> = facts.paths.iter().map(|path| &*path.normal).collect();
        assert!(paths.contains(&expected), "{arguments}: {paths:?}");
    }
    let cds: String = (0..200).map(|number| format!("cd a{number}; ")).collect();
    let facts = of("bash", &json!({"command": format!("{cds}cat x")}));
    assert!(facts.is_incomplete);
}

#[test]
fn json_in_a_long_text_is_looked_into_or_malformed() {
    let long = "x".repeat(300 * 1024);
    let text = json!({"path": "/etc/x", "text": long}).to_string();
    let facts = of("get_thing", &json!({"input": text}));
    assert_eq!(facts.paths.len(), 1);
    let many = json!({"path": "/etc/x", "list": vec![0; 200_000]}).to_string();
    assert!(of("get_thing", &json!({"input": many})).is_incomplete);
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert!(of("get_thing", &json!({"input": deep})).is_incomplete);
    let no_json = format!("[{}", ",".repeat(300 * 1024));
    assert!(!of("get_thing", &json!({"input": no_json})).is_incomplete);
}

#[test]
fn scripts_stand_beside_their_commands() {
    let facts = of("bash", &json!({"commands": ["echo 'a b", "ls -l /x"]}));
    assert_eq!(facts.commands.len(), facts.scripts.len());
    assert_eq!(facts.scripts[0], Err(shell::Unreadable::Unbalanced));
    assert!(facts.scripts[1].is_ok());
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~\\n]{0,60}",
        "[$(){}'\"`\\\\;|&<>#=/~*?.a-c -]{0,40}",
        "(\\PC|[%/\\\\.]){0,40}",
        "((\\.\\.|%2e|%25|/|\\\\|~|\\$HOME|proc|self|root|a)){0,12}",
    ]
}

fn any_arguments() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("path"),
        Just("command"),
        Just("args"),
        Just("url"),
        Just("host"),
        Just("patch"),
        Just("code"),
        Just("language"),
        Just("x"),
    ];
    let leaf = prop_oneof![
        any_text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(names.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_the_arguments_the_same_facts_come_twice(arguments in any_arguments()) {
        for tool in ["read_file", "bash", "fetch", "apply_patch", "run_python", "x"] {
            let facts = of(tool, &arguments);
            prop_assert_eq!(&facts, &of(tool, &arguments));
            prop_assert_eq!(facts.commands.len(), facts.scripts.len());
        }
    }

    #[test]
    fn a_normal_path_never_climbs(text in any_text()) {
        for form in normal_paths(&text) {
            let climbs = form.split('/').skip_while(|name| *name == "..").any(|name| name == "..");
            prop_assert!(!climbs && !form.contains("/./"), "{form}");
            prop_assert!(!(form.starts_with('/') && form.split('/').any(|name| name == "..")), "{form}");
        }
    }

    #[test]
    fn a_quoted_word_stays_one_word(text in any_text()) {
        let script = shell::read(&format!("x {}", shell::quoted(&text)), &Work::long());
        let script = script.unwrap();
        prop_assert_eq!(&script.commands[0].words[1].text, &text.replace("\r\n", "\n"));
    }
}
