//! Tools that show what comes through between a client and a server, beyond what everyday clients use:
//! there with `--also through`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Tool;
use super::required;
use crate::call::{Call, Outcome, Stop, text};
use crate::rpc::Fault;

/// The name by which these tools are asked for.
pub(super) const GROUP: &str = "through";
/// The code of a server that needs its user to open a URL first.
const URL_ELICITATION_REQUIRED: i64 = -32042;

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("sign_in", "Needs its user to open a URL first.", |_| {
        let data = json!({"elicitations": [url_question()]});
        let message = "This needs you to sign in.".to_owned();
        Err(Stop::Fault(Fault { code: URL_ELICITATION_REQUIRED, message, data: Some(data) }))
    }),
    Tool::new("ask_url", "Asks its user to open a URL.", |call| {
        let answer = call.ask("elicitation", "elicitation/create", Some(url_question()))?;
        Ok(text(answer.to_string()))
    }),
    Tool::new("meta", "Gives the `_meta` of its call.", |call| Ok(text(call.meta.to_string())))
        .with_task("forbidden"),
    Tool::new("heard", "Gives the notifications that are no part of MCP.", |call| {
        Ok(text(json!(call.session.heard()).to_string()))
    })
    .with_task("optional"),
    Tool::new("extend", "Notifies and asks the client what is no part of MCP.", |call| {
        call.session.wire.notify("notifications/fixture/noted", &json!({"a": 1}));
        let answer = call.ask("experimental", "fixture/ask", Some(json!({"q": 1})))?;
        Ok(text(answer.to_string()))
    }),
    Tool::new("raw", "Answers with this as its structured content, as it is written.", raw)
        .takes(|| required(&[("json", "string")])),
    Tool::new("log_then_wait", "Logs, then takes so many milliseconds.", |call| {
        call.session.log("info", call.text("text")?);
        call.pause(call.number("ms")?)?;
        Ok(text("waited"))
    })
    .takes(|| required(&[("text", "string"), ("ms", "integer")])),
    Tool::new("log_late", "Answers, and logs so many milliseconds later.", |call| {
        let (session, late) =
            (Arc::clone(&call.session), Duration::from_millis(call.number("ms")?));
        let words = call.text("text")?.to_owned();
        std::thread::spawn(move || {
            std::thread::sleep(late);
            session.log("info", &words);
        });
        Ok(text("answered"))
    })
    .takes(|| required(&[("text", "string"), ("ms", "integer")])),
];

fn url_question() -> Value {
    json!({
        "mode": "url",
        "elicitationId": "sign-in-1",
        "url": "https://example.com/sign-in",
        "message": "Sign in.",
    })
}

fn raw(call: &Call) -> Outcome {
    let (id, json) = (&call.id, call.text("json")?);
    let result = format!(r#"{{"content":[],"structuredContent":{{"raw":{json}}}}}"#);
    let line = format!("{{\"result\":{result},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n");
    call.session.wire.send_bytes(line.as_bytes());
    Err(Stop::Silent)
}
