//! Ids of tasks: `a2a-task-{n}`, with numbers that no task of the store ever had.

use std::ops::Range;

use chio_cross_protocol::{CrossProtocolOrchestrator, StoreResult};
use tokio::sync::Mutex;

/// How many numbers are taken at once.
const BLOCK: u32 = 1024;

/// The ids that were taken from the store and are not used yet, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct TaskIds(Mutex<Range<u64>>);

impl TaskIds {
    /// The next id.
    pub(crate) async fn next(
        &self,
        orchestrator: &CrossProtocolOrchestrator<'static>,
    ) -> StoreResult<String> {
        let mut numbers = self.0.lock().await;
        if numbers.is_empty() {
            let first = orchestrator.task_numbers(BLOCK).await?;
            *numbers = first..first.saturating_add(u64::from(BLOCK));
        }
        let number = numbers.start;
        numbers.start += 1;
        Ok(task_id(number))
    }
}

/// The id with this number.
pub(crate) fn task_id(number: u64) -> String {
    format!("a2a-task-{number}")
}
