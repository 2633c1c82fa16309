//! The kernel itself: a handle that many hold on one road, one log and one set of servers.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use chio_core::capability::{CapabilityToken, Patterns, PresentedToken};
use chio_core::checkpoint::log_id;
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::manifest::{ToolDefinition, ToolManifest};
use chio_core::protocol::DiscoveryProtocol;
use parking_lot::RwLock;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::cache::TokenCache;
use crate::call::{Denial, Evaluation, ToolCall};
use crate::caller::{Caller, Session};
use crate::clock::{Clock, Randomness, random_name, unique_name};
use crate::config::{KernelConfig, Trust};
use crate::detach_on_drop::DetachOnDrop;
use crate::error::KernelError;
use crate::log::{DurableReceipt, ReceiptLog};
use crate::pipeline::Pipeline;
use crate::resource_provider::{ClientNotification, ListKind, Offer, ReadKind};
use crate::revocation::RevocationView;
use crate::road::{Read, ReadOutcome, ReadRequest, bounded};
use crate::running::Running;
pub(crate) use crate::servers::{Server, ToolFacts};
use crate::session_context::SessionContext;
use crate::shown::UnusableTool;
use crate::store::{Ledger, SharedStore, StoreError, StoreResult};
use crate::tool_server::ToolServerConnection;

mod start;
mod trust;

pub use start::RecoveredKernel;

/// How long calls that were cancelled may take to leave.
const LEAVE: Duration = Duration::from_secs(5);
/// How many servers that were registered wait to be noticed.
const MAX_REGISTERED: usize = 256;
/// The most capabilities that are listed.
const MAX_LISTED: usize = 1000;

/// Everything that a kernel is made of.
pub struct KernelParts {
    /// Whom it trusts, its limits and its intervals.
    pub config: KernelConfig,
    /// The key that it signs receipts with.
    pub key: Keypair,
    /// Its log.
    pub ledger: Arc<dyn Ledger>,
    /// What it shares with others.
    pub store: SharedStore,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub randomness: Arc<dyn Randomness>,
    /// The guards, and the policy that they stand for.
    pub pipeline: Pipeline,
}

/// A handle on a running kernel.
#[derive(Clone)]
pub struct ChioKernel {
    inner: Arc<Inner>,
}

/// The protocols of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolProtocols {
    /// What it asks to be addressed as; else what its server speaks.
    pub target: DiscoveryProtocol,
    /// What its server speaks.
    pub spoken: DiscoveryProtocol,
}

/// What every handle shares.
pub(crate) struct Inner {
    pub(crate) config: KernelConfig,
    trust: RwLock<Arc<Trust>>,
    pub(crate) trusted_issuers: Vec<PublicKey>,
    pub(crate) key: Keypair,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) store: SharedStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Arc<dyn Randomness>,
    pipeline: RwLock<Arc<Pipeline>>,
    pub(crate) cache: TokenCache,
    pub(crate) patterns: Patterns,
    pub(crate) revocations: RevocationView,
    pub(crate) running: Running,
    pub(crate) log: Arc<ReceiptLog>,
    servers: RwLock<HashMap<String, Arc<Server>>>,
    /// Servers that are to come, and why they are not there.
    absent: RwLock<HashMap<String, String>>,
    /// Servers as they are registered.
    registered: broadcast::Sender<String>,
    /// Ends the background tasks.
    stop: CancellationToken,
    /// The store was removed, or something was taken from it, while it was in use.
    lost: CancellationToken,
}

impl Inner {
    /// A name that no other has.
    pub(crate) fn unique_name(&self, prefix: &str) -> String {
        unique_name(prefix, &*self.clock, &*self.randomness)
    }

    /// The server of this name.
    pub(crate) fn server(&self, id: &str) -> Option<Arc<Server>> {
        self.servers.read().get(id).map(Arc::clone)
    }

    /// The guards that judge a call which begins now.
    pub(crate) fn pipeline(&self) -> Arc<Pipeline> {
        Arc::clone(&self.pipeline.read())
    }

