//! What goes out: whole lines, one at a time, and questions that wait for their answers.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cancel::Cancel;

/// How often a question that waits looks whether its call was cancelled.
const BEAT: Duration = Duration::from_millis(10);

/// Standard output, and the questions that were not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    questions: Mutex<Questions>,
}

#[derive(Debug, Default)]
struct Questions {
    last: u64,
    open: HashMap<u64, Sender<Value>>,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The client refused, with what it said.
    Refused(String),
    /// The call that asked was cancelled.
    Cancelled,
}

impl Wire {
    /// Sends a message.
    pub(crate) fn send(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.send_bytes(line.as_bytes());
    }

    /// Sends bytes that need not be a message.
    pub(crate) fn send_bytes(&self, bytes: &[u8]) {
        // Locked for the whole line, so that lines of several calls do not mix.
        let mut out = io::stdout().lock();
        // When the client reads no more, the input ends as well, and the process with it.
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks the client, and waits until it answers or the call is cancelled.
    pub(crate) fn ask(
        &self,
        method: &str,
        params: Option<Value>,
        cancel: &Cancel,
    ) -> Result<Value, Unanswered> {
        let (sender, answers) = mpsc::channel();
        // Counted from one, as clients count theirs: ids of the two directions must not be mixed up.
        let id = self.questions().add(sender);
        let mut question = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if let (Some(params), Some(members)) = (params, question.as_object_mut()) {
            members.insert("params".to_owned(), params);
        }
        self.send(&question);
        loop {
            match answers.recv_timeout(BEAT) {
                Ok(answer) => return read(&answer),
                Err(RecvTimeoutError::Timeout) if !cancel.wait(Duration::ZERO) => {}
                Err(_) => {
                    self.questions().open.remove(&id);
                    self.notify("notifications/cancelled", &json!({"requestId": id}));
                    return Err(Unanswered::Cancelled);
                }
            }
        }
    }

    /// Hands an answer to the question that waits for it; one to no open question is dropped.
    pub(crate) fn answered(&self, answer: Value) {
        let id = answer.get("id").and_then(Value::as_u64);
        let question = id.and_then(|id| self.questions().open.remove(&id));
        if let Some(question) = question {
            let _ = question.send(answer);
        }
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Questions {
    fn add(&mut self, sender: Sender<Value>) -> u64 {
        self.last += 1;
        self.open.insert(self.last, sender);
        self.last
    }
}

fn read(answer: &Value) -> Result<Value, Unanswered> {
    if let Some(result) = answer.get("result") {
        return Ok(result.clone());
    }
    let said = answer.pointer("/error/message").and_then(Value::as_str);
    Err(Unanswered::Refused(said.unwrap_or("without a reason").to_owned()))
}
