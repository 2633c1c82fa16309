//! The shared database as the kernel's traits see it.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::canonical;
use chio_core::capability::CapabilityToken;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::crypto::PublicKey;
use chio_core::mark::StoreNumbers;
use chio_kernel::store::{
    AuditStore, LogEntry, LogStore, LogSummary, ReceiptIndex, ReceiptQuery, ReceiptRow,
    RevocationStore, Revocations, Spent, StoreError, StoreResult, TokenStore,
};

use super::database::{CertificateRow, LogRow, TokenRow};
use super::{SqliteStore, read};
use crate::blocking::blocking;

#[async_trait]
impl RevocationStore for SqliteStore {
    async fn epoch(&self) -> StoreResult<u64> {
        // Every call asks, and the answer is in the cache: a hop to another thread would cost more.
        match self.epoch_file.read() {
            Ok(epoch) => Ok(epoch),
            Err(_) => read::epoch(&self.epochs.lock()),
        }
    }

    async fn revoked_since(&self, epoch: u64) -> StoreResult<Revocations> {
        self.read(move |database| read::revoked_since(database, epoch)).await
    }

    async fn revoke(&self, capability_id: &str, at: u64) -> StoreResult<bool> {
        let id = capability_id.to_owned();
        self.writer.run(move |database| database.revoke(&id, at)).await
    }

    async fn stop(&self, reason: Option<String>) -> StoreResult<()> {
        self.writer.run(move |database| database.stop(reason.as_deref())).await
    }
}

#[async_trait]
impl TokenStore for SqliteStore {
    async fn remember(&self, token: &CapabilityToken) -> StoreResult<bool> {
        let body = canonical::to_vec(token)
            .map_err(|error| StoreError::Refused(format!("a token has no form: {error}")))?;
        let row = Arc::new(TokenRow {
            id: token.id.clone(),
            subject: token.subject.to_hex(),
            issued_at: token.issued_at,
            expires_at: token.expires_at,
            body,
        });
        // Most tokens are known, and to look costs far less than to write.
        let asked = Arc::clone(&row);
        let known = move |database: &_| read::is_known(database, &asked.id, &asked.body);
        match self.read(known).await? {
            Some(same) => Ok(same),
            None => self.writer.run(move |database| database.remember(&row)).await,
        }
    }

    async fn tokens(&self, ids: &[String]) -> StoreResult<Vec<CapabilityToken>> {
        let ids = ids.to_vec();
        self.read(move |database| read::tokens(database, &ids)).await
    }

    async fn held_by(
        &self,
        subject: &PublicKey,
        now: u64,
        limit: usize,
    ) -> StoreResult<Vec<CapabilityToken>> {
        let subject = subject.to_hex();
        self.read(move |database| read::held_by(database, &subject, now, limit)).await
    }

    async fn known_after(&self, id: &str, limit: usize) -> StoreResult<Vec<CapabilityToken>> {
        let id = id.to_owned();
        self.read(move |database| read::known_after(database, &id, limit)).await
    }
}

#[async_trait]
impl LogStore for SqliteStore {
    async fn store_id(&self) -> StoreResult<String> {
        Ok(self.store_id.clone())
    }

    async fn logs(&self) -> StoreResult<Vec<LogSummary>> {
        self.read(read::logs).await
    }

    async fn entries(&self, log_id: &str, from: u64, limit: usize) -> StoreResult<Vec<LogEntry>> {
        let log_id = log_id.to_owned();
        self.read(move |database| read::entries(database, &log_id, from, limit)).await
    }

    async fn checkpoints(
        &self,
        log_id: &str,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<KernelCheckpoint>> {
        let log_id = log_id.to_owned();
        self.read(move |database| read::checkpoints(database, &log_id, from, limit)).await
    }

    async fn covering(&self, log_id: &str, seq: u64) -> StoreResult<Option<KernelCheckpoint>> {
        let log_id = log_id.to_owned();
        self.read(move |database| read::covering(database, &log_id, seq)).await
    }

    async fn admit(&self, certificate: &KernelCertificate) -> StoreResult<()> {
        crate::check_certificate(certificate)?;
        let text = CertificateRow::new(certificate)?;
        let log_id = certificate.log_id.clone();
        let row = LogRow { log_id, kernel_key: certificate.kernel_key.to_hex() };
        self.writer.run(move |database| database.certify(&row, &text)).await
    }
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn numbers(&self) -> StoreResult<StoreNumbers> {
        self.read(read::numbers).await
    }

    async fn spent(&self, capability_id: &str, grant_index: u32) -> StoreResult<Spent> {
        let id = capability_id.to_owned();
        self.read(move |database| read::spent(database, &id, grant_index)).await
    }
}

#[async_trait]
impl ReceiptIndex for SqliteStore {
    async fn query(&self, query: &ReceiptQuery) -> StoreResult<Vec<ReceiptRow>> {
        let (readers, index) = (Arc::clone(&self.readers), Arc::clone(&self.index));
        let query = query.clone();
        blocking(move || readers.with(|database| index.query(database, &query))).await
    }

    async fn find(&self, receipt_id: &str) -> StoreResult<Option<ReceiptRow>> {
        let (readers, index) = (Arc::clone(&self.readers), Arc::clone(&self.index));
        let receipt_id = receipt_id.to_owned();
        blocking(move || readers.with(|database| index.find(database, &receipt_id))).await
    }

    async fn find_beginning(&self, digits: &str, limit: usize) -> StoreResult<Vec<ReceiptRow>> {
        let (readers, index) = (Arc::clone(&self.readers), Arc::clone(&self.index));
        let digits = digits.to_owned();
        blocking(move || readers.with(|database| index.find_beginning(database, &digits, limit)))
            .await
    }
}