    async fn checkpoint(&self, partial: bool) -> Result<(), KernelError> {
        let now = self.clock.unix_seconds();
        self.log.checkpoint(&self.key, now, partial).await
    }

    /// Has a mark kept of how far the log and the store have come, if they have since the last one.
    async fn keep_mark(&self) -> Result<(), KernelError> {
        let epoch = self.revocations.epoch();
        self.log.keep_mark(&*self.store, &self.key, epoch).await
    }

    /// Takes nothing on any more, because of what became of the store.
    fn lose(&self, error: &KernelError) {
        tracing::error!("no call runs any more: {error}");
        self.running.close();
        self.lost.cancel();
    }
}

impl ChioKernel {
    /// Every receipt of this kernel as it becomes durable, from now on. A receiver that is too slow
    /// misses the oldest, and is told how many.
    pub fn receipts(&self) -> broadcast::Receiver<DurableReceipt> {
        self.inner.log.subscribe()
    }

    /// The canonical bytes of the receipt at a place of this kernel's log.
    ///
    /// # Errors
    /// When the store does not answer, or has none there.
    pub async fn logged(&self, seq: u64) -> StoreResult<Vec<u8>> {
        let found = self.inner.store.entries(&log_id(self.public_key()), seq, 1).await?;
        let found = found.into_iter().find(|entry| entry.seq == seq).map(|entry| entry.body);
        found.ok_or_else(|| StoreError::Unavailable(format!("the log has no entry {seq}")))
    }

    /// Adds a tool server. Its manifest says under which name.
    ///
    /// # Errors
    /// When there is one of that name, or a tool asks for a protocol that is none.
    pub fn register_tool_server(
        &self,
        server: Box<dyn ToolServerConnection>,
    ) -> Result<(), KernelError> {
        let id = server.manifest().server_id.clone();
        let mut servers = self.inner.servers.write();
        if servers.contains_key(&id) {
            return Err(KernelError::DuplicateServer(id));
        }
        servers.insert(id.clone(), Arc::new(Server::new(server)?));
        drop(servers);
        self.inner.absent.write().remove(&id);
        // Without receivers there is no one to tell.
        let _ = self.inner.registered.send(id);
        Ok(())
    }

    /// The names of tool servers as they are registered, from now on.
    pub fn registered_servers(&self) -> broadcast::Receiver<String> {
        self.inner.registered.subscribe()
    }

    /// Notes why a tool server is not there, until it is registered.
    pub fn note_absent(&self, server_id: &str, why: &str) {
        self.inner.absent.write().insert(server_id.to_owned(), why.to_owned());
    }

    /// Why a tool server is not there that is to come.
    pub fn absent(&self, server_id: &str) -> Option<String> {
        self.inner.absent.read().get(server_id).cloned()
    }

    /// Runs one call: the one road. It is [`DetachOnDrop`]: dropping the future does not stop it, only
    /// the caller's cancellation does; kept and not polled, it stands still, its deadline included.
    /// A tool that calls back does so in a task of its own, or all of them share one stack.
    ///
    /// # Errors
    /// When no receipt could be made durable. Then nothing of the result may be released.
    pub async fn evaluate(
        &self,
        call: ToolCall,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        self.run(Box::new(call), None, caller).await
    }

