//! What a receipt says in short, for lists and for a running kernel's terminal.

use chio_core::principal::NamedPrincipal;
use chio_core::receipt::{ChildReceipt, Decision, LoggedReceipt, TerminalState};

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
        let (verdict, what, why) = Self::told(receipt);
        let then = if why.is_empty() { "" } else { "  " };
        let note = by(receipt.principal().as_ref(), then) + &why;
        Self { verdict, what, note }
    }

    /// How it ended, what it is about, and why it did not go well.
    fn told(receipt: &LoggedReceipt) -> (&'static str, String, String) {
        match receipt {
            LoggedReceipt::Call(receipt) => {
                let (verdict, why) = match &receipt.decision {
                    Some(Decision::Allow) => ("allow", String::new()),
                    Some(Decision::Deny { reason, guard }) => {
                        ("deny", format!("{guard}: {reason}"))
                    }
                    Some(Decision::Cancelled { reason }) => ("cancelled", reason.clone()),
                    Some(Decision::Incomplete { reason }) => ("incomplete", reason.clone()),
                    None => ("observed", String::new()),
                };
                let what = format!("{}/{}", receipt.tool_server, receipt.tool_name);
                (verdict, what, why)
            }
            LoggedReceipt::Child(child) => {
                let (verdict, why) = match &child.terminal_state {
                    TerminalState::Completed => completed(child),
                    TerminalState::Cancelled { reason } => ("cancelled", reason.clone()),
                    TerminalState::Incomplete { reason } => ("incomplete", reason.clone()),
                };
                (verdict, of_child(child), why)
            }
        }
    }
}

fn member<'a>(child: &'a ChildReceipt, pointer: &str) -> Option<&'a str> {
    child.metadata.as_ref()?.pointer(pointer)?.as_str()
}

/// How something inside a call or a session came to its end.
fn completed(child: &ChildReceipt) -> (&'static str, String) {
    let why = || member(child, "/message").unwrap_or_default().to_owned();
    match (member(child, "/denial/guard"), member(child, "/outcome")) {
        (Some(guard), _) => ("deny", format!("{guard}: {}", why())),
        (None, Some("error")) => ("failed", why()),
        _ => ("completed", String::new()),
    }
}

/// What was read, and where; else what was asked.
fn of_child(child: &ChildReceipt) -> String {
    let (Some(read), Some(server)) = (member(child, "/read"), member(child, "/server")) else {
        return text::words(&child.operation_kind);
    };
    let about = ["uri", "name", "ref/uri", "ref/name"]
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
            ["deny", "files/read_resource file:///a", "kernel: no"],
        );
        check(
            kind,
            read(json!({"outcome": "error", "message": "no", "denial": {"guard": "kernel"},
                "principal": {"name": "alice", "tenant": "acme"}})),
            ["deny", "files/read_resource file:///a", "by alice  kernel: no"],
        );
        check(
            OperationKind::Complete,
            read(json!({"read": "complete", "parameters": {"ref": {"name": "p"}}})),
            ["completed", "files/complete p", ""],
        );
        check(
            OperationKind::CreateElicitation,
            json!({"outcome": "error", "message": "nobody is there"}),
            ["failed", "create elicitation", "nobody is there"],
        );
    }
}
