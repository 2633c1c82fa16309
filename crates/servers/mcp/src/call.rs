//! One call of a child: the request, and what passes between child and caller until its answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use chio_core::text::members;
use chio_kernel::CallContext;
use serde_json::{Map, Value, json};

use crate::conversation::{ChildQuestion, Conversation, Events, QueuedNotification, Running};
use crate::error::McpError;

/// Sends a child a request on behalf of a caller, with what the child learns about it in `_meta`.
///
/// # Errors
/// When there is no answer, or an error.
pub(crate) async fn call(
    conversation: &Arc<Conversation>,
    method: &str,
    meta: Map<String, Value>,
    params: Map<String, Value>,
    context: &CallContext<'_>,
) -> Result<Value, McpError> {
    let (running, events) = conversation.begin(&context.session().id);
    let params = with_meta(params, meta, &running, context);
    let work = async {
        let waiting = conversation.send(method, &params)?;
        context.sent();
        waiting.answer().await
    };
    attended(running, events, context, work).await
}

/// Calls a tool that runs only as a task: it is made, and its result is waited for.
///
/// # Errors
/// As [`call`].
pub(crate) async fn call_as_task(
    conversation: &Arc<Conversation>,
    meta: Map<String, Value>,
    mut params: Map<String, Value>,
    context: &CallContext<'_>,
) -> Result<Value, McpError> {
    let (running, events) = conversation.begin(&context.session().id);
    let ttl = conversation.settings.limits.task_ttl.as_millis();
    params.insert("task".to_owned(), json!({"ttl": u64::try_from(ttl).unwrap_or(u64::MAX)}));
    let params = with_meta(params, meta, &running, context);
    let token = running.token;
    let work = async {
        let waiting = conversation.send("tools/call", &params)?;
        context.sent();
        let made = waiting.answer().await?;
        let Some(task_id) = made.pointer("/task/taskId").and_then(Value::as_str) else {
            // It made none after all.
            return Ok(made);
        };
        conversation.relate(token, task_id);
        let mut task = Task { conversation, id: task_id.to_owned(), waits: true };
        let result = conversation.request("tasks/result", task.params()).await;
        task.waits = false;
        result
    };
    attended(running, events, context, work).await
}

/// A task whose end a call waits for. It is cancelled with the wait.
struct Task<'a> {
    conversation: &'a Conversation,
    id: String,
    waits: bool,
}

impl Task<'_> {
    fn params(&self) -> Map<String, Value> {
        members(json!({"taskId": self.id}))
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.conversation.request_blindly("tasks/cancel", &self.params());
        }
    }
}

/// The parameters with what the server learns about the call, and with a progress token, if the
/// caller wants progress.
fn with_meta(
    mut params: Map<String, Value>,
    mut meta: Map<String, Value>,
    running: &Running,
    context: &CallContext<'_>,
) -> Map<String, Value> {
    // What another hop said about its own messages means nothing on this one.
    params.remove("_meta");
    if context.wants_progress() {
        meta.insert("progressToken".to_owned(), json!(running.token));
    }
    if !meta.is_empty() {
        params.insert("_meta".to_owned(), Value::Object(meta));
    }
    params
}

/// Waits for `work`, and meanwhile passes on what the child says. What it said before its answer
/// reaches the caller before the answer does.
async fn attended(
    mut running: Running,
    events: Events,
    context: &CallContext<'_>,
    work: impl Future<Output = Result<Value, McpError>>,
) -> Result<Value, McpError> {
    let Events { mut notifications, mut questions } = events;
    let mut notifying = pin!(async move {
        while let Some(QueuedNotification { notification, .. }) = notifications.recv().await {
            context.notice(notification).await;
        }
    });
    let answer = {
        // One question after the other.
        let mut asking = pin!(async move {
            while let Some(ChildQuestion { question, reply, .. }) = questions.recv().await {
                reply.give(context.ask(question).await);
            }
        });
        let mut work = pin!(work);
        let (mut told, mut answered) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = &mut notifying, if !told => told = true,
                () = &mut asking, if !answered => answered = true,
                answer = &mut work => break (answer, told),
            }
        }
    };
    // Nothing more can come: the notifications end with the last that is there.
    running.is_over = true;
    drop(running);
    let (answer, told) = answer;
    if !told {
        notifying.await;
    }
    answer
}
