//! What a receipt says in short, for lists and for a running kernel's terminal.

use chio_core::principal::NamedPrincipal;
use chio_core::receipt::{ChildReceipt, Decision, Execution, LoggedReceipt, TerminalState};

use crate::reasons::readable;
use crate::text;

/// How much of the name of a resource or prompt is shown, in characters.
const MAX_NAME: usize = 48;

/// How much of the name of a principal is shown, in characters.
const MAX_PRINCIPAL: usize = 80;

/// What a receipt says in short.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) verdict: &'static str,
    /// The tool, or the question.
    pub(crate) what: String,
    /// Who called, if that is known, and why it did not go well, if so.
    pub(crate) note: String,
}

/// Who called, as a line shows it before what follows; nothing where that is not known.
pub(crate) fn by(principal: Option<&NamedPrincipal<'_>>, then: &str) -> String {
    principal.map_or_else(String::new, |principal| {
        format!("by {}{then}", text::shortened(&principal.name, MAX_PRINCIPAL))
    })
}

impl Summary {
    pub(crate) fn of(receipt: &LoggedReceipt) -> Self {
        let (verdict, what, why) = Self::parts(receipt);
        let then = if why.is_empty() { "" } else { "  " };
        let note = by(receipt.principal().as_ref(), then) + &why;
        Self { verdict, what, note }
    }

    /// How it ended, what it is about, and why it did not go well.
    pub(crate) fn parts(receipt: &LoggedReceipt) -> (&'static str, String, String) {
        let (verdict, what, why) = Self::told(receipt);
        (verdict, what, readable(&why))
    }

    fn told(receipt: &LoggedReceipt) -> (&'static str, String, String) {
        let execution = receipt.execution();
        match receipt {
            LoggedReceipt::Call(receipt) => {
                let (verdict, why) = match &receipt.decision {
                    Some(Decision::Allow) if execution == Some(Execution::Failed) => {
                        ("allow", "the tool reports a failure".to_owned())
                    }
                    Some(Decision::Allow) => ("allow", String::new()),
                    Some(Decision::Deny { reason, guard }) => denied(guard, reason, execution),
                    Some(Decision::Cancelled { reason }) => {
                        ("cancelled", told(reason, cancelled(execution)))
                    }
                    Some(Decision::Incomplete { reason }) => {
                        ("incomplete", told(reason, incomplete(execution)))
                    }
                    None => ("observed", String::new()),
                };
                let what = format!("{}/{}", receipt.tool_server, receipt.tool_name);
                (verdict, what, why)
            }
            LoggedReceipt::Child(child) => {
                // A question is put to a client; what it was asked for runs elsewhere.
                let is_read = member(child, "/read").is_some();
                let told = |reason: &str, said| {
                    if is_read { told(reason, said) } else { reason.to_owned() }
                };
                let (verdict, why) = match &child.terminal_state {
                    TerminalState::Completed => completed(child, execution),
                    TerminalState::Cancelled { reason } => {
                        ("cancelled", told(reason, cancelled(execution)))
                    }
                    TerminalState::Incomplete { reason } => {
                        ("incomplete", told(reason, incomplete(execution)))
                    }
                };
                (verdict, of_child(child), why)
            }
        }
    }
}

/// What a receipt that does not say it reads as.
const UNKNOWN: &str = "unknown whether it ran";

/// A reason, and what became of the call at its tool.
fn told(reason: &str, said: &str) -> String {
    if said.is_empty() { reason.to_owned() } else { format!("{reason} ({said})") }
}

/// A denial: one that kept the call from its tool, or what came of it from its caller; or the error
/// that its tool server answered with.
fn denied(guard: &str, reason: &str, execution: Option<Execution>) -> (&'static str, String) {
    let (verdict, said) = match execution {
        Some(Execution::NotBegun) => ("deny", ""),
        Some(Execution::Failed) => ("failed", ""),
        Some(Execution::Completed) => ("deny", "the tool ran"),
        Some(Execution::Begun) => ("deny", "the tool had begun"),
        Some(Execution::Unknown) | None => ("deny", UNKNOWN),
    };
    (verdict, told(&format!("{guard}: {reason}"), said))
}

const fn cancelled(execution: Option<Execution>) -> &'static str {
    match execution {
        Some(Execution::NotBegun) => "it had not begun",
        Some(Execution::Unknown) | None => UNKNOWN,
        Some(_) => "it had begun",
    }
}

const fn incomplete(execution: Option<Execution>) -> &'static str {
    match execution {
        Some(Execution::Unknown) | None => UNKNOWN,
        Some(_) => "it had begun",
    }
}

