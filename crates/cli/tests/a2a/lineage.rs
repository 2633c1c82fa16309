//! A call that goes on in another organisation: one chain, drawn from what both have exported.

use serde_json::{Value, json};

use crate::support::{Agent, World, message};

/// A capability for a tool, issued by the authority of a store to a key of its own.
fn capability(world: &World, data: &str, grant: &str) {
    world.line(&format!("key new --out {data}.caller.key")).ends(0);
    let issue = format!(
        "capability issue --data {data} --subject {data}.caller.key --grant {grant} --ttl 10m \
         --out {data}.cap.json"
    );
    world.line(&issue).ends(0);
}

/// Serves the echo of an agent from a store.
fn serve(world: &World, (data, base): (&str, &str), options: &str) -> Agent {
    let line = format!(
        "a2a serve --target {base}/skills/echo --http 127.0.0.1:0 --data {data} \
         --anonymous default --server-id friend {options}"
    );
    world.start(&line.split_whitespace().collect::<Vec<_>>(), data)
}

/// The key of the kernel that will work on a store.
fn kernel_of(world: &World, data: &str) -> String {
    drop(world.up(data, ""));
    let kernels = world.line(&format!("kernel list --data {data} --json")).ends(0).json();
    kernels["kernels"][0]["kernel_key"].as_str().unwrap().to_owned()
}

fn chain(receipt: &Value) -> &Value {
    &receipt["metadata"]["governed_transaction"]["call_chain"]
}

fn request_of(receipt: &Value) -> &Value {
    &receipt["metadata"]["receipt_context"]["request_id"]
}

fn trace_of(receipt: &Value) -> &Value {
    &receipt["metadata"]["chio"]["bridge"]["trace"]["traceId"]
}

fn export(world: &World, data: &str) {
    world.line(&format!("receipt export --data {data} --out {data}.json")).ends(0);
    let verify = format!(
        "receipt verify --bundle {data}.json --authority {data}/authority.key --allow-pending"
    );
    world.line(&verify).ends(0);
}

/// How deep each line of a tree stands, and whether there is a receipt.
fn shape(tree: &Value) -> Vec<(u64, bool)> {
    let lines = tree["receipts"].as_array().unwrap().iter();
    lines.map(|line| (line["depth"].as_u64().unwrap(), !line["receipt"].is_null())).collect()
}

// covers: A2A-005, A2A-071, A2A-072, A2A-073
#[test]
fn with_chio_in_three_organisations_the_receipts_are_one_tree() {
    let world = World::new();
    let (a, b) = (kernel_of(&world, "a"), kernel_of(&world, "b"));
    let at_c = world.up("c", &format!("--trusted-kernel {b}"));
    capability(&world, "c", "demo/echo");
    let options = format!("--trusted-kernel {a} --capability c.cap.json");
    let at_b = serve(&world, ("b", &at_c.base), &options);
    capability(&world, "b", "friend/echo");
    let _at_a = serve(&world, ("a", &at_b.base), "--capability b.cap.json");
    let message = json!({"message": "hello"}).to_string();
    world.run(&["call", "--data", "a", "friend", "echo", &message]).ends(0).says("COMPLETED");

    let receipts = ["a", "b", "c"].map(|data| {
        let mut receipts = world.receipts(data);
        assert_eq!(receipts.len(), 1, "{data}");
        export(&world, data);
        receipts.remove(0)
    });
    for (parent, child) in receipts.iter().zip(&receipts[1..]) {
        assert_eq!(chain(child)["evidenceClass"], "verified", "{child}");
        assert_eq!(&chain(child)["parentRequestId"], request_of(parent));
        assert_eq!(trace_of(child), trace_of(parent));
    }
    let origin = &receipts[0]["metadata"]["attribution"]["subject_key"];
    assert_eq!(&chain(&receipts[2])["originSubject"], origin, "who began it is known to the last");

    let id = trace_of(&receipts[0]).as_str().unwrap();
    let all = format!("receipt trace {id} --bundle c.json --bundle a.json --bundle b.json");
    world.line(&all).ends(0).says("friend/echo").says("demo/echo");
    let tree = world.line(&format!("{all} --json")).ends(0).json();
    assert_eq!(shape(&tree), [(0, true), (1, true), (2, true)], "{tree}");
    // Without the others, the one that it was made for is a name.
    let alone = world.line(&format!("receipt trace {id} --bundle c.json")).ends(0);
    alone.says("not here").says(request_of(&receipts[1]).as_str().unwrap());
}

#[test]
fn what_nobody_trusted_says_is_asserted_and_the_call_runs_all_the_same() {
    let world = World::new();
    let there = world.up("there", "");
    capability(&world, "there", "demo/echo");
    for (options, presented) in [("", false), ("--capability there.cap.json", true)] {
        let here = serve(&world, ("here", &there.base), options);
        let message = json!({"message": "hello"}).to_string();
        let call = world.run(&["call", "--data", "here", "friend", "echo", &message]);
        call.ends(0).says("COMPLETED");
        let theirs = world.receipts("there");
        let last = theirs.last().unwrap();
        assert_eq!(chain(last)["evidenceClass"], "asserted", "{last}");
        let reference = &last["metadata"]["chio"]["bridge"]["capabilityEnvelope"]["capabilityRef"];
        let foreign = &reference["protocolContext"]["foreignCapabilityRef"];
        assert_eq!(foreign.is_null(), presented, "{reference}");
        drop(here);
    }
    // Each is linked by the request that it was made for.
    for data in ["here", "there"] {
        export(&world, data);
    }
    let ours = world.receipts("here");
    let request = request_of(&ours[0]).as_str().unwrap();
    let tree = world
        .line(&format!("receipt trace {request} --bundle here.json --bundle there.json --json"))
        .ends(0)
        .json();
    assert_eq!(tree["receipts"].as_array().unwrap().len(), 2, "{tree}");
    assert_eq!(tree["receipts"][1]["parentIsClaim"], true);
}

// covers: CROSS-048
#[test]
fn a_request_without_a_receipt_draws_the_tree_that_it_stands_in() {
    let world = World::new();
    let there = world.up("there", "");
    for _ in 0..2 {
        let mut params = message(&json!([{"text": "hello"}]));
        params["message"]["metadata"] = json!({"chio": {"callChain": {
            "chainId": "chain-1", "parentRequestId": "somebody-7",
            "originSubject": "somebody", "delegatorSubject": "somebody"}}});
        there.call("/skills/echo", "SendMessage", &params);
    }
    export(&world, "there");
    let found = world.line("receipt trace somebody-7 --bundle there.json --json").ends(0).json();
    assert_eq!(shape(&found), [(0, false), (1, true), (1, true)], "{found}");
    assert_eq!(found["receipts"][0]["requestId"], "somebody-7");
    let unknown = world.line("receipt trace somebody-8 --bundle there.json").ends(1);
    unknown.complains("there is no trace, receipt or request `somebody-8`");
}
