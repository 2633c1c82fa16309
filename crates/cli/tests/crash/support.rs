//! A world for each test: a folder with a store in it, the binary that serves it, and its seed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::crypto::{Keypair, random_bytes};
use chio_core::money::MonetaryAmount;
use chio_edge::Endpoint;
use chio_kernel::store::ReceiptQuery;
use chio_kernel::{Clock, SystemClock};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::key;
use chio_testkit::process::{Folder, Run, Server, copy_tree, until};
use chio_testkit::token::{self, grant};
use tokio::runtime::Runtime;

use crate::check::{Counted, Record, problems};
use crate::snapshot::Snapshot;

/// The folder of the store, below that of the world.
pub(crate) const DATA: &str = "s";
/// Names the seed.
const SEED: &str = "CHIO_CRASH_SEED";

/// The key of the agent in these tests.
pub(crate) fn agent() -> Keypair {
    key(9)
}

/// Chance that can be had again.
#[derive(Default)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Chance for a test, which is told its seed.
    pub(crate) fn of(test: &str) -> Self {
        let given = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|| u64::from(u32::from_le_bytes(random_bytes())));
        writeln!(std::io::stderr(), "{test}: {SEED}={seed}").unwrap();
        Self(seed)
    }

    /// Chance that goes another way.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` up to and without `end`.
    pub(crate) fn within(&mut self, least: u64, end: u64) -> u64 {
        least + self.next() % (end - least)
    }

    /// True once in this many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.within(0, times) == 0
    }

    /// Sleeps for some milliseconds.
    pub(crate) fn pause(&mut self, least: u64, end: u64) {
        // In steps of a hundredth, so that short pauses differ too.
        let micros = self.within(least * 1000, end * 1000);
        std::thread::sleep(Duration::from_micros(micros));
    }
}

/// A folder with a store in it, and what is known of the calls that were answered.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) record: Record,
    /// The tokens whose budgets are checked.
    pub(crate) counted: Vec<Counted>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::new(), record: Record::default(), counted: Vec::new() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path(DATA)
    }

    /// The command that serves the store at a socket of this name.
    pub(crate) fn serve_command(&self, socket: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chio"));
        command.args(["native", "serve", "--data", DATA, "--unix"]).arg(self.folder.path(socket));
        command.current_dir(self.folder.root()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Serves the store at the socket `a.sock`.
    pub(crate) fn serve(&self) -> Server {
        Server::start(&mut self.serve_command("a.sock"))
    }

    /// A token of the agent's, by the store's authority.
    pub(crate) fn token(&self, id: &str, grants: Vec<ToolGrant>) -> CapabilityToken {
        let authority = self.folder.read_key("s/authority.key");
        // A little in the past, as the process may see another second than we do.
        let now = SystemClock::default().unix_seconds() - 1;
        token::token(&authority, agent().public_key(), id, grants, now)
    }

    /// The store as it is now.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        Snapshot::read(&self.data(), &mut self.record)
    }

    /// What is wrong with the store as it is now.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        let snapshot = self.snapshot();
        problems(&snapshot, &mut self.record, &self.counted)
    }

    /// Checks the store as it is now, and gives it.
    #[track_caller]
    pub(crate) fn check(&mut self, when: &str) -> Snapshot {
        let snapshot = self.snapshot();
        let found = problems(&snapshot, &mut self.record, &self.counted);
        assert!(found.is_empty(), "{when}: {found:#?}");
        snapshot
    }

    /// Checks by the command, in a process of its own, that the whole store holds.
    #[track_caller]
    pub(crate) fn audit(&self, when: &str) {
        self.audit_of(&self.data(), when);
    }

    /// As [`World::audit`], on a copy, which leaves the store as the crash has left it.
    #[track_caller]
    pub(crate) fn audit_copy(&self, when: &str) {
        let copy = self.folder.path("copy");
        copy_tree(&self.data(), &copy);
        self.audit_of(&copy, when);
        fs::remove_dir_all(copy).unwrap();
    }

    #[track_caller]
    fn audit_of(&self, data: &Path, when: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chio"));
        command.args(["log", "audit", "--json", "--data"]).arg(data);
        let run = Run::of(command.current_dir(self.folder.root()), b"");
        assert_eq!(run.code, 0, "{when}: {run:#?}");
        assert_eq!(run.json()["valid"], true, "{when}: {run:#?}");
    }

    /// Checks that the index of receipts, asked through the store, has each receipt once.
    #[track_caller]
    pub(crate) fn check_index(&mut self, runtime: &Runtime, when: &str) {
        let url = StoreUrl::Sqlite(self.data());
        let opening = OpenStore::open_existing(&url, Arc::new(SystemClock::default()));
        let store = runtime.block_on(opening).unwrap();
        let mut query = ReceiptQuery { limit: 500, ..ReceiptQuery::default() };
        let mut found = Vec::new();
        loop {
            let page = runtime.block_on(store.shared().query(&query)).unwrap();
            let Some(last) = page.last() else { break };
            query.cursor = Some(last.cursor);
            found.extend(page.into_iter().map(|row| row.body));
        }
        store.close();
        let mut logged: Vec<_> =
            self.snapshot().receipts.iter().map(|it| it.body.clone()).collect();
        found.sort();
        logged.sort();
        assert!(found == logged, "{when}: the index has {}, not {}", found.len(), logged.len());
    }

    /// Waits until no call is open in any log.
    #[track_caller]
    pub(crate) fn wait_until_closed(&mut self) {
        until("every intent to be closed", || self.snapshot().intents.is_empty().then_some(()));
    }
}

/// Where a server is.
pub(crate) fn endpoint(server: &Server) -> Endpoint {
    Endpoint::Unix(server.endpoint().strip_prefix("unix:").unwrap().into())
}

/// Leave to call a tool so often.
pub(crate) fn at_most(tool: &str, calls: u32) -> ToolGrant {
    ToolGrant { max_invocations: Some(calls), ..grant(tool) }
}

/// Leave to call a tool for this many cents.
pub(crate) fn for_money(tool: &str, cents: u64) -> ToolGrant {
    ToolGrant { max_total_cost: Some(MonetaryAmount::new(cents, "USD")), ..grant(tool) }
}
