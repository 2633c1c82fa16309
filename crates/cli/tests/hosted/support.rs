//! A world for each test: a folder, a store in it, and the binary that serves and asks it.

use std::path::Path;
use std::process::{Command, Stdio};

use chio_testkit::mcp::Door;
use chio_testkit::process::{Folder, Run, Server, mcp_fixture, until};
use chio_testkit::receipts;
use serde_json::Value;

/// The binary that is tested.
const CHIO: &str = env!("CARGO_BIN_EXE_chio");
/// Leaves its process id in a file, and becomes another program.
const BECOME: &str =
    "echo $$ > pid; if [ \"$FILES\" ]; then ulimit -n \"$FILES\"; fi; exec \"$0\" \"$@\"";

/// The MCP server that is wrapped.
fn fixture() -> &'static str {
    mcp_fixture().to_str().unwrap()
}

/// A folder with a store `s` in it.
pub(crate) struct World {
    pub(crate) folder: Folder,
    /// How many files a server may have open, where it is not the usual number.
    pub(crate) files: Option<u64>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::new(), files: None }
    }

    /// A world where the demo tools are served.
    pub(crate) fn up() -> (Self, Served) {
        let world = Self::new();
        let served = world.up_with("");
        (world, served)
    }

    /// Serves the demo tools, with these options.
    pub(crate) fn up_with(&self, options: &str) -> Served {
        let mut words = vec!["up", "--listen", "127.0.0.1:0", "--data", "s"];
        words.extend(options.split_whitespace());
        let server = Server::spawn(self.becoming(&words).stdout(Stdio::null()));
        // It tells other commands where it is, when a client can come in.
        let endpoint = until("an endpoint", || {
            let text = std::fs::read(self.folder.path("s/endpoint.json")).ok()?;
            serde_json::from_slice::<Value>(&text).ok()
        });
        self.served(server, endpoint["mcp"].as_str().unwrap())
    }

    /// A world where the fixture is served to every client, with these options.
    pub(crate) fn wrapped(options: &str) -> (Self, Served) {
        let world = Self::new();
        let served = world.wrap(&format!("--policy permissive --anonymous default {options}"));
        (world, served)
    }

    /// Serves a server that is a script of the shell to every client.
    pub(crate) fn wrap_script(&self, script: &str) -> Served {
        let options = "--policy permissive --anonymous default";
        self.wrap_at("127.0.0.1:0", options, &["sh", "-c", script])
    }

    /// Serves the fixture, with these options.
    pub(crate) fn wrap(&self, options: &str) -> Served {
        self.wrap_at("127.0.0.1:0", options, &[fixture()])
    }

    /// Serves the fixture at an address, with these options.
    pub(crate) fn wrap_on(&self, address: &str, options: &str) -> Served {
        self.wrap_at(address, options, &[fixture()])
    }

    /// Serves an MCP server at an address, with these options.
    pub(crate) fn wrap_at(&self, address: &str, options: &str, command: &[&str]) -> Served {
        let mut words = vec!["mcp", "serve", "--http", address, "--data", "s"];
        words.extend(options.split_whitespace());
        words.push("--");
        words.extend(command);
        self.start(&words)
    }

    /// Starts a server that tells where it listens.
    pub(crate) fn start(&self, words: &[&str]) -> Served {
        let server = Server::start(&mut self.becoming(words));
        let url = server.endpoint();
        self.served(server, &url)
    }

    /// The binary, with its process id in a file.
    fn becoming(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", BECOME, CHIO]).args(words);
        if let Some(files) = self.files {
            command.env("FILES", files.to_string());
        }
        self.within(&mut command);
        command
    }

    fn served(&self, server: Server, url: &str) -> Served {
        let process = self.folder.read("pid").trim().to_owned();
        Served { server, door: Door::new(url), process }
    }

    fn within<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(self.folder.root()).env("TMPDIR", self.folder.root());
        command.env_remove("CHIO_AUTH_TOKEN").stdin(Stdio::null())
    }

    /// Runs the binary with these words.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        Run::of(self.within(Command::new(CHIO).args(words)), b"")
    }

    /// Runs a command line that is split at blanks.
    #[track_caller]
    pub(crate) fn line(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// All receipts, oldest first, as `chio receipt list` has them.
    #[track_caller]
    pub(crate) fn receipts(&self) -> Vec<Value> {
        let listed = self.line("receipt list --data s --json --limit 1000").ends(0).json();
        assert_eq!(listed["nextCursor"], Value::Null);
        let rows = listed["receipts"].as_array().unwrap().iter().rev();
        rows.map(|row| row["receipt"].clone()).collect()
    }

    /// The receipts of calls, oldest first: of which tool, and how each ended.
    #[track_caller]
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        receipts::calls(&self.receipts())
    }

    /// Checks that the calls left exactly these receipts.
    #[track_caller]
    pub(crate) fn check_calls(&self, expected: &[(&str, &str)]) {
        receipts::check_calls(&self.receipts(), expected);
    }

    /// A receipt.
    #[track_caller]
    pub(crate) fn receipt(&self, id: &str) -> Value {
        self.run(&["receipt", "show", id, "--data", "s", "--json"]).ends(0).json()
    }

    /// Checks that the whole store holds.
    #[track_caller]
    pub(crate) fn audit(&self) {
        self.line("log audit --data s").ends(0).says("result      clean");
    }
}

/// A server that runs.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) door: Door,
    process: String,
}

impl Served {
    /// A line of what the system knows about the process, in megabytes.
    fn megabytes(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(Path::new("/proc").join(&self.process).join("status"));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kilobytes = line.trim_start_matches(':').trim().strip_suffix(" kB").unwrap();
        kilobytes.parse::<u64>().unwrap() / 1024
    }

    /// How many processes it has started that still run.
    pub(crate) fn children(&self) -> usize {
        let children = Path::new("/proc").join(&self.process).join("task");
        let tasks = std::fs::read_dir(children).unwrap().filter_map(Result::ok);
        let of_task = |task: std::fs::DirEntry| {
            let children = std::fs::read_to_string(task.path().join("children"));
            children.unwrap_or_default().split_whitespace().count()
        };
        tasks.map(of_task).sum()
    }

    /// How much memory it uses.
    pub(crate) fn memory(&self) -> u64 {
        self.megabytes("VmRSS")
    }

    /// The most that it has used at any time.
    pub(crate) fn most_memory(&self) -> u64 {
        self.megabytes("VmHWM")
    }
}

/// The growth of a server's memory from now on.
pub(crate) struct Growth<'a> {
    served: &'a Served,
    before: u64,
    /// By how many megabytes it may grow.
    most: u64,
}

impl<'a> Growth<'a> {
    pub(crate) fn of(served: &'a Served, most: u64) -> Self {
        Self { served, before: served.memory(), most }
    }

    /// Checks the most that was used at any time since.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "the figures are for people who measure")]
    pub(crate) fn check(&self, what: &str) {
        let most = self.served.most_memory();
        println!("{what}: from {} to {most} MB at most", self.before);
        assert!(most < self.before + self.most, "{what}: from {} to {most} MB", self.before);
    }
}
