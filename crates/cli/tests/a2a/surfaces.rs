//! One token, one policy, one log: whichever protocol a call comes by.

use std::collections::BTreeSet;

use chio_core::receipt::ChioReceipt;
use chio_testkit::key;
use chio_testkit::mcp::{Door, Request, initialize, receipt_of};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::support::{Agent, World, message};

/// Each section denies one of the calls below.
const POLICY: &str = r#"hushspec: "0.1.0"
extends: chio:default
rules:
  tool_access:
    block: [note_count]
chio:
  rules:
    cedar: |
      @id("notes-stay-unread")
      forbid(principal, action, resource == Tool::"demo/note_get");
"#;

/// A protocol that a call comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Native,
    Mcp,
    A2a,
}

const EVERY: [By; 3] = [By::Native, By::Mcp, By::A2a];

/// A process that serves all of them, and a token.
struct Served {
    world: World,
    agent: Agent,
    token: String,
}

impl Served {
    fn start() -> Self {
        let world = World::new();
        world.folder.write_key("agent.key", &key(9));
        world.folder.write("policy.yaml", POLICY);
        let agent = world.up("s", "--policy policy.yaml");
        let line = "capability issue --data s --subject agent.key --id cap-one --grant demo/*";
        let token = world.line(line).ends(0).json().to_string();
        Self { world, agent, token }
    }

    /// Calls a tool with a token. Gives the value, if there is one, and the receipt's id, both as this
    /// protocol says them.
    fn call(&self, by: By, tool: &str, arguments: &Value) -> (Option<Value>, String) {
        match by {
            By::Native => {
                self.world.folder.write("token.json", &self.token);
                let arguments = arguments.to_string();
                let line =
                    ["native", "call", "--unix", "s/native.sock", "--token", "token.json", "demo"];
                let run = self.world.run(&[line.as_slice(), &[tool, &arguments]].concat());
                let id = run.stderr.lines().find_map(|line| line.strip_prefix("receipt: "));
                let value = (run.code == 0).then(|| run.json());
                (value, id.unwrap().to_owned())
            }
            By::Mcp => {
                let door = Door::new(&format!("{}/mcp", self.agent.base));
                let session = door.with("X-Chio-Capability", &self.token).open();
                let result = session.call(tool, arguments);
                let value =
                    (result["isError"] == false).then(|| result["structuredContent"].clone());
                (value, receipt_of(&result).to_owned())
            }
            By::A2a => {
                let task = self.a2a(tool, arguments, &self.token).1["result"]["task"].clone();
                let value = &task["artifacts"][0]["parts"][0]["data"];
                let is_done = task["status"]["state"] == "TASK_STATE_COMPLETED";
                let id = task["metadata"]["chio"]["receiptId"].as_str().unwrap();
                (is_done.then(|| value.clone()), id.to_owned())
            }
        }
    }

    fn a2a(&self, tool: &str, arguments: &Value, token: &str) -> (u16, Value) {
        let params = message(&json!([{"data": arguments}]));
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": params});
        let headers = format!("A2A-Version: 1.0\r\nX-Chio-Capability: {token}\r\n");
        let path = format!("/skills/{tool}");
        let answer = self.agent.request("POST", &path, &headers, &body.to_string());
        (answer.status, answer.body)
    }
}

