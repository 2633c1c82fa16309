//! Why a connection ended early.

use std::io;

use chio_core::frame::FrameError;
use chio_core::strict::StrictError;
use chio_cross_protocol::{KernelError, Refused, StoreError};
use chio_net::memory::Crowded;

/// Why a connection ended early. None of these repeats an argument, a result or a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// The bytes do not come or go.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are no frames, or ended inside one.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame holds no message of an agent.
    #[error("a frame holds no message of an agent: {0}")]
    Message(#[from] StrictError),
    /// The kernel has no answer that may be released.
    #[error("the kernel has no answer: {0}")]
    Kernel(#[from] KernelError),
    /// The store does not say which capabilities there are.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message began and did not go on, or none began.
    #[error("expected the rest of a frame, found nothing for too long")]
    Late,
    /// There is no memory for a message.
    #[error(transparent)]
    Crowded(#[from] Crowded),
    /// A call's task broke off.
    #[error("a call broke off inside the edge")]
    BrokenOff,
    /// The client was not admitted.
    #[error(transparent)]
    Refused(#[from] Refused),
}