    /// Looks something up in a server's resources, with the same checks as a call.
    /// [`DetachOnDrop`]: dropping the future does not stop it.
    ///
    /// # Errors
    /// When no receipt could be made durable. Then nothing of the result may be released.
    pub async fn read(
        &self,
        request: ReadRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<Read, KernelError> {
        let (kind, request_id) = (request.kind, self.new_request_id());
        let call = Box::new(request.into_call(request_id.clone()));
        let evaluation = self.run(call, Some(kind), caller).await?;
        let outcome = ReadOutcome::of(evaluation.outcome, evaluation.answered);
        Ok(Read { outcome, receipt_id: evaluation.receipt.id, request_id })
    }

    /// A call is boxed, because it is large and every stage hands it on.
    async fn run(
        &self,
        call: Box<ToolCall>,
        read: Option<ReadKind>,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        // Of the gravest level, so that whatever is logged names the call.
        let span = tracing::error_span!(
            "call",
            request_id = &*call.request_id,
            server = &*bounded(&call.server_id),
            tool = &*bounded(&call.tool_name),
            trace_id = call.trace_id.as_deref(),
        );
        let inner = Arc::clone(&self.inner);
        let work = async move {
            let ended = inner.evaluate_and_record(call, read, caller).await;
            if let Err(error) = &ended
                && !error.ran_nothing()
            {
                tracing::error!("nothing is released: {error}");
            }
            ended
        };
        let ended = DetachOnDrop::new(work.instrument(span)).await;
        ended.unwrap_or(Err(KernelError::Panicked))
    }

    /// Opens a session with a server that has more than tools. None for one that has only those.
    ///
    /// # Errors
    /// When the server cannot be had.
    pub async fn open_session(
        &self,
        server_id: &str,
        caller: Arc<dyn Caller>,
        token: PresentedToken,
        client: Map<String, Value>,
    ) -> Result<Option<Offer>, KernelError> {
        let Some(server) = self.inner.server(server_id) else { return Ok(None) };
        let Some(provider) = server.connection().resources() else { return Ok(None) };
        let context = SessionContext::new(&self.inner, caller, token, client);
        let offer = provider.open(context).await?;
        Ok(Some(self.inner.shown_offer(server_id, offer).await))
    }

    /// Ends a session with a server.
    pub async fn close_session(&self, server_id: &str, session_id: &str) {
        if let Some(server) = self.inner.server(server_id)
            && let Some(provider) = server.connection().resources()
        {
            provider.close(session_id).await;
        }
    }

    /// All entries of one kind that a server has, as it writes them and as far as the output guards
    /// let them be shown; none for a server that has only tools.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn list(
        &self,
        server_id: &str,
        session: &Session,
        kind: ListKind,
    ) -> Result<Option<Arc<Vec<Value>>>, KernelError> {
        let Some(server) = self.inner.server(server_id) else { return Ok(None) };
        let Some(provider) = server.connection().resources() else { return Ok(None) };
        let said = provider.list(session, kind).await?;
        Ok(Some(self.inner.shown_list(server_id, &server, kind, said).await))
    }

