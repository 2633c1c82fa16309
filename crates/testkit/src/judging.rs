//! Judging is bounded: whatever a call asks and whatever schema its tool has, all guards come to an
//! end within the steps that a call may cause.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use chio_core::manifest::ToolDefinition;
use chio_kernel::{GuardMemo, Verdict, Work, ask};
use chio_policy::Policy;
use chio_policy::example::ExampleCall;
use chio_policy::facts::Facts;
use chio_policy::state::State;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};

/// A tool of each action, and the member of its arguments that is looked into.
const TOOLS: [(&str, &str); 6] = [
    ("bash", "command"),
    ("read_file", "path"),
    ("fetch", "url"),
    ("apply_patch", "patch"),
    ("run_python", "code"),
    ("frobnicate", "text"),
];
/// What is counted as a step is at most so many bytes of what was found.
const BYTES_A_STEP: u64 = 8;

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    Policy::load("chio:default", Path::new("."), &Arc::new(State::default()))
        .expect("the default ruleset can be read")
});

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime can be made"));

/// Judges a text as a command, a path, a URL, a patch and code; and a schema with a value.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for (tool, member) in TOOLS {
        let arguments = json!({ member: text });
        found_is_charged(tool, &arguments);
        judge(&ExampleCall::new(tool, arguments));
    }
    let Ok(Value::Object(mut case)) = serde_json::from_slice::<Value>(input) else { return };
    if let Some(Value::Object(schema)) = case.remove("schema") {
        let mut call = ExampleCall::new("frobnicate", case.remove("value").unwrap_or_default());
        call.tool = Some(tool(schema));
        judge(&call);
    }
}

fn tool(input_schema: Map<String, Value>) -> ToolDefinition {
    ToolDefinition {
        name: "frobnicate".to_owned(),
        description: String::new(),
        input_schema,
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    }
}

/// What a call does is never more than what was charged to find it.
fn found_is_charged(tool: &str, arguments: &Value) {
    let work = Work::long();
    let Ok(facts) = Facts::of(tool, arguments, &work) else { return };
    let paths = facts.paths.iter().map(|path| path.normal.len());
    let texts = facts.commands.iter().chain(&facts.patches).map(String::len);
    let found: usize = paths.chain(texts).sum();
    let most = work.steps().saturating_mul(BYTES_A_STEP);
    assert!(found as u64 <= most, "found {found} bytes in {} steps", work.steps());
}

/// Every guard ends, and one whose work is spent denies.
fn judge(call: &ExampleCall) {
    RUNTIME.block_on(async {
        let (memo, work) = (GuardMemo::default(), Work::default());
        let input = call.input(&memo, &work);
        for guard in POLICY.guards() {
            let said = ask(&**guard, &input).await;
            if matches!(said.verdict, Verdict::Deny(_) | Verdict::WrongArguments(_)) {
                return;
            }
            assert!(!work.is_spent(), "{} allows what it could not judge", guard.name());
        }
    });
}

/// Calls that were made to take long.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "eval ".repeat(40),
        format!("{}{}", "${a:-$()".repeat(12), "}".repeat(12)),
        "a=$(q);b=$a$a;c=$b$b;d=$c$c;e=$d$d".to_owned(),
        "x=aaaa; echo ${x//a/bbbbbbbb}{a,b}{c,d}{e,f}".to_owned(),
        "find / -exec a -exec b -exec c ; | xargs -I{} sh -c {}{}".to_owned(),
        "../../%252e%252e/*/?[a]/~/.ssh".to_owned(),
        "http://a.b.c\\@127.0.0.1:80/%61/../b".to_owned(),
        "diff --git a/x b/x\nrename to y\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        "import os\nos.system('ls')\n\\u{41}".to_owned(),
    ];
    let twice = |to: &str| json!({"allOf": [{ "$ref": to }, { "$ref": to }]});
    let schemas = [
        json!({"schema": {"$ref": "#/$defs/a", "$defs": {"a": twice("#/$defs/b"), "b": twice("#/$defs/c"), "c": {}}}, "value": {"x": 1}}),
        json!({"schema": {"properties": {"x": twice("#")}, "unevaluatedProperties": false}, "value": {"x": {"x": {"x": 1}}}}),
        json!({"schema": {"items": {"anyOf": [{"pattern": "^(?=.*a)(a|b)*$"}, {"not": {"$dynamicRef": "#n"}}]}, "$dynamicAnchor": "n"}, "value": ["ab", ["b"]]}),
    ];
    texts
        .map(String::into_bytes)
        .into_iter()
        .chain(schemas.map(|it| it.to_string().into_bytes()))
        .collect()
}
