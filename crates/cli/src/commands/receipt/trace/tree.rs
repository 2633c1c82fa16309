//! Receipts as a tree: each below the call that it was made for.

use std::collections::{HashMap, HashSet};

use chio_core::receipt::{ChioReceipt, LoggedReceipt};
use serde_json::Value;

/// How deep the drawing goes; what is deeper is drawn there.
const MAX_INDENT: usize = 24;

/// One receipt of a trace.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) receipt: LoggedReceipt,
    pub(super) log_id: String,
    pub(super) request_id: Option<String>,
    pub(super) trace_id: Option<String>,
    pub(super) parent: Option<Parent>,
    /// The protocols on its way, the caller's first.
    pub(super) hops: Vec<String>,
}

/// The call that another was made for.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) request_id: String,
    /// Only the caller says so.
    pub(super) is_claim: bool,
}

/// One line of the drawing.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) depth: usize,
    /// What is drawn before it.
    pub(super) branch: String,
    pub(super) request_id: &'a str,
    /// The receipt; none where only others name the request.
    pub(super) found: Option<&'a Found>,
}

fn trace(receipt: &ChioReceipt) -> Option<&Value> {
    let chio = receipt.metadata.as_ref()?.get("chio")?;
    // A call that crossed no bridge has its trace beside the place of one.
    chio.pointer("/bridge/trace").or_else(|| chio.get("trace"))
}

impl Found {
    pub(super) fn new(receipt: LoggedReceipt, log_id: String) -> Self {
        let request_id = receipt.request_id().map(str::to_owned);
        let (parent, hops) = match &receipt {
            LoggedReceipt::Call(call) => (parent_of(call), hops(call)),
            LoggedReceipt::Child(child) => {
                let request_id = child.parent_request_id.clone();
                (Some(Parent { request_id, is_claim: false }), Vec::new())
            }
        };
        let trace_id = match &receipt {
            LoggedReceipt::Call(call) => trace(call).and_then(|trace| trace.get("traceId")),
            LoggedReceipt::Child(child) => {
                child.metadata.as_ref().and_then(|metadata| metadata.get("traceId"))
            }
        };
        let trace_id = trace_id.and_then(Value::as_str).map(str::to_owned);
        Self { receipt, log_id, request_id, trace_id, parent, hops }
    }
}

/// The call that runs and makes this one; else the one that the caller names.
fn parent_of(receipt: &ChioReceipt) -> Option<Parent> {
    let parent = |value: &Value, is_claim| {
        let request_id = value.get("parentRequestId")?.as_str()?.to_owned();
        Some(Parent { request_id, is_claim })
    };
    if let Some(found) = trace(receipt).and_then(|trace| parent(trace, false)) {
        return Some(found);
    }
    let chain = receipt.metadata.as_ref()?.pointer("/governed_transaction/call_chain")?;
    let class = chain.get("evidenceClass").and_then(Value::as_str);
    parent(chain, !matches!(class, Some("observed" | "verified")))
}

fn hops(receipt: &ChioReceipt) -> Vec<String> {
    let Some(trace) = trace(receipt) else { return Vec::new() };
    let protocol = |hop: &Value| Some(hop.get("protocol")?.as_str()?.to_owned());
    match trace.get("hops").and_then(Value::as_array) {
        Some(hops) => hops.iter().filter_map(protocol).collect(),
        None => protocol(trace).into_iter().collect(),
    }
}

/// What stands below each request, and where the drawing begins.
struct Shape<'a> {
    below: HashMap<&'a str, Vec<&'a Found>>,
    /// A receipt without a parent, or the name of a parent without a receipt.
    roots: Vec<(&'a str, Option<&'a Found>)>,
}

/// A line that is still to be drawn.
struct Waiting<'a> {
    depth: usize,
    /// What is drawn before the lines below its parent.
    stem: String,
    is_last: bool,
    request_id: &'a str,
    found: Option<&'a Found>,
}

/// The receipts of one trace as a tree, line by line, each before those below it.
pub(super) fn lines(all: &[Found]) -> Vec<Line<'_>> {
    let mut shape = Shape::new(all);
    let mut lines = Vec::with_capacity(all.len());
    for (request_id, found) in std::mem::take(&mut shape.roots) {
        let root = Waiting { depth: 0, stem: String::new(), is_last: true, request_id, found };
        shape.draw(root, &mut lines);
    }
    // Requests that name one another in a circle are below no root.
    for found in all {
        let (Some(request_id), Some(parent)) = (&found.request_id, &found.parent) else {
            continue;
        };
        let Some(left) = shape.below.get_mut(&*parent.request_id) else { continue };
        let Some(place) = left.iter().position(|other| std::ptr::eq(*other, found)) else {
            continue;
        };
        left.remove(place);
        let (stem, found) = (String::new(), Some(found));
        shape.draw(Waiting { depth: 0, stem, is_last: true, request_id, found }, &mut lines);
    }
    lines
}

impl<'a> Shape<'a> {
    fn new(all: &'a [Found]) -> Self {
        let known: HashSet<&str> =
            all.iter().filter_map(|found| found.request_id.as_deref()).collect();
        let mut below: HashMap<&str, Vec<&Found>> = HashMap::new();
        let mut roots = Vec::new();
        for found in all {
            let name = found.request_id.as_deref().unwrap_or_default();
            let Some(parent) = &found.parent else {
                roots.push((name, Some(found)));
                continue;
            };
            let parent = parent.request_id.as_str();
            let siblings = below.entry(parent).or_default();
            if siblings.is_empty() && !known.contains(parent) {
                roots.push((parent, None));
            }
            siblings.push(found);
        }
        Self { below, roots }
    }