// covers: WIRE-003, BRIDGE-004, BRIDGE-166, BRIDGE-167, CROSS-053, CROSS-068
#[test]
fn one_token_is_judged_alike_and_its_receipts_stand_in_one_log_whichever_protocol_a_call_comes_by()
{
    let served = Served::start();
    let world = &served.world;
    let hello = json!({"text": "hello"});
    let secret = json!({"name": "k", "text": "AKIAQ3EGRT5KLMN2WXYZ"});
    let calls = [
        ("echo", hello.clone(), None),
        ("note_put", secret, Some("secret-leak")),
        ("note_count", json!({}), Some("tool-access")),
        ("note_get", json!({"name": "k"}), Some("rules")),
    ];
    let mut told = Vec::new();
    for by in EVERY {
        for (tool, arguments, guard) in &calls {
            let (value, id) = served.call(by, tool, arguments);
            assert_eq!(value, guard.is_none().then(|| hello.clone()), "{by:?} {tool}");
            told.push(id);
        }
    }
    let written = world.receipts("s");
    let ids: Vec<&str> = written.iter().map(|receipt| receipt["id"].as_str().unwrap()).collect();
    assert_eq!(ids, told, "each answer names its receipt, and there is no other");
    let mut kernels = BTreeSet::new();
    for (place, receipt) in written.iter().enumerate() {
        let (by, (tool, arguments, guard)) =
            (EVERY[place / calls.len()], &calls[place % calls.len()]);
        let receipt: ChioReceipt = serde_json::from_value(receipt.clone()).unwrap();
        receipt.verify().unwrap();
        assert_eq!(receipt.capability_id, "cap-one", "{by:?} {tool}");
        assert_eq!(receipt.tool_name, *tool, "{by:?}");
        if guard.is_none() {
            assert_eq!(receipt.action.parameters, *arguments, "{by:?}");
        }
        let decision = serde_json::to_value(&receipt.decision).unwrap();
        assert_eq!(decision["guard"].as_str(), *guard, "{by:?} {tool}");
        kernels.insert(receipt.kernel_key.to_hex());
    }
    assert_eq!(kernels.len(), 1);
    // One tree has them all, and one command verifies them from the authority's public key.
    let audit = world.line("log audit --data s --json").ends(0).json();
    assert_eq!(audit["receipts"], told.len());
    assert_eq!(audit["logs"].as_array().unwrap().len(), 1, "{audit}");
    until("a checkpoint over all", || {
        world.line("receipt export --data s --out all.json --force").ends(0);
        let line = "receipt verify --bundle all.json --authority s/authority.key --json";
        let verified = world.line(line);
        (verified.code == 0 && verified.json()["included"] == told.len()).then_some(())
    });
    let kernel = kernels.pop_first().unwrap();
    for (place, receipt) in written.iter().enumerate() {
        let name = format!("{place}.json");
        world.folder.write(&name, receipt.to_string());
        world.line(&format!("receipt verify {name} --trusted-key {kernel}")).ends(0);
    }
}

// covers: CROSS-063
#[test]
fn a_tool_that_one_protocol_cannot_show_stays_where_it_can_be_called() {
    let served = Served::start();
    let (tool, hello) = ("needs_approval", json!({"text": "hello"}));
    let card = served.agent.request("GET", "/.well-known/agent-card.json", "", "").body;
    let skills = card["skills"].as_array().unwrap();
    assert!(skills.iter().all(|skill| skill["id"] != tool), "{card}");
    assert_eq!(served.a2a(tool, &hello, &served.token).1["error"]["code"], -32602);
    let door = Door::new(&format!("{}/mcp", served.agent.base));
    let session = door.with("X-Chio-Capability", &served.token).open();
    assert!(session.tools().iter().any(|name| name == tool));
    let mut call = session.start_call(tool, &hello);
    let approval = until("a call that waits", || {
        let waiting = served.world.line("approvals list --data s --json").ends(0).json();
        waiting["approvals"][0]["request"]["id"].as_str().map(str::to_owned)
    });
    served.world.line(&format!("approvals approve {approval} --data s")).ends(0);
    let result = call.result();
    assert_eq!(result["structuredContent"], hello, "{result}");
    let receipts = served.world.receipts("s");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0]["decision"]["verdict"], "allow");
}

// covers: WIRE-003, BRIDGE-160, BRIDGE-162
#[test]
fn a_token_that_was_changed_and_a_tool_that_is_not_there_are_refused_whichever_protocol_they_come_by()
 {
    let mut served = Served::start();
    let hello = json!({"text": "hello"});
    let (unknown, native) = ("no_such_tool", By::Native);
    assert_eq!(served.call(native, unknown, &hello).0, None);
    let door = Door::new(&format!("{}/mcp", served.agent.base));
    let session = door.with("X-Chio-Capability", &served.token).open();
    let params = json!({"name": unknown, "arguments": hello});
    assert_eq!(session.request("tools/call", &params)["error"]["code"], -32602);
    let (_, answer) = served.a2a(unknown, &hello, &served.token);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");

    let mut wider: Value = serde_json::from_str(&served.token).unwrap();
    wider["scope"]["grants"][0]["max_invocations"] = json!(1_000_000);
    served.token = wider.to_string();
    assert_eq!(served.call(native, "echo", &hello).0, None);
    let begin = Request::post(&initialize(&json!({})));
    door.with("X-Chio-Capability", &served.token).send(begin).is(401);
    let (status, answer) = served.a2a("echo", &hello, &served.token);
    assert_eq!(status, 401, "{answer}");
    let receipts = served.world.receipts("s");
    assert!(receipts.iter().all(|it| it["decision"]["verdict"] == "deny"), "{receipts:?}");
    assert_eq!(receipts.len(), 2, "those of the native calls");
    served.world.audit("s");
}
