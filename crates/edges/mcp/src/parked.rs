//! Calls that wait for an approval after their request was answered.
//!
//! A client gives a request up after a minute or so, and people take longer. So a request is told in
//! time that a person has to agree, while its call stays in the inbox. The same call again, by the
//! same principal, is not another one: it waits for the call that is there, and takes its result.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chio_core::canonical;
use chio_core::tool_result::ToolResult;
use chio_cross_protocol::{ApprovalRequest, OrchestratedRequest};
use chio_edge::tasks::{Record, TableLimits, TaskEntry, TaskTable};
use chio_net::jsonrpc::RpcError;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::caller::{McpCaller, WaitingRequest};
use crate::error::unreleased;
use crate::session::McpSession;

/// What a call comes to.
pub(crate) type Ended = Result<Value, RpcError>;
/// A call that runs.
pub(crate) type Run = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// How much is kept. What waits is bounded by the inbox as well.
const LIMITS: TableLimits = TableLimits {
    tasks_per_owner: 64,
    tasks: 1024,
    bytes: 64 << 20,
    // The result of a call that was approved while no request waited.
    lifetime: Duration::from_secs(3600),
};

/// The calls that are without a request, by who made them.
pub(crate) struct ParkedCalls {
    table: TaskTable<String, ParkedCall>,
    /// Whether there ever was one: most processes have none, and look for none.
    used: AtomicBool,
}

/// A call that was told to wait for an approval.
#[derive(Clone)]
struct ParkedCall {
    approval: Arc<ApprovalRequest>,
    /// None when it has ended.
    caller: Option<Arc<McpCaller>>,
    place: Arc<Place>,
    /// How many bytes its result has.
    size: usize,
}

/// What a parked call and the request that waits for it share.
#[derive(Default)]
struct Place {
    /// Whether a request waits for the call.
    is_taken: AtomicBool,
    ended: Mutex<Option<Ended>>,
}

impl Record for ParkedCall {
    fn id(&self) -> &str {
        &self.approval.id
    }

    fn size(&self) -> usize {
        self.size
    }
}

impl ParkedCall {
    /// Whether this is the call that is asked for again: of the same subject, with the same
    /// arguments.
    fn is(&self, request: &OrchestratedRequest, arguments: &str) -> bool {
        let ApprovalRequest { subject, server_id, tool_name, intent, .. } = &*self.approval;
        let named = intent.context.as_ref().and_then(|context| context.get("parameterHash"));
        [&request.token.subject, &request.agent] == [subject, subject]
            && *server_id == request.server_id
            && *tool_name == request.tool_name
            && named.and_then(Value::as_str) == Some(arguments)
    }
}

/// Whether a call can be asked for again by its tool and arguments alone. SECURITY: a proof or an
/// approval is for one request and is checked with it, and a stated intent may be another.
pub(crate) const fn is_plain(request: &OrchestratedRequest) -> bool {
    request.dpop_proof.is_none()
        && request.approval.is_none()
        && request.governed_intent.is_none()
        && request.capability_ref.is_none()
}

/// Whose the parked calls of a session are: its principal's, so that a client that connects again
/// finds them. SECURITY: clients without a name are one principal, and not one client.
fn owner(session: &McpSession) -> &String {
    let has_name = session.kernel_session.principal.is_authenticated();
    if has_name { &session.owner } else { &session.id }
}

impl Default for ParkedCalls {
    fn default() -> Self {
        Self { table: TaskTable::new(LIMITS), used: AtomicBool::default() }
    }
}

