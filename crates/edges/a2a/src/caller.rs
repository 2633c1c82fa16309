//! The client, as the kernel sees it while a call runs.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use chio_cross_protocol::{AskError, Caller, Gone, Question, Session};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::places::Place;

/// The most bytes of chunks that are collected for one result.
const MAX_COLLECTED: usize = 8 << 20;

/// A client that waits for one whole result, takes no questions and cannot wait for approvals.
pub(crate) struct A2aCaller {
    session: Session,
    cancellation: CancellationToken,
    collected: Mutex<(Vec<Value>, usize)>,
    /// Its place among the calls that run.
    _place: Place,
}

impl A2aCaller {
    pub(crate) fn new(session: Session, cancellation: CancellationToken, place: Place) -> Self {
        Self { session, cancellation, collected: Mutex::default(), _place: place }
    }

    /// The chunks that a streaming tool gave.
    pub(crate) fn take_chunks(&self) -> Vec<Value> {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut collected.0)
    }
}

#[async_trait]
impl Caller for A2aCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, _index: u64, data: Value) -> Result<(), Gone> {
        let size = data.to_string().len();
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        collected.1 = collected.1.saturating_add(size);
        if collected.1 > MAX_COLLECTED {
            // One result has to hold them all.
            return Err(Gone);
        }
        collected.0.push(data);
        Ok(())
    }

    async fn ask(&self, _question: Question) -> Result<Value, AskError> {
        Err(AskError::Unsupported)
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn can_wait(&self) -> bool {
        false
    }
}
