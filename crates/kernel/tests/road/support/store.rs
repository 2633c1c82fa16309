//! A store that fails when told, and one that lies about its logs.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use chio_core::capability::CapabilityToken;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::crypto::PublicKey;
use chio_core::governance::ApprovalToken;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    Answered, Approval, ApprovalQuery, ApprovalStore, LogEntry, LogStore, LogSummary, NewTask,
    ReceiptIndex, ReceiptQuery, ReceiptRow, RevocationStore, Revocations, SharedStore, StoreError,
    StoreResult, Task, TaskRefused, TaskStore, TokenStore,
};

/// A store that fails when told.
pub(crate) struct TestStore {
    inner: SharedStore,
    revocations_fail: AtomicBool,
    tokens_fail: AtomicBool,
}

impl TestStore {
    pub(crate) const fn new(inner: SharedStore) -> Self {
        let (revocations_fail, tokens_fail) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner, revocations_fail, tokens_fail }
    }

    pub(crate) fn fail_revocations(&self, fails: bool) {
        self.revocations_fail.store(fails, Ordering::SeqCst);
    }

    pub(crate) fn fail_tokens(&self, fails: bool) {
        self.tokens_fail.store(fails, Ordering::SeqCst);
    }
}

fn check(fails: &AtomicBool) -> StoreResult<()> {
    if fails.load(Ordering::SeqCst) {
        return Err(StoreError::Unavailable("told to fail".to_owned()));
    }
    Ok(())
}

#[async_trait]
impl RevocationStore for TestStore {
    async fn epoch(&self) -> StoreResult<u64> {
        check(&self.revocations_fail)?;
        self.inner.epoch().await
    }

    async fn revoked_since(&self, epoch: u64) -> StoreResult<Revocations> {
        check(&self.revocations_fail)?;
        self.inner.revoked_since(epoch).await
    }

    async fn revoke(&self, capability_id: &str, at: u64) -> StoreResult<bool> {
        self.inner.revoke(capability_id, at).await
    }

    async fn stop(&self, reason: Option<String>) -> StoreResult<()> {
        self.inner.stop(reason).await
    }
}

#[async_trait]
impl TokenStore for TestStore {
    async fn remember(&self, token: &CapabilityToken) -> StoreResult<bool> {
        check(&self.tokens_fail)?;
        self.inner.remember(token).await
    }

    async fn tokens(&self, ids: &[String]) -> StoreResult<Vec<CapabilityToken>> {
        check(&self.tokens_fail)?;
        self.inner.tokens(ids).await
    }

    async fn held_by(
        &self,
        subject: &PublicKey,
        now: u64,
        limit: usize,
    ) -> StoreResult<Vec<CapabilityToken>> {
        check(&self.tokens_fail)?;
        self.inner.held_by(subject, now, limit).await
    }
}

#[async_trait]
impl LogStore for TestStore {
    async fn store_id(&self) -> StoreResult<String> {
        self.inner.store_id().await
    }

    async fn covering(&self, log_id: &str, seq: u64) -> StoreResult<Option<KernelCheckpoint>> {
        self.inner.covering(log_id, seq).await
    }

    async fn admit(&self, certificate: &KernelCertificate) -> StoreResult<()> {
        self.inner.admit(certificate).await
    }

    async fn logs(&self) -> StoreResult<Vec<LogSummary>> {
        self.inner.logs().await
    }

    async fn entries(&self, log_id: &str, from: u64, limit: usize) -> StoreResult<Vec<LogEntry>> {
        self.inner.entries(log_id, from, limit).await
    }

    async fn checkpoints(
        &self,
        log_id: &str,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<KernelCheckpoint>> {
        self.inner.checkpoints(log_id, from, limit).await
    }
}

#[async_trait]
impl ReceiptIndex for TestStore {
    async fn query(&self, query: &ReceiptQuery) -> StoreResult<Vec<ReceiptRow>> {
        self.inner.query(query).await
    }

    async fn find(&self, receipt_id: &str) -> StoreResult<Option<ReceiptRow>> {
        self.inner.find(receipt_id).await
    }
}

#[async_trait]
impl ApprovalStore for TestStore {
    async fn approval(&self, id: &str) -> StoreResult<Option<Approval>> {
        self.inner.approval(id).await
    }

    async fn approvals(&self, query: &ApprovalQuery) -> StoreResult<Vec<(u64, Approval)>> {
        self.inner.approvals(query).await
    }

    async fn answer(&self, id: &str, answer: &ApprovalToken, now: u64) -> StoreResult<Answered> {
        self.inner.answer(id, answer, now).await
    }
}

#[async_trait]
impl TaskStore for TestStore {
    async fn create_task(
        &self,
        task: NewTask,
        most: usize,
    ) -> StoreResult<Result<(), TaskRefused>> {
        self.inner.create_task(task, most).await
    }

    async fn task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<Task, TaskRefused>> {
        self.inner.task(id, owner, now).await
    }

    async fn forget_task(&self, id: &str, owner: &PublicKey) -> StoreResult<bool> {
        self.inner.forget_task(id, owner).await
    }

    async fn tasks_of(
        &self,
        owner: &PublicKey,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<Task>> {
        self.inner.tasks_of(owner, protocol, now, most).await
    }

    async fn take_numbers(&self, count: u32) -> StoreResult<u64> {
        self.inner.take_numbers(count).await
    }

    async fn forget_expired(&self, now: u64) -> StoreResult<u64> {
        self.inner.forget_expired(now).await
    }

    async fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>> {
        self.inner.cancel_task(id, owner, now).await
    }
}

type Change<T> = Box<dyn Fn(Vec<T>) -> Vec<T> + Send + Sync>;

/// A store whose logs were tampered with.
pub(crate) struct LyingStore {
    inner: SharedStore,
    pub(crate) entries: Change<LogEntry>,
    pub(crate) checkpoints: Change<KernelCheckpoint>,
    pub(crate) logs: Change<LogSummary>,
}

impl LyingStore {
    /// One that tells the truth so far.
    pub(crate) fn new(inner: &SharedStore) -> Self {
        Self {
            inner: SharedStore::clone(inner),
            entries: Box::new(|all| all),
            checkpoints: Box::new(|all| all),
            logs: Box::new(|all| all),
        }
    }
}

#[async_trait]
impl LogStore for LyingStore {
    async fn store_id(&self) -> StoreResult<String> {
        self.inner.store_id().await
    }

    async fn covering(&self, log_id: &str, seq: u64) -> StoreResult<Option<KernelCheckpoint>> {
        self.inner.covering(log_id, seq).await
    }

    async fn admit(&self, certificate: &KernelCertificate) -> StoreResult<()> {
        self.inner.admit(certificate).await
    }

    async fn logs(&self) -> StoreResult<Vec<LogSummary>> {
        Ok((self.logs)(self.inner.logs().await?))
    }

    async fn entries(&self, log_id: &str, from: u64, limit: usize) -> StoreResult<Vec<LogEntry>> {
        let all = (self.entries)(self.inner.entries(log_id, 1, usize::MAX).await?);
        Ok(all.into_iter().filter(|entry| entry.seq >= from).take(limit).collect())
    }

    async fn checkpoints(
        &self,
        log_id: &str,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<KernelCheckpoint>> {
        let all = (self.checkpoints)(self.inner.checkpoints(log_id, 1, usize::MAX).await?);
        let later = all.into_iter().filter(|found| found.body.checkpoint_seq >= from);
        Ok(later.take(limit).collect())
    }
}
