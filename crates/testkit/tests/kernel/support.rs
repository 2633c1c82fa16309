//! A test kernel with its own store, and what it has signed.

use std::process::Command;
use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::message::{KernelMessage, ToolCallResponse, ToolCallResult};
use chio_core::receipt::{ChioReceipt, LoggedReceipt};
use chio_kernel::audit::{AuditReport, AuditTrust, audit};
use chio_kernel::store::ReceiptQuery;
use chio_kernel::{Clock, SystemClock};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::key;
use chio_testkit::process::{Folder, Server, Wire};
use chio_testkit::token::{grant, token};
use serde_json::Value;

/// A folder with a store `s` in it, and a kernel that serves it.
pub(crate) struct World {
    // Ends before its folder goes.
    pub(crate) server: Server,
    pub(crate) folder: Folder,
}

impl World {
    /// A kernel with these options.
    pub(crate) fn new(options: &str) -> Self {
        let folder = Folder::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_testkernel"));
        command.arg("--data").arg(folder.path("s")).arg("--unix").arg(folder.path("a.sock"));
        let server = Server::start(command.args(options.split_whitespace()));
        Self { folder, server }
    }

    pub(crate) fn connect(&self) -> Wire {
        self.server.connect()
    }

    /// A token for every tool there is.
    pub(crate) fn token(&self, id: &str) -> CapabilityToken {
        let now = SystemClock::default().unix_seconds();
        let authority = self.folder.read_key("s/authority.key");
        token(&authority, key(9).public_key(), id, vec![grant("*/*")], now)
    }

    /// Calls a tool under a token of its own, and checks that this left one receipt.
    #[track_caller]
    pub(crate) fn call(&self, id: &str, tool: &str, params: Value) -> ToolCallResponse {
        let (chunks, response) = self.stream(id, tool, params);
        assert!(chunks.is_empty(), "{chunks:?}");
        response
    }

    /// As [`World::call`], with the chunks that came before.
    #[track_caller]
    pub(crate) fn stream(
        &self,
        id: &str,
        tool: &str,
        params: Value,
    ) -> (Vec<Value>, ToolCallResponse) {
        let mut wire = self.connect();
        wire.send_call(id, &self.token(id), tool, params);
        let (chunks, response) = ending(&mut wire);
        assert_eq!(self.receipts(id), std::slice::from_ref(&response.receipt));
        (chunks, response)
    }

    /// The receipts of a token's calls, each of which holds, newest first.
    pub(crate) fn receipts(&self, capability: &str) -> Vec<ChioReceipt> {
        let query = ReceiptQuery { capability_id: Some(capability.to_owned()), ..everything() };
        let read = |receipt| match receipt {
            LoggedReceipt::Call(receipt) => *receipt,
            LoggedReceipt::Child(child) => panic!("{child:?}"),
        };
        self.logged(&query).into_iter().map(read).collect()
    }

    /// Everything that was signed, newest first.
    pub(crate) fn all(&self) -> Vec<LoggedReceipt> {
        self.logged(&everything())
    }

    fn logged(&self, query: &ReceiptQuery) -> Vec<LoggedReceipt> {
        let store = self.store();
        let rows = block_on(async { store.shared().query(query).await.unwrap() });
        let read = |row: chio_kernel::store::ReceiptRow| {
            let receipt = LoggedReceipt::from_slice(&row.body).unwrap();
            receipt.verify().unwrap();
            receipt
        };
        rows.into_iter().map(read).collect()
    }

    fn store(&self) -> OpenStore {
        let url = StoreUrl::Sqlite(self.folder.path("s"));
        let opening = OpenStore::open_existing(&url, Arc::new(SystemClock::default()));
        block_on(opening).unwrap()
    }

    /// Ends the kernel in good order and checks its whole log.
    pub(crate) fn end(mut self) -> AuditReport {
        self.server.end();
        let store = self.store();
        let authorities = block_on(store.authority_public()).unwrap().into_iter().collect();
        let trust = AuditTrust { authorities, ..AuditTrust::default() };
        let report = block_on(async { audit(&*store.shared(), &trust, |_| ()).await.unwrap() });
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.logs[0].pending, report.logs[0].open_intents), (0, 0));
        report
    }
}

fn everything() -> ReceiptQuery {
    ReceiptQuery { newest_first: true, limit: 1000, ..ReceiptQuery::default() }
}

/// The chunks of the one call that runs, and its response.
#[track_caller]
pub(crate) fn ending(wire: &mut Wire) -> (Vec<Value>, ToolCallResponse) {
    let mut chunks = Vec::new();
    loop {
        match wire.message().unwrap() {
            KernelMessage::ToolCallChunk { chunk_index, data, .. } => {
                assert_eq!(chunk_index, chunks.len() as u64);
                chunks.push(data);
            }
            KernelMessage::ToolCallResponse(response) => return (chunks, *response),
            other => panic!("{other:?}"),
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// The result of a call as it is on the wire.
pub(crate) fn written(result: &ToolCallResult) -> Value {
    serde_json::to_value(result).unwrap()
}