    /// Draws one line and all below it. What is drawn is taken out, so that nothing is drawn twice.
    fn draw(&mut self, root: Waiting<'a>, lines: &mut Vec<Line<'a>>) {
        let mut waiting = vec![root];
        while let Some(next) = waiting.pop() {
            let Waiting { depth, stem, is_last, request_id, found } = next;
            let (fork, stem_below) = match depth {
                0 => ("", String::new()),
                MAX_INDENT.. => ("└─ ", stem.clone()),
                _ if is_last => ("└─ ", format!("{stem}   ")),
                _ => ("├─ ", format!("{stem}│  ")),
            };
            lines.push(Line { depth, branch: format!("{stem}{fork}"), request_id, found });
            let below = self.below.remove(request_id).unwrap_or_default();
            let last = below.len().saturating_sub(1);
            // The first one is drawn first, so it is put on top.
            waiting.extend(below.into_iter().enumerate().rev().map(|(place, found)| Waiting {
                depth: depth + 1,
                stem: stem_below.clone(),
                is_last: place == last,
                request_id: found.request_id.as_deref().unwrap_or_default(),
                found: Some(found),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;
    use chio_core::receipt::{
        ChioReceipt, Decision, LoggedReceipt, NO_OUTPUT_HASH, ToolCallAction,
    };
    use serde_json::{Value, json};

    use super::{Found, MAX_INDENT, lines};

    fn receipt(metadata: Value) -> LoggedReceipt {
        let key = Keypair::from_seed(&[7; 32]).public_key().clone();
        let action = ToolCallAction::new(json!({})).unwrap();
        let mut receipt =
            ChioReceipt::mediated(1, action, Decision::Allow, NO_OUTPUT_HASH.to_owned(), key);
        receipt.metadata = Some(metadata);
        LoggedReceipt::Call(Box::new(receipt))
    }

    fn found(id: &str, parent: Option<&str>) -> Found {
        let trace = json!({"traceId": "t", "parentRequestId": parent, "hops": [
            {"protocol": "mcp"}, {"protocol": "native"}]});
        let metadata =
            json!({"receipt_context": {"request_id": id}, "chio": {"bridge": {"trace": trace}}});
        Found::new(receipt(metadata), "log".to_owned())
    }

    fn drawn(pairs: &[(&str, Option<&str>)]) -> Vec<String> {
        let all: Vec<Found> = pairs.iter().map(|(id, parent)| found(id, *parent)).collect();
        let line = |line: &super::Line<'_>| {
            let stub = if line.found.is_some() { "" } else { "?" };
            format!("{}{}{stub}", line.branch, line.request_id)
        };
        lines(&all).iter().map(line).collect()
    }

    #[test]
    fn receipts_stand_below_the_call_that_they_were_made_for() {
        // Children are signed before their parent.
        let pairs =
            [("c", Some("b")), ("b", Some("a")), ("d", Some("a")), ("e", Some("d")), ("a", None)];
        assert_eq!(drawn(&pairs), ["a", "├─ b", "│  └─ c", "└─ d", "   └─ e"]);
    }

    #[test]
    fn a_parent_that_is_not_here_is_one_line_for_all_its_children() {
        let pairs = [("b", Some("a")), ("c", Some("a")), ("d", None)];
        assert_eq!(drawn(&pairs), ["a?", "├─ b", "└─ c", "d"]);
    }

    #[test]
    fn a_circle_is_drawn_once() {
        let pairs = [("a", Some("b")), ("b", Some("a")), ("c", Some("c"))];
        assert_eq!(drawn(&pairs), ["a", "└─ b", "c"]);
    }

    #[test]
    fn two_receipts_of_one_name_are_both_drawn() {
        let pairs = [("a", None), ("a", None), ("b", Some("a"))];
        assert_eq!(drawn(&pairs), ["a", "└─ b", "a"]);
    }

    #[test]
    fn a_deep_tree_is_drawn_within_bounds() {
        let names: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
        let parent = |number: usize| number.checked_sub(1).map(|above| names[above].as_str());
        let pairs: Vec<_> =
            (0..2000).map(|number| (names[number].as_str(), parent(number))).collect();
        let lines = drawn(&pairs);
        assert_eq!(lines.len(), 2000);
        assert!(lines.iter().all(|line| line.chars().count() < 4 * MAX_INDENT));
    }

    #[test]
    fn a_receipt_tells_its_way_and_its_parent() {
        let both = json!({"governed_transaction": {"call_chain": {"parentRequestId": "claimed"}},
            "chio": {"bridge": {"trace": {"parentRequestId": "live"}}}});
        let parent = |metadata: Value| {
            let parent = Found::new(receipt(metadata), String::new()).parent.unwrap();
            (parent.request_id, parent.is_claim)
        };
        assert_eq!(parent(both), ("live".to_owned(), false));
        for (class, is_claim) in [("asserted", true), ("observed", false), ("verified", false)] {
            let chain = json!({"parentRequestId": "p", "evidenceClass": class});
            let metadata = json!({"governed_transaction": {"call_chain": chain}});
            assert_eq!(parent(metadata), ("p".to_owned(), is_claim), "{class}");
        }
        assert_eq!(found("a", None).hops, ["mcp", "native"]);
    }
}