fn member<'a>(child: &'a ChildReceipt, pointer: &str) -> Option<&'a str> {
    child.metadata.as_ref()?.pointer(pointer)?.as_str()
}

/// How something inside a call or a session came to its end.
fn completed(child: &ChildReceipt, execution: Option<Execution>) -> (&'static str, String) {
    let why = member(child, "/message").unwrap_or_default();
    match (member(child, "/denial/guard"), member(child, "/outcome")) {
        (Some(guard), _) => denied(guard, why, execution),
        (None, Some("error")) => ("failed", why.to_owned()),
        _ => ("completed", String::new()),
    }
}

/// What was read, and where; else what was asked.
fn of_child(child: &ChildReceipt) -> String {
    let (Some(read), Some(server)) = (member(child, "/read"), member(child, "/server")) else {
        return text::words(&child.operation_kind);
    };
    // A method that is no part of MCP is read by its name, and so is a notification.
    let about = ["uri", "name", "ref/uri", "ref/name", "method"]
        .iter()
        .find_map(|name| member(child, &format!("/parameters/{name}")));
    let about =
        about.map_or_else(String::new, |about| format!(" {}", text::shortened(about, MAX_NAME)));
    format!("{server}/{read}{about}")
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::{Keypair, Signature};
    use chio_core::receipt::{ChildReceipt, LoggedReceipt, OperationKind, TerminalState};
    use serde_json::{Value, json};

    use super::Summary;

    #[track_caller]
    fn check(operation_kind: OperationKind, metadata: Value, expected: [&str; 3]) {
        let receipt = LoggedReceipt::Child(Box::new(ChildReceipt {
            id: "child-rcpt-1".to_owned(),
            timestamp: 1,
            session_id: "sess-1".to_owned(),
            parent_request_id: "sess-1".to_owned(),
            request_id: "req-1".to_owned(),
            operation_kind,
            terminal_state: TerminalState::Completed,
            outcome_hash: String::new(),
            policy_hash: String::new(),
            metadata: Some(metadata),
            kernel_key: Keypair::from_seed(&[7; 32]).public_key().clone(),
            algorithm: None,
            signature: Signature::blank(),
        }));
        let Summary { verdict, what, note } = Summary::of(&receipt);
        assert_eq!([verdict, &what, &note], expected);
    }

    #[test]
    fn a_read_is_told_by_what_was_read_and_a_question_by_what_was_asked() {
        let read = |more: Value| {
            let mut metadata = json!({"outcome": "result", "read": "read_resource",
                "server": "files", "parameters": {"uri": "file:///a"}});
            let members = metadata.as_object_mut().unwrap();
            members.extend(more.as_object().unwrap().clone());
            metadata
        };
        let kind = OperationKind::ReadResource;
        check(kind, read(json!({})), ["completed", "files/read_resource file:///a", ""]);
        check(
            kind,
            read(json!({"outcome": "error", "message": "no", "denial": {"guard": "kernel"}})),
            // As earlier versions signed it.
            ["deny", "files/read_resource file:///a", "kernel: no (unknown whether it ran)"],
        );
        for (execution, verdict, why) in [
            ("not_begun", "deny", "kernel: no"),
            ("failed", "failed", "kernel: no"),
            ("completed", "deny", "kernel: no (the tool ran)"),
            ("begun", "deny", "kernel: no (the tool had begun)"),
            ("of a later version", "deny", "kernel: no (unknown whether it ran)"),
        ] {
            let denial = json!({"outcome": "error", "message": "no", "execution": execution,
                "denial": {"guard": "kernel"}});
            check(kind, read(denial), [verdict, "files/read_resource file:///a", why]);
        }
        check(
            kind,
            read(json!({"outcome": "error", "message": "no", "denial": {"guard": "kernel"},
                "principal": {"name": "alice", "tenant": "acme"}})),
            [
                "deny",
                "files/read_resource file:///a",
                "by alice  kernel: no (unknown whether it ran)",
            ],
        );
        check(
            OperationKind::Complete,
            read(json!({"read": "complete", "parameters": {"ref": {"name": "p"}}})),
            ["completed", "files/complete p", ""],
        );
        check(
            OperationKind::Complete,
            read(json!({"read": "method", "parameters": {"method": "acme/search", "params": {}}})),
            ["completed", "files/method acme/search", ""],
        );
        check(
            OperationKind::CreateElicitation,
            json!({"outcome": "error", "message": "nobody is there"}),
            ["failed", "create elicitation", "nobody is there"],
        );
    }
}