    /// Sends a server a notice.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn tell(
        &self,
        server_id: &str,
        session: &Session,
        notification: ClientNotification,
    ) -> Result<(), KernelError> {
        let Some(server) = self.inner.server(server_id) else { return Ok(()) };
        match server.connection().resources() {
            Some(provider) => provider.tell(session, notification).await,
            None => Ok(()),
        }
    }

    /// Puts another policy in force for the calls that begin from now on, and for those that wait
    /// for an approval when they go on.
    pub fn set_pipeline(&self, pipeline: Pipeline) {
        let mut current = self.inner.pipeline.write();
        *current = Arc::new(pipeline);
    }

    /// What every handle shares.
    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The guards in force.
    pub fn pipeline(&self) -> Arc<Pipeline> {
        self.inner.pipeline()
    }

    /// A name for a call that no other has.
    pub fn new_request_id(&self) -> String {
        self.inner.unique_name("req-")
    }

    /// An id for a new session, of random bytes.
    pub fn new_session_id(&self) -> String {
        random_name("sess-", &*self.inner.randomness)
    }

    /// Stops all tool servers, side by side.
    pub async fn stop_tool_servers(&self) {
        let mut stopping = tokio::task::JoinSet::new();
        let servers = self.inner.servers.read().clone();
        for server in servers.into_values() {
            stopping.spawn(async move { server.connection().stop().await });
        }
        stopping.join_all().await;
    }

    /// The key that signs the receipts.
    pub fn public_key(&self) -> &PublicKey {
        self.inner.key.public_key()
    }

    /// What all kernels of the store share.
    pub fn store(&self) -> &SharedStore {
        &self.inner.store
    }

    /// The clock that the kernel goes by.
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// What every registered server offers, by name, as far as the output guards let it be shown.
    pub async fn shown_manifests(&self) -> Vec<ToolManifest> {
        let servers: Vec<Arc<Server>> = self.inner.servers.read().values().cloned().collect();
        let mut manifests = Vec::with_capacity(servers.len());
        for server in &servers {
            let shown = self.inner.shown_manifest(server).await;
            manifests.push(Arc::unwrap_or_clone(shown));
        }
        manifests.sort_by(|one, other| one.server_id.cmp(&other.server_id));
        manifests
    }

    /// What every registered server offers, by name, in its own words: for the operator, not for
    /// models.
    pub fn manifests(&self) -> Vec<ToolManifest> {
        let servers = self.inner.servers.read();
        let mut manifests: Vec<ToolManifest> =
            servers.values().map(|server| (*server.connection().manifest()).clone()).collect();
        manifests.sort_by(|one, other| one.server_id.cmp(&other.server_id));
        manifests
    }

    /// The tools of a server of which the guards in force would deny every call: they are not
    /// listed.
    pub fn unusable_tools(&self, server_id: &str) -> Arc<Vec<UnusableTool>> {
        let server = self.inner.server(server_id);
        server.map(|server| self.inner.unusable_tools(&server)).unwrap_or_default()
    }

    /// The protocols of a tool. None when no such server is registered.
    pub fn protocols_of(&self, server_id: &str, tool_name: &str) -> Option<ToolProtocols> {
        let server = self.inner.server(server_id)?;
        let asked = server.tool(tool_name).and_then(|tool| tool.target);
        let spoken = server.connection().protocol();
        Some(ToolProtocols { target: asked.unwrap_or(spoken), spoken })
    }

    /// A tool as its server publishes it.
    pub fn tool(&self, server_id: &str, tool_name: &str) -> Option<Arc<ToolDefinition>> {
        Some(self.inner.server(server_id)?.tool(tool_name)?.definition)
    }

    /// The remembered tokens of a subject that a call could use now.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn capabilities_of(&self, subject: &PublicKey) -> StoreResult<Vec<CapabilityToken>> {
        let inner = &self.inner;
        inner.revocations.catch_up(&*inner.store, inner.clock.monotonic()).await?;
        let now = inner.clock.unix_seconds();
        let mut tokens = inner.store.held_by(subject, now, MAX_LISTED).await?;
        tokens.retain(|token| {
            inner.trusted_issuers.contains(&token.issuer) && !self.is_revoked(token)
        });
        Ok(tokens)
    }

    /// Ids of tokens as they are revoked, here or elsewhere.
    pub fn revocations(&self) -> broadcast::Receiver<String> {
        self.inner.revocations.subscribe()
    }

    /// Whether the token, or one that it comes from, is known to be revoked.
    #[must_use]
    pub fn is_revoked(&self, token: &CapabilityToken) -> bool {
        let mut authority = vec![token.id.clone()];
        authority.extend(token.delegation_chain.iter().map(|link| link.capability_id.clone()));
        self.inner.revocations.any_revoked(&authority)
    }

    /// Whether a call of this agent with this token would get past its verification now. Nothing
    /// runs, and nothing is receipted.
    ///
    /// # Errors
    /// With why not: what is wrong with the token, else that everything is stopped.
    pub async fn check_token(
        &self,
        token: &PresentedToken,
        agent: &PublicKey,
    ) -> Result<(), Denial> {
        let inner = &self.inner;
        // First the token: what is said of a stop is said only to an agent with a good one.
        inner.verify_token(token, agent, inner.clock.unix_seconds()).await?;
        inner.check_running().await
    }

    /// Whether exactly this token has been verified here and is remembered.
    #[must_use]
    pub fn has_verified(&self, token: &CapabilityToken) -> bool {
        self.inner.cache.get(token).is_some()
    }

    /// Revokes a token and all that come from it. Tells whether it was not revoked before.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn revoke(&self, capability_id: &str) -> StoreResult<bool> {
        let inner = &self.inner;
        let newly = inner.store.revoke(capability_id, inner.clock.unix_seconds()).await?;
        inner.revocations.refresh(&*inner.store, inner.clock.monotonic()).await?;
        Ok(newly)
    }

    /// Denies every call, on every kernel of the store, until [`Self::resume`].
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn emergency_stop(&self, reason: &str) -> StoreResult<()> {
        self.set_stop(Some(reason.to_owned())).await
    }

    /// Ends an emergency stop.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn resume(&self) -> StoreResult<()> {
        self.set_stop(None).await
    }

    async fn set_stop(&self, reason: Option<String>) -> StoreResult<()> {
        let inner = &self.inner;
        inner.store.stop(reason).await?;
        inner.revocations.refresh(&*inner.store, inner.clock.monotonic()).await
    }

    /// Waits until the store is found to be removed, or to be behind this kernel's last mark. From then on calls are denied, and
    /// [`Self::drain`] says so.
    pub async fn lost(&self) {
        self.inner.lost.cancelled().await;
    }

    /// How many calls run now.
    pub fn in_flight(&self) -> usize {
        self.inner.running.count()
    }

    /// Whether a tool with side effects ran at this moment or later.
    pub fn changed_since(&self, moment: std::time::Instant) -> bool {
        self.inner.running.changed_since(moment)
    }

    /// Shuts down: denies new calls, waits for running ones, cancels those that outlast
    /// `patience`, and signs the last checkpoint.
    ///
    /// # Errors
    /// When the last checkpoint could not be made durable; the next start makes up for it.
    pub async fn drain(&self, patience: Duration) -> Result<(), KernelError> {
        let inner = &self.inner;
        inner.running.close();
        if tokio::time::timeout(patience, inner.running.idle()).await.is_err() {
            inner.running.give_up();
            // A call that does not end even then is recovered by the next start.
            let _ = tokio::time::timeout(LEAVE, inner.running.idle()).await;
        }
        inner.stop.cancel();
        inner.ledger.check_present().await?;
        inner.sweep().await?;
        inner.log.read_rest(&*inner.store).await?;
        inner.checkpoint(true).await?;
        inner.keep_mark().await
    }
}

