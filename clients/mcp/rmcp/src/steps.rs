//! What is done with the fixture, a line for each step.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams};
use rmcp::service::RunningService;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::handler::{ANSWER, EMAIL, Handler, ROOT};
use crate::resumes;

const PATIENCE: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(500);

/// The client, and how it went so far.
pub(crate) struct Steps<'a> {
    client: &'a RunningService<RoleClient, Handler>,
    progress: Arc<Mutex<Vec<f64>>>,
    ended: Ended,
}

/// How it went.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ended {
    pub(crate) failed: bool,
    pub(crate) calls: usize,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        client: &'a RunningService<RoleClient, Handler>,
        progress: Arc<Mutex<Vec<f64>>>,
    ) -> Self {
        Self { client, progress, ended: Ended::default() }
    }

    pub(crate) fn ended(&self) -> Ended {
        self.ended
    }

    /// Does all that there is to do with the fixture.
    pub(crate) async fn all(&mut self, task: &Value) {
        let server = self.client.peer_info().context("a server that says who it is");
        self.tell("connect", server.and_then(|info| Ok(serde_json::to_value(&*info)?)));
        let tools = self.tools().await;
        self.tell("tools", tools);
        self.expect("echo", "echo", json!({"text": "hello"}), &["hello"]).await;
        let sum = self.call("add", json!({"a": 1, "b": 2})).await;
        self.tell(
            "structured",
            sum.and_then(|it| check(it["structuredContent"]["sum"] == 3.0, it)),
        );
        if let Some(denied) = task.get("denied") {
            let tool = denied["tool"].as_str().unwrap_or_default().to_owned();
            let result = self.call(&tool, denied["arguments"].clone()).await;
            self.tell("denied", result.and_then(denial));
        }
        let prompt = json!({"prompt": "what is it?"});
        self.expect("sampling", "test_sampling", prompt, &[ANSWER]).await;
        let message = json!({"message": "who?"});
        self.expect("elicitation", "test_elicitation", message, &["accept", EMAIL]).await;
        self.expect("roots", "ask_roots", json!({}), &[ROOT]).await;
        let seen = self.progress().await;
        self.tell("progress", seen);
        let cancelled = self.cancel().await;
        self.tell("cancel", cancelled);
        let text = json!({"text": "still here"});
        self.expect("after cancel", "echo", text, &["still here"]).await;
        let reconnected = self.reconnect().await;
        self.tell("reconnect", reconnected);
        let resources = self.resources().await;
        self.tell("resources", resources);
        let prompts = self.prompts().await;
        self.tell("prompts", prompts);
    }

    fn tell(&mut self, step: &str, outcome: Result<Value>) {
        let (ok, detail) = match outcome {
            Ok(detail) => (true, detail),
            Err(error) => (false, json!(format!("{error:#}"))),
        };
        self.ended.failed |= !ok;
        println!("{}", json!({"step": step, "ok": ok, "detail": detail}));
    }

    /// Calls a tool; the result as it is on the wire.
    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        self.ended.calls += 1;
        let result = timeout(PATIENCE, self.client.call_tool(params(tool, arguments))).await;
        Ok(serde_json::to_value(result.context("took too long")??)?)
    }

    async fn expect(&mut self, step: &str, tool: &str, arguments: Value, expected: &[&str]) {
        let seen = self.call(tool, arguments).await.map(|result| text(&result));
        let has_all = |seen: &str| expected.iter().all(|part| seen.contains(part));
        self.tell(step, seen.and_then(|seen| check(has_all(&seen), json!(seen))));
    }

    async fn tools(&self) -> Result<Value> {
        let tools = timeout(PATIENCE, self.client.list_all_tools()).await??;
        let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
        check(!names.is_empty(), json!(names))
    }

    async fn progress(&mut self) -> Result<Value> {
        self.progress.lock().map_err(|_| anyhow::anyhow!("a lock"))?.clear();
        self.call("test_tool_with_progress", json!({})).await?;
        // Notifications are handled beside the answer.
        sleep(MOMENT).await;
        let seen = self.progress.lock().map_err(|_| anyhow::anyhow!("a lock"))?.clone();
        check(seen == [0.0, 50.0, 100.0], json!(seen))
    }

    /// Dropping the call is how this SDK cancels it.
    async fn cancel(&mut self) -> Result<Value> {
        self.ended.calls += 1;
        let call = self.client.call_tool(params("slow", json!({"ms": 600_000})));
        match timeout(MOMENT, call).await {
            Err(_) => Ok(json!("an end without an answer")),
            Ok(answer) => bail!("unexpected: {answer:?}"),
        }
    }

    async fn reconnect(&mut self) -> Result<Value> {
        let before = resumes::count();
        let said = text(&self.call("test_reconnection", json!({})).await?);
        let resumes = resumes::count() - before;
        let done = said.contains("completed") && resumes > 0;
        check(done, json!({"text": said, "resumes": resumes}))
    }

    async fn resources(&self) -> Result<Value> {
        let listed = timeout(PATIENCE, self.client.list_all_resources()).await??.len();
        let templates = timeout(PATIENCE, self.client.list_all_resource_templates()).await??.len();
        let uri = ReadResourceRequestParams::new("test://static-text");
        let read = timeout(PATIENCE, self.client.read_resource(uri)).await??;
        let content = serde_json::to_value(read)?["contents"][0]["text"].clone();
        let holds = content.as_str().is_some_and(|text| text.contains("static text"));
        check((listed, templates) == (3, 1) && holds, json!([listed, templates, content]))
    }

    async fn prompts(&self) -> Result<Value> {
        let listed = timeout(PATIENCE, self.client.list_all_prompts()).await??.len();
        let given = json!({"arg1": "one", "arg2": "two"}).as_object().cloned().unwrap_or_default();
        let asked = GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(given);
        let prompt = timeout(PATIENCE, self.client.get_prompt(asked)).await??;
        let content = serde_json::to_value(prompt)?["messages"][0]["content"]["text"].clone();
        let holds = content.as_str().is_some_and(|text| text.contains("arg2='two'"));
        check(listed == 4 && holds, json!([listed, content]))
    }
}

fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

fn text(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn check(holds: bool, seen: Value) -> Result<Value> {
    ensure!(holds, "unexpected: {seen}");
    Ok(seen)
}

/// A denial is a result that says so in words, and names its receipt.
fn denial(result: Value) -> Result<Value> {
    let (said, chio) = (text(&result), result["_meta"]["chio"].clone());
    let holds = result["isError"] == true && !said.is_empty() && !chio.is_null();
    check(holds, json!({"isError": result["isError"], "text": said, "chio": chio}))
}
