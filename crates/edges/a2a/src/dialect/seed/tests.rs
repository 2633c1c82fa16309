//! Requests and tasks of Chio's own documents.

use super::*;
use crate::call_report::CallReport;
use crate::error::Kind;
use crate::modes::AcceptedModes;

fn read(params: Value) -> Result<SendRequest, Fault> {
    read_send(serde_json::from_value(params).unwrap())
}

#[test]
fn a_message_has_a_role_and_parts_that_say_their_type() {
    let text = json!({"type": "text", "text": "a", "extra": 1});
    let data = json!({"type": "data", "data": {"q": 1}});
    let message = json!({
        "role": "anything", "parts": [text, data], "messageId": "m", "metadata": null, "more": 1,
    });
    let sent = read(json!({"message": message, "metadata": null, "more": 1})).unwrap();
    assert_eq!((sent.message.role, sent.message.id.as_deref()), (Role::User, Some("m")));
    let contents: Vec<&Content> = sent.message.parts.iter().map(|part| &part.content).collect();
    assert_eq!(contents, [&Content::Text("a".to_owned()), &Content::Data(json!({"q": 1}))]);
    assert!(sent.metadata.is_none() && !sent.at_once);
}

#[test]
fn what_is_no_message_is_refused() {
    let part = json!({"type": "text", "text": "a"});
    for params in [
        json!({}),
        json!({"message": []}),
        json!({"message": {"parts": [part]}}),
        json!({"message": {"role": "user"}}),
        json!({"message": {"role": "user", "parts": []}}),
        json!({"message": {"role": "user", "parts": [{"type": "text"}]}}),
        json!({"message": {"role": "user", "parts": [{"type": "data"}]}}),
        json!({"message": {"role": "user", "parts": [{"text": "a"}]}}),
        json!({"message": {"role": "user", "parts": ["a"]}}),
        json!({"message": {"role": "user", "parts": [part]}, "metadata": 7}),
        json!({"message": {"role": "user", "parts": [part], "metadata": 7}}),
    ] {
        assert_eq!(read(params.clone()).unwrap_err().kind, Kind::Params, "{params}");
    }
}

// covers: BRIDGE-082, BRIDGE-083, BRIDGE-084, BRIDGE-085
#[test]
fn each_state_has_its_status_and_either_a_message_or_words() {
    for (state, status) in [
        (State::Working, "working"),
        (State::InputRequired, "working"),
        (State::Completed, "completed"),
        (State::Failed, "failed"),
        (State::Rejected, "failed"),
        (State::Canceled, "cancelled"),
    ] {
        let record = TaskRecord {
            id: "a2a-task-7".to_owned(),
            context_id: None,
            skill: String::new(),
            state,
            output: vec![
                Part::text("out"),
                Part::new(Content::Raw("AA==".to_owned())),
                Part { shown: Shown::InA2a, ..Part::text("not here") },
            ],
            words: vec![Part::text("why")],
            accepted: AcceptedModes::All,
            history: Vec::new(),
            report: CallReport::pending(),
            replies: false,
            updated_at: 0,
        };
        let task = write(&record, FETCHED);
        assert_eq!(task["status"], status);
        if state == State::Completed {
            let message = json!({"role": "agent", "parts": [{"type": "text", "text": "out"}]});
            assert_eq!(task["message"], message);
            assert!(task.get("statusMessage").is_none());
        } else {
            assert_eq!(task["statusMessage"], "why");
            assert!(task.get("message").is_none());
        }
    }
}