/// Keeps the view of revocations fresh.
async fn poll_revocations(kernel: Weak<Inner>, stop: CancellationToken) {
    while let Some(inner) = kernel.upgrade() {
        let now = inner.clock.monotonic();
        // A store that fails leaves the view to grow old, and an old view denies.
        let _ = inner.revocations.refresh(&*inner.store, now).await;
        let pause = inner.config.revocation_poll;
        drop(inner);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Signs a checkpoint when there is enough, and now and then.
async fn make_checkpoints(kernel: Weak<Inner>, stop: CancellationToken) {
    let mut due = None;
    while let Some(inner) = kernel.upgrade() {
        let (pause, full) = (inner.config.checkpoint_interval, Arc::clone(&inner.log.full));
        // The wait does not keep the kernel alive.
        drop(inner);
        let at = *due.get_or_insert_with(|| tokio::time::Instant::now() + pause);
        let partial = tokio::select! {
            () = stop.cancelled() => return,
            () = full.notified() => false,
            () = tokio::time::sleep_until(at) => true,
        };
        let Some(inner) = kernel.upgrade() else { return };
        if partial {
            due = None;
            if let Err(error) = inner.ledger.check_present().await {
                return inner.lose(&error.into());
            }
            // What fails now is tried again at the next beat.
            let _ = inner.log.fill_gaps(&*inner.store).await;
        }
        let _ = inner.checkpoint(partial).await;
        match if partial { inner.keep_mark().await } else { Ok(()) } {
            Ok(()) => {}
            Err(error @ KernelError::Store(StoreError::RolledBack(_))) => {
                return inner.lose(&error);
            }
            Err(error) => tracing::warn!("no mark of the log can be kept: {error}"),
        }
    }
}

/// Looks for calls that were left unfinished.
async fn sweep(kernel: Weak<Inner>, stop: CancellationToken) {
    while let Some(inner) = kernel.upgrade() {
        let pause = inner.config.sweep_interval;
        drop(inner);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let Some(inner) = kernel.upgrade() else { return };
        // A store that fails is asked again at the next beat.
        let _ = inner.sweep().await;
    }
}
