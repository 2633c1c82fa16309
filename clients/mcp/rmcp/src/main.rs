//! The official Rust SDK's client with default settings; see ../../README.md for what it prints.

mod handler;
mod resumes;
mod steps;

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::handler::Handler;
use crate::steps::Steps;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    resumes::watch();
    let task = std::env::args().nth(1).and_then(|task| serde_json::from_str(&task).ok());
    let Some(task): Option<Value> = task else {
        eprintln!("expected a JSON object as the only argument");
        return ExitCode::from(2);
    };
    let uri = task["url"].as_str().unwrap_or_default().to_owned();
    let mut config = StreamableHttpClientTransportConfig::with_uri(uri);
    if let Some(token) = task["token"].as_str() {
        config = config.auth_header(token);
    }
    let handler = Handler::default();
    let progress = handler.progress.clone();
    // Whatever version the SDK asks for by itself.
    match handler.serve(StreamableHttpClientTransport::from_config(config)).await {
        Ok(client) => {
            let mut steps = Steps::new(&client, progress);
            steps.all(&task).await;
            let ended = steps.ended();
            let closed = client.cancel().await;
            let (ok, detail) = (closed.is_ok(), format!("{closed:?}"));
            println!("{}", json!({"step": "close", "ok": ok, "detail": detail}));
            println!("{}", json!({"step": "calls", "ok": true, "detail": ended.calls}));
            if ok && !ended.failed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{}", json!({"step": "connect", "ok": false, "detail": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}
