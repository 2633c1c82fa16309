//! Names of tasks: `a2a-task-{n}`, with numbers that no task of the store ever had.

use chio_cross_protocol::{CrossProtocolOrchestrator, StoreResult};
use tokio::sync::Mutex;

/// How many numbers are taken at once.
const BLOCK: u32 = 1024;

/// The numbers that are at hand.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Mutex<(u64, u64)>);

impl Numbers {
    /// The next name.
    pub(crate) async fn next(
        &self,
        orchestrator: &CrossProtocolOrchestrator<'static>,
    ) -> StoreResult<String> {
        let mut numbers = self.0.lock().await;
        if numbers.0 >= numbers.1 {
            let first = orchestrator.task_numbers(BLOCK).await?;
            *numbers = (first, first.saturating_add(u64::from(BLOCK)));
        }
        let number = numbers.0;
        numbers.0 += 1;
        Ok(format!("a2a-task-{number}"))
    }
}
