//! A world for each test: a folder, a store in it, and the binary that serves and asks it.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Weak};

use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::message::ToolCallResponse;
use chio_core::receipt::ChioReceipt;
use chio_kernel::{Clock, SystemClock};
use chio_testkit::process::{Folder, Run, Running, Server, until};
pub(crate) use chio_testkit::receipts::{reason, written};
use chio_testkit::{key, token};
use serde_json::Value;

/// The key of the agent in these tests.
pub(crate) fn agent() -> Keypair {
    key(9)
}

/// Now, in Unix seconds.
pub(crate) fn now() -> u64 {
    SystemClock::default().unix_seconds()
}

/// A folder with a store `s` in it.
pub(crate) struct World {
    pub(crate) folder: Folder,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        folder.write_key("agent.key", &agent());
        Self { folder }
    }

    /// A world whose store is served at a socket.
    pub(crate) fn served() -> (Self, Server) {
        let world = Self::new();
        let server = world.serve("");
        (world, server)
    }

    /// The binary, to be run in this world.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chio"));
        command.args(words).current_dir(self.folder.root()).env("TMPDIR", self.folder.root());
        command.stdin(Stdio::null());
        command
    }

    /// Runs the binary with these words.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        Run::of(&mut self.command(words), b"")
    }

    /// Runs a command line that is split at blanks.
    #[track_caller]
    pub(crate) fn line(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Serves the store at the socket `a.sock`.
    pub(crate) fn serve(&self, options: &str) -> Server {
        self.serve_at("a.sock", options)
    }

    /// Serves the store at a socket of this name.
    pub(crate) fn serve_at(&self, socket: &str, options: &str) -> Server {
        let socket = self.folder.path(socket);
        let mut words = vec!["native", "serve", "--data", "s", "--unix", socket.to_str().unwrap()];
        words.extend(options.split_whitespace());
        Server::start(&mut self.command(&words))
    }

    /// The store's authority.
    pub(crate) fn authority(&self) -> Keypair {
        self.folder.read_key("s/authority.key")
    }

    /// A token of the agent's.
    pub(crate) fn token(&self, id: &str, grants: Vec<ToolGrant>) -> CapabilityToken {
        self.token_for(agent().public_key(), id, grants)
    }

    /// A token for a subject.
    pub(crate) fn token_for(
        &self,
        subject: &PublicKey,
        id: &str,
        grants: Vec<ToolGrant>,
    ) -> CapabilityToken {
        token::token(&self.authority(), subject, id, grants, now())
    }

    /// Writes a token to a file.
    pub(crate) fn write_token(&self, name: &str, token: &CapabilityToken) {
        self.folder.write(name, serde_json::to_vec(token).unwrap());
    }

    /// Starts `chio native call` at a socket with a token of the agent's and these words.
    pub(crate) fn start_call(
        &self,
        socket: &str,
        token: &CapabilityToken,
        words: &[&str],
    ) -> Running {
        let file = format!("{}.json", token.id);
        self.write_token(&file, token);
        let words = [&["native", "call", "--unix", socket, "--token", &file], words].concat();
        Running::start(&mut self.command(&words))
    }

    /// The requests for approval of a token's calls, newest first, whatever became of them.
    #[track_caller]
    pub(crate) fn requests(&self, token: &str) -> Vec<Value> {
        let line = "approvals list --data s --state any --limit 1000 --json";
        let listed = self.line(line).ends(0).json();
        let rows = listed["approvals"].as_array().unwrap().iter();
        rows.filter(|row| row["request"]["capability_id"] == token).cloned().collect()
    }

    /// The id of the request of a token's only call, as soon as that waits.
    #[track_caller]
    pub(crate) fn waiting(&self, token: &str) -> String {
        until("a call to wait for approval", || {
            let rows = self.requests(token);
            let row = rows.first().filter(|row| row["state"] == "pending")?;
            Some(row["request"]["id"].as_str().unwrap().to_owned())
        })
    }

    /// Checks that the only request of a token's calls came to this.
    #[track_caller]
    pub(crate) fn check_request(&self, token: &str, state: &str) {
        let rows = self.requests(token);
        let states: Vec<_> = rows.iter().map(|row| &row["state"]).collect();
        assert_eq!(states, [state]);
        let receipts = self.receipts(token);
        assert_eq!(receipts.len(), 1, "{receipts:?}");
        assert_eq!(rows[0]["receipt_id"], receipts[0].id);
    }

    /// The receipts of the store that a filter leaves, newest first, as `chio receipt list` has
    /// them.
    #[track_caller]
    pub(crate) fn rows(&self, filter: &str) -> Vec<Value> {
        let line = format!("receipt list --data s --json --limit 1000 {filter}");
        let listed = self.line(&line).ends(0).json();
        assert_eq!(listed["nextCursor"], Value::Null);
        listed["receipts"].as_array().unwrap().clone()
    }

    /// The receipts of a token's calls, each of which holds.
    #[track_caller]
    pub(crate) fn receipts(&self, token: &str) -> Vec<ChioReceipt> {
        let rows = self.rows(&format!("--capability {token}"));
        let read = |row: Value| -> ChioReceipt {
            let receipt: ChioReceipt = serde_json::from_value(row["receipt"].clone()).unwrap();
            receipt.verify().unwrap();
            receipt
        };
        rows.into_iter().map(read).collect()
    }

    /// Checks that a call left one receipt, which is the one that its answer carried.
    #[track_caller]
    pub(crate) fn check_receipt(&self, response: &ToolCallResponse) {
        let receipts = self.receipts(&response.receipt.capability_id);
        assert_eq!(receipts, std::slice::from_ref(&response.receipt));
    }

    /// Checks that the whole store holds.
    #[track_caller]
    pub(crate) fn audit(&self) -> Value {
        self.line("log audit --data s --json").ends(0).json()
    }
}

/// A world that tests share as long as one of them uses it.
pub(crate) struct Shared {
    // Ends before its folder goes.
    pub(crate) server: Server,
    pub(crate) world: World,
}

impl Shared {
    /// The world that all of them share. Tests tell their receipts apart by their tokens.
    pub(crate) fn get() -> Arc<Self> {
        static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let (world, server) = World::served();
        let running = Arc::new(Self { world, server });
        *shared = Arc::downgrade(&running);
        running
    }
}

/// A runtime for tests that need many things at once.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}
