//! Stores and bundles that earlier versions made: this one opens them, finds them whole, and goes on
//! where they stopped.
//!
//! `spec/fixtures` has one folder for each version whose format was another; see its README.
#![cfg(test)]

mod support;

use std::collections::BTreeSet;

use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::support::{Copy, chio, each_fixture};

/// What is left of the budgets in every fixture: token, tool, arguments, calls, and why not one more.
const LEFT: [(&str, &str, &str, usize, &str); 5] = [
    ("cap-budget", "echo", r#"{"text": "x"}"#, 2, "invocation budget exhausted"),
    ("cap-money", "paid", r#"{"text": "x"}"#, 2, "cost budget exhausted"),
    ("cap-child", "echo", r#"{"text": "x"}"#, 2, "invocation budget exhausted"),
    // Of ten calls the child has made one, and two right above.
    ("cap-parent", "echo", r#"{"text": "x"}"#, 7, "invocation budget exhausted"),
    // One was cancelled and one was cut off by a crash; both had begun.
    ("cap-sleep", "sleep", r#"{"ms": 1}"#, 1, "invocation budget exhausted"),
];

/// What `chio log audit --json` writes, but for how long it took.
fn audit(copy: &Copy, options: &str) -> Value {
    let mut report = copy.line(&format!("log audit --data store --json {options}")).ends(0).json();
    report.as_object_mut().unwrap().remove("seconds").unwrap();
    report
}

/// Where a receipt is: its log, and its place there.
fn position(row: &Value) -> (String, u64) {
    (row["log_id"].as_str().unwrap().to_owned(), row["seq"].as_u64().unwrap())
}

#[test]
fn a_store_of_an_earlier_version_opens_and_audits_clean() {
    each_fixture(|copy| {
        let mut expected = copy.expected("audit.json");
        expected.as_object_mut().unwrap().remove("seconds").unwrap();
        assert_eq!(expected["valid"], true);
        assert_eq!(audit(copy, ""), expected);
        let authority = copy.authority();
        assert_eq!(
            audit(copy, &format!("--authority {authority} --extends bundle.json")),
            expected
        );
        let kernels = copy.line("kernel list --data store --json").ends(0).json();
        assert_eq!(kernels, copy.expected("kernels.json"));
        let line = "approvals list --data store --state any --limit 1000 --json";
        let approvals = copy.line(line).ends(0).json();
        assert_eq!(approvals, copy.expected("approvals.json"));
        let states = approvals["approvals"].as_array().unwrap().iter().map(|row| &row["state"]);
        assert_eq!(states.collect::<Vec<_>>(), ["denied", "used"]);
    });
}

#[test]
fn receipts_of_an_earlier_version_are_listed_and_shown_as_they_were() {
    each_fixture(|copy| {
        let rows = copy.receipts("--oldest-first");
        let bundle = copy.read("bundle.json");
        let entries = bundle["entries"].as_array().unwrap();
        assert_eq!(rows.len(), entries.len());
        for entry in entries {
            let receipt = &entry["receipt"];
            let row = rows.iter().find(|row| position(row) == position(entry));
            assert_eq!(&row.unwrap()["receipt"], receipt);
            let id = receipt["id"].as_str().unwrap();
            let shown = copy.line(&format!("receipt show {id} --data store --json")).ends(0).json();
            for (member, value) in receipt.as_object().unwrap() {
                assert_eq!(&shown[member], value, "{id}: {member}");
            }
        }
        let verdict =
            |row: &Value| row["receipt"]["decision"]["verdict"].as_str().map(str::to_owned);
        let verdicts: BTreeSet<_> = rows.iter().filter_map(verdict).collect();
        assert_eq!(Vec::from_iter(verdicts), ["allow", "cancelled", "deny", "incomplete"]);
        assert_eq!(copy.receipts("--capability cap-budget").len(), 3);
        assert_eq!(copy.receipts("--currency USD --min-cost 25").len(), 2);
        assert_eq!(copy.receipts("--outcome incomplete").len(), 1);
        let mcp = rows
            .iter()
            .find(|row| row["receipt"]["metadata"]["chio"]["bridge"]["sourceProtocol"] == "mcp");
        let id = mcp.unwrap()["receipt"]["id"].as_str().unwrap();
        let trace = copy.line(&format!("receipt trace {id} --data store")).ends(0);
        trace.says("demo/echo");
    });
}

#[test]
fn a_store_whose_index_was_lost_lists_the_same_receipts() {
    each_fixture(|copy| {
        // Cursors are the index's own, and receipts of one second come as they were indexed.
        let listed = || {
            let rows = copy.receipts("");
            let mut rows: Vec<_> =
                rows.iter().map(|row| (position(row), row["receipt"].clone())).collect();
            rows.sort_by_key(|(position, _)| position.clone());
            rows
        };
        let before = listed();
        std::fs::remove_file(copy.folder.path("store/index.db")).unwrap();
        assert_eq!(listed(), before);
    });
}

#[test]
fn tokens_that_an_earlier_version_revoked_stay_revoked() {
    each_fixture(|copy| {
        let _server = copy.serve("a.sock");
        let text = r#"{"text": "again"}"#;
        let refused = copy.call("a.sock", "cap-revoked", &["echo", text]).ends(1);
        refused.complains("capability `cap-revoked` has been revoked");
        let refused = copy.call("a.sock", "cap-revoked-child", &["echo", text]).ends(1);
        refused.complains("ancestor capability `cap-revoked-parent` has been revoked");
        let again = copy.line("capability revoke cap-revoked --data store --json").ends(0).json();
        assert_eq!(again["newlyRevoked"], false);
        // Those that were not revoked hold.
        copy.call("a.sock", "cap-narrow", &["echo", text]).ends(0).says("again");
    });
}

#[test]
fn budgets_of_an_earlier_version_have_exactly_what_was_left_of_them() {
    each_fixture(|copy| {
        // Through both kernels in turn: what is left belongs to the store, not to a kernel.
        let _servers = [copy.serve("a.sock"), copy.serve("b.sock")];
        let sockets = ["a.sock", "b.sock"];
        for (token, tool, arguments, left, reason) in LEFT {
            for number in 0..left {
                copy.call(sockets[number % 2], token, &[tool, arguments]).ends(0);
            }
            for socket in sockets {
                let refused = copy.call(socket, token, &[tool, arguments]).ends(1);
                refused.complains(&format!("{reason} for grant 0 of `{token}`"));
            }
        }
    });
}

#[test]
fn a_grant_of_an_earlier_version_still_asks_for_a_proof_and_an_approval() {
    each_fixture(|copy| {
        let _server = copy.serve("a.sock");
        let text = r#"{"text": "mine"}"#;
        let refused = copy.call("a.sock", "cap-proof", &["echo", text]).ends(1);
        refused.complains("the grant asks for a proof of possession, found none");
        let proven = ["echo", text, "--dpop-key", "keys/agent.key"];
        copy.call("a.sock", "cap-proof", &proven).ends(0);
        let waiting = copy.start_call("a.sock", "cap-approval", &["needs_approval", text]);
        let id = copy.waiting();
        copy.line(&format!("approvals approve {id} --data store")).ends(0);
        waiting.end().ends(0).says("mine");
    });
}

#[test]
fn the_log_of_an_earlier_version_goes_on_under_the_same_kernels_and_audits_clean() {
    each_fixture(|copy| {
        let before = copy.expected("kernels.json");
        let mut servers = [copy.serve("a.sock"), copy.serve("b.sock")];
        for socket in ["a.sock", "b.sock"] {
            copy.call(socket, "cap-plain", &["echo", r#"{"text": "hello"}"#]).ends(0);
            let missing = ["note_get", r#"{"name": "missing"}"#];
            copy.call(socket, "cap-plain", &missing).ends(3).complains("there is no note");
        }
        copy.call("b.sock", "cap-plain", &["note_get", r#"{"name": "n"}"#]).ends(0).says("kept");
        servers.iter_mut().for_each(|server| server.end());
        let after = copy.line("kernel list --data store --json").ends(0).json();
        assert_eq!(after["store_id"], before["store_id"]);
        let kernels = |listed: &Value| listed["kernels"].as_array().unwrap().clone();
        assert_eq!(kernels(&after).len(), kernels(&before).len(), "their slots were taken again");
        let mut grown = 0;
        for (one, other) in kernels(&before).iter().zip(&kernels(&after)) {
            assert_eq!(one["kernel_key"], other["kernel_key"]);
            assert_eq!(one["certificates"], other["certificates"]);
            assert!(other["checkpoints"].as_u64() > one["checkpoints"].as_u64());
            grown += other["receipts"].as_u64().unwrap() - one["receipts"].as_u64().unwrap();
        }
        assert_eq!(grown, 5);
        let report =
            audit(copy, &format!("--authority {} --extends bundle.json", copy.authority()));
        assert_eq!(report["valid"], true);
        copy.line("receipt export --data store --out all.json").ends(0);
        let verify = format!("receipt verify --bundle all.json --authority {}", copy.authority());
        copy.line(&verify).ends(0).says("result      valid");
    });
}

#[test]
fn a_demo_kernel_of_an_earlier_version_comes_up_again_and_no_name_of_a_task_comes_twice() {
    each_fixture(|copy| {
        let (mut server, url) = copy.up();
        let called = copy.run(&["call", "--data", "store", "demo", "echo", r#"{"text": "MCP"}"#]);
        called.ends(0).says("MCP");
        let parts = json!([{"text": "hello"}]);
        let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": parts});
        let task = support::send_message(&url, "echo", &json!({"message": message}));
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        let number = |task: &Value| {
            let id = task["id"].as_str().unwrap().strip_prefix("a2a-task-").unwrap();
            id.parse::<u64>().unwrap()
        };
        assert!(number(&task) > number(&copy.expected("task.json")["result"]), "{task}");
        server.end();
        assert_eq!(audit(copy, "")["valid"], true);
    });
}

#[test]
fn a_bundle_of_an_earlier_version_verifies_from_the_authoritys_public_key_alone() {
    each_fixture(|copy| {
        // Somewhere else, with nothing but the bundle.
        let elsewhere = Folder::new();
        elsewhere.write("bundle.json", copy.folder.read("bundle.json"));
        let verify = |key: &str| {
            let words =
                ["receipt", "verify", "--bundle", "bundle.json", "--json", "--authority", key];
            chio(elsewhere.root(), &words)
        };
        let report = verify(&copy.authority()).ends(0).json();
        assert_eq!(report, copy.expected("bundle.json"));
        assert_eq!((&report["valid"], &report["pending"]), (&json!(true), &json!(0)));
        let stranger = chio_testkit::key(66).public_key().to_hex();
        assert_eq!(verify(&stranger).ends(1).json()["valid"], false);
        let changed = copy.folder.read("bundle.json").replacen("hello", "hallo", 1);
        elsewhere.write("bundle.json", changed);
        assert_eq!(verify(&copy.authority()).ends(1).json()["valid"], false);
    });
}
