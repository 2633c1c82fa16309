//! Canonical JSON against a published canonicalizer and against Node.js.
#![cfg(test)]

use std::io::Write;
use std::process::{Command, Stdio};

use chio_core::canonical;
use chio_testkit::generate::{cases, json};
use chio_testkit::skip;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

/// How many values Node.js is asked about.
const NODE_CASES: usize = 4000;

/// The same value with every integer cut to what a double keeps: the others know no exact 64-bit
/// integers.
fn in_doubles(value: Value) -> Value {
    const KEPT: i64 = 1 << 53;
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(n), _) => Value::from(n % KEPT),
            (None, Some(n)) => Value::from(n % KEPT.unsigned_abs()),
            (None, None) => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(in_doubles).collect(),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, v)| (name, in_doubles(v))).collect())
        }
        other => other,
    }
}

proptest! {
    #![proptest_config(cases(4000))]

    // covers: WIRE-006
    #[test]
    fn a_published_canonicalizer_writes_the_same(value in json().prop_map(in_doubles)) {
        let theirs = serde_json_canonicalizer::to_vec(&value).unwrap();
        let ours = canonical::to_vec(&value).unwrap();
        prop_assert_eq!(String::from_utf8(ours).unwrap(), String::from_utf8(theirs).unwrap());
    }

    #[test]
    fn canonical_form_is_a_fixed_point_that_says_the_same(value in json()) {
        let bytes = canonical::to_vec(&value).unwrap();
        let again: Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(canonical::to_vec(&again).unwrap(), bytes);
    }

    #[test]
    fn every_double_is_read_back_as_itself(number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let text = canonical::to_string(&number).unwrap();
        prop_assert_eq!(text.parse::<f64>().unwrap(), number);
    }
}

/// ECMAScript sorts by UTF-16 code units and prints doubles as RFC 8785 asks.
const NODE_PROGRAM: &str = r"
const write = (v) => {
  if (Array.isArray(v)) return '[' + v.map(write).join(',') + ']';
  if (v && typeof v === 'object')
    return '{' + Object.keys(v).sort().map((k) => JSON.stringify(k) + ':' + write(v[k])).join(',') + '}';
  return JSON.stringify(v);
};
const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter((line) => line);
process.stdout.write(lines.map((line) => write(JSON.parse(line))).join('\n'));
";

// covers: WIRE-006
#[test]
fn node_writes_the_same() {
    let spawned = Command::new("node")
        .args(["-e", NODE_PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut node) = spawned else {
        return skip("canonical JSON against Node.js", "`node` is not on the PATH");
    };
    let mut runner = TestRunner::deterministic();
    let strategy = json().prop_map(in_doubles);
    let values: Vec<Value> =
        (0..NODE_CASES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let lines: Vec<String> =
        values.iter().map(|value| serde_json::to_string(value).unwrap()).collect();
    let mut input = node.stdin.take().unwrap();
    let feed = std::thread::spawn(move || input.write_all(lines.join("\n").as_bytes()).unwrap());
    let output = node.wait_with_output().unwrap();
    feed.join().unwrap();
    assert!(output.status.success());
    let theirs = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<&str> = theirs.split('\n').collect();
    assert_eq!(theirs.len(), values.len());
    for (value, theirs) in values.iter().zip(theirs) {
        assert_eq!(canonical::to_string(value).unwrap(), theirs);
    }
}
