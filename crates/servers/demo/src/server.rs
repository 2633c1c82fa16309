//! Running the tools.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::manifest::ToolManifest;
use chio_kernel::{
    CallContext, Clock, Gone, KernelError, Permit, ToolInvocation, ToolOutput, ToolServerConnection,
};
use serde_json::{Value, json};

use crate::arguments::{Arguments, failure};
use crate::manifest::{self, MAX_CHUNKS, MAX_SLEEP_MS};
use crate::notebook::{NoteError, Notebook};

/// What a demo server is made from.
#[derive(Debug)]
pub struct DemoOptions {
    /// The server's own key.
    pub public_key: PublicKey,
    /// Where it has the time from.
    pub clock: Arc<dyn Clock>,
    /// The folder that keeps the notes; in memory when absent.
    pub notes: Option<PathBuf>,
}

/// A tool server that runs in the process.
pub struct DemoServer {
    manifest: Arc<ToolManifest>,
    clock: Arc<dyn Clock>,
    notes: Arc<Notebook>,
}

impl DemoServer {
    /// A server with these options.
    ///
    /// # Errors
    /// When the folder of the notes cannot be used.
    pub fn new(options: DemoOptions) -> io::Result<Self> {
        let notes = Arc::new(Notebook::open(options.notes.as_deref())?);
        let manifest = Arc::new(manifest::manifest(options.public_key));
        Ok(Self { manifest, clock: options.clock, notes })
    }

    async fn run(&self, tool: Tool, context: &impl Chunks) -> Result<ToolOutput, KernelError> {
        Ok(ToolOutput::value(match tool {
            Tool::Echo { text } | Tool::NeedsApproval { text } => json!({"text": text}),
            Tool::Now => json!({"unix_seconds": self.clock.unix_seconds()}),
            Tool::NotePut { name, text } => {
                json!({"puts": self.on_notes(move |notes| notes.put(name, text)).await?})
            }
            Tool::NoteGet { name } => {
                json!({"text": self.on_notes(move |notes| notes.get(&name)).await?})
            }
            Tool::NoteCount => {
                let counts = self.on_notes(Notebook::counts).await?;
                json!({"notes": counts.notes, "puts": counts.puts})
            }
            Tool::CountTo { n } => return count_to(n, context).await,
            Tool::Sleep { ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                json!({"slept_ms": ms})
            }
            Tool::Paid { text } => {
                let value = Some(json!({"text": text.unwrap_or_default()}));
                return Ok(ToolOutput { value, cost: Some(manifest::price()) });
            }
        }))
    }

    /// Works on the notes where waiting for a disk holds up no other call.
    async fn on_notes<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Notebook) -> Result<T, NoteError> + Send + 'static,
    ) -> Result<T, KernelError> {
        let notes = Arc::clone(&self.notes);
        let outcome = tokio::task::spawn_blocking(move || act(&notes)).await;
        let outcome = outcome.map_err(|_| failure("the notebook cannot be used"))?;
        outcome.map_err(|error| failure(error.message()))
    }
}

/// A receiver of chunks: the kernel's line, or a test.
trait Chunks: Sync {
    fn chunk(&self, data: Value) -> impl Future<Output = Result<(), Gone>> + Send;
}

impl Chunks for CallContext<'_> {
    async fn chunk(&self, data: Value) -> Result<(), Gone> {
        self.chunk(data).await
    }
}

async fn count_to(n: u64, context: &impl Chunks) -> Result<ToolOutput, KernelError> {
    for number in 1..=n {
        if context.chunk(json!({"n": number})).await.is_err() {
            break;
        }
    }
    Ok(ToolOutput::stream_end())
}

/// A tool and its arguments, checked.
#[derive(Debug, PartialEq, Eq)]
enum Tool {
    Echo { text: String },
    Now,
    NotePut { name: String, text: String },
    NoteGet { name: String },
    NoteCount,
    CountTo { n: u64 },
    Sleep { ms: u64 },
    Paid { text: Option<String> },
    NeedsApproval { text: String },
}

impl Tool {
    fn read(name: &str, arguments: Value) -> Result<Self, KernelError> {
        let mut arguments = Arguments::new(arguments)?;
        let tool = match name {
            "echo" => Self::Echo { text: arguments.text("text")? },
            "now" => Self::Now,
            "note_put" => {
                Self::NotePut { name: arguments.note_name()?, text: arguments.text("text")? }
            }
            "note_get" => Self::NoteGet { name: arguments.note_name()? },
            "note_count" => Self::NoteCount,
            "count_to" => Self::CountTo { n: arguments.number("n", MAX_CHUNKS)? },
            "sleep" => Self::Sleep { ms: arguments.number("ms", MAX_SLEEP_MS)? },
            "paid" => Self::Paid { text: arguments.optional_text("text")? },
            // The kernel has seen to the approval.
            "needs_approval" => Self::NeedsApproval { text: arguments.text("text")? },
            _ => return Err(failure("there is no tool of this name")),
        };
        arguments.finish()?;
        Ok(tool)
    }
}

#[async_trait]
impl ToolServerConnection for DemoServer {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        let tool = Tool::read(&invocation.tool_name, invocation.arguments)?;
        self.run(tool, context).await
    }
}

#[cfg(test)]
mod tests;
