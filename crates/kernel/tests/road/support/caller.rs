//! A caller that remembers what it got, and answers or leaves as it was told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chio_core::principal::Principal;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::TaskEnd;
use chio_kernel::{AskError, Caller, Gone, Outcome, Question, ServerNotification, Session};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Journal;

/// A caller that remembers what it got.
pub(crate) struct TestCaller {
    session: Session,
    cancellation: CancellationToken,
    journal: Journal,
    chunks: Mutex<Vec<(u64, Value)>>,
    questions: Mutex<Vec<Question>>,
    notices: Mutex<Vec<ServerNotification>>,
    answers: Mutex<VecDeque<Result<Value, AskError>>>,
    /// After this many chunks it is gone.
    gone_after: Option<usize>,
    /// From this chunk on it takes none, and never says so.
    stuck_at: Option<usize>,
    /// It never answers a question.
    silent: bool,
    /// It does not wait for approvals.
    hurried: bool,
}

impl TestCaller {
    pub(crate) fn new(journal: &Journal) -> Self {
        Self {
            session: Session {
                id: "session-1".to_owned(),
                protocol: DiscoveryProtocol::Native,
                principal: Arc::new(Principal {
                    tenant: Some("tenant-1".to_owned()),
                    ..Principal::anonymous()
                }),
            },
            cancellation: CancellationToken::new(),
            journal: journal.clone(),
            chunks: Mutex::default(),
            questions: Mutex::default(),
            notices: Mutex::default(),
            answers: Mutex::default(),
            gone_after: None,
            stuck_at: None,
            silent: false,
            hurried: false,
        }
    }

    /// Calls as this principal.
    pub(crate) fn by(mut self, principal: Principal) -> Self {
        self.session.principal = Arc::new(principal);
        self
    }

    /// Gives this answer to the next question that has none yet.
    pub(crate) fn answering(self, answer: Result<Value, AskError>) -> Self {
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    /// Takes this many chunks and is gone then.
    pub(crate) const fn gone_after(mut self, chunks: usize) -> Self {
        self.gone_after = Some(chunks);
        self
    }

    /// Takes this many chunks and never ends with the next.
    pub(crate) const fn stuck_at(mut self, chunks: usize) -> Self {
        self.stuck_at = Some(chunks);
        self
    }

    /// Never answers.
    pub(crate) const fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Does not wait for approvals.
    pub(crate) const fn hurried(mut self) -> Self {
        self.hurried = true;
        self
    }

    /// Every chunk and its number.
    pub(crate) fn chunks(&self) -> Vec<(u64, Value)> {
        self.chunks.lock().unwrap().clone()
    }

    pub(crate) fn questions(&self) -> Vec<Question> {
        self.questions.lock().unwrap().clone()
    }

    pub(crate) fn notices(&self) -> Vec<ServerNotification> {
        self.notices.lock().unwrap().clone()
    }

    /// Cancels the call.
    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }
}

#[async_trait]
impl Caller for TestCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, index: u64, data: Value) -> Result<(), Gone> {
        let taken = self.chunks.lock().unwrap().len();
        if self.gone_after.is_some_and(|most| taken >= most) {
            return Err(Gone);
        }
        self.journal.note(format!("chunk {index}"));
        if self.stuck_at.is_some_and(|at| taken >= at) {
            std::future::pending::<()>().await;
        }
        self.chunks.lock().unwrap().push((index, data));
        Ok(())
    }

    async fn ask(&self, question: Question) -> Result<Value, AskError> {
        self.journal.note("ask");
        self.questions.lock().unwrap().push(question);
        if self.silent {
            std::future::pending::<()>().await;
        }
        let next = self.answers.lock().unwrap().pop_front();
        next.unwrap_or(Err(AskError::Unsupported))
    }

    async fn notice(&self, notice: ServerNotification) {
        self.journal.note("notice");
        self.notices.lock().unwrap().push(notice);
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn can_wait(&self) -> bool {
        !self.hurried
    }

    fn task_end(&self, outcome: &Outcome) -> TaskEnd {
        TaskEnd { state: outcome.task_state(), result: serde_json::to_vec(outcome).unwrap() }
    }
}