impl ParkedCalls {
    /// Keeps a call that waits for an approval, without a request. Gives it back when there is no
    /// room for it.
    pub(crate) fn keep(
        session: &Arc<McpSession>,
        approval: Arc<ApprovalRequest>,
        caller: &Arc<McpCaller>,
        run: Run,
    ) -> Result<(), Run> {
        let shared = Arc::clone(&session.shared);
        let (now, place) = (shared.orchestrator.now(), Arc::default());
        let call = ParkedCall { approval, caller: Some(Arc::clone(caller)), place, size: 0 };
        let (record, owner) = (Arc::new(call.clone()), owner(session).clone());
        let entry = TaskEntry::running(owner, record, false, &CancellationToken::new());
        let over = entry.ended.clone();
        if shared.parked.table.insert(entry, now).is_err() {
            return Err(run);
        }
        shared.parked.used.store(true, Ordering::Release);
        caller.detach();
        let caller = Arc::clone(caller);
        tokio::spawn(async move {
            // Also when the call panics, a request that waits for it goes on.
            let over = over.drop_guard();
            let ended = run.await;
            let is_failure =
                ended.as_ref().map_or(true, |result| ToolResult::new(result).is_error());
            let size = ended.as_ref().map_or(0, |result| result.to_string().len());
            *call.place.ended.lock() = Some(ended);
            if is_failure && caller.has_expired() {
                // Nothing ran, and no approver said no: the same call may ask once more.
                shared.parked.table.remove(&call.approval.id);
            } else {
                let ended = ParkedCall { caller: None, size, ..call };
                shared.parked.table.update(Arc::new(ended), shared.orchestrator.now());
            }
            drop(over);
        });
        Ok(())
    }

    /// Cancels what only this session could ask for again, because it is over.
    pub(crate) fn leave(session: &McpSession) {
        let shared = &session.shared;
        if !shared.parked.used.load(Ordering::Acquire) || *owner(session) != session.id {
            return;
        }
        for entry in shared.parked.table.list(&session.id, shared.orchestrator.now()) {
            match &entry.record.caller {
                Some(caller) => caller.cancel(),
                None => shared.parked.table.remove(entry.record.id()),
            }
        }
    }
}

/// A parked call that a request waits for. When the request leaves, the call is parked again.
pub(crate) struct Joined<'a> {
    session: &'a McpSession,
    entry: TaskEntry<String, ParkedCall>,
}

impl<'a> Joined<'a> {
    /// The parked call that is asked for again, if there is one and no other request waits for it.
    pub(crate) async fn find(
        session: &'a McpSession,
        request: &OrchestratedRequest,
    ) -> Option<Self> {
        let shared = &session.shared;
        if !shared.parked.used.load(Ordering::Acquire) || !is_plain(request) {
            return None;
        }
        let entries = shared.parked.table.list(owner(session), shared.orchestrator.now());
        if entries.is_empty() {
            return None;
        }
        // What would not be called now gets nothing, and its denial from the kernel.
        shared.orchestrator.check_token(&request.token).await.ok()?;
        let arguments = canonical::hash(&request.arguments).ok()?;
        let mut same = entries.into_iter().filter(|entry| entry.record.is(request, &arguments));
        let entry = same.find(|it| !it.record.place.is_taken.swap(true, Ordering::AcqRel))?;
        Some(Self { session, entry })
    }

    /// Waits for the end of the call; else gives the approval that it still waits for, after this
    /// long. A request that is cancelled cancels the call.
    pub(crate) async fn wait(
        self,
        request: WaitingRequest,
        cancellation: &CancellationToken,
        patience: Option<Duration>,
    ) -> Result<Ended, Arc<ApprovalRequest>> {
        let call = &self.entry.record;
        if let Some(caller) = &call.caller {
            caller.attach(request);
        }
        let outwaited = async {
            match (&call.caller, patience) {
                (Some(caller), Some(patience)) => caller.outwaited(patience).await,
                _ => std::future::pending().await,
            }
        };
        let cancelled = async {
            cancellation.cancelled().await;
            if let Some(caller) = &call.caller {
                caller.cancel();
            }
            // Its end is what is waited for.
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = self.entry.ended.cancelled() => {
                self.session.shared.parked.table.remove(call.id());
                let ended = call.place.ended.lock().take();
                Ok(ended.unwrap_or_else(|| Err(unreleased())))
            }
            ended = cancelled => ended,
            approval = outwaited => Err(approval),
        }
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        let call = &self.entry.record;
        if let Some(caller) = &call.caller {
            caller.detach();
        }
        call.place.is_taken.store(false, Ordering::Release);
    }
}
