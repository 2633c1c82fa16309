//! Work that blocks, off the threads of the runtime.

use chio_kernel::store::{StoreError, StoreResult};

/// Runs what blocks on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> StoreResult<T> + Send + 'static,
) -> StoreResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Unavailable(format!("its work did not end: {error}")))?
}
