//! The servers under load, each a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::bare;

/// The binary that is measured.
pub(crate) const CHIO: &str = env!("CARGO_BIN_EXE_chio");

/// A server that ends with this value.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// The CPU time that it has used, in seconds; nothing where the system does not tell.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let (user, system): (f64, f64) =
            (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // The kernel counts in hundredths of a second.
        Some((user + system) / 100.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that goes with this value.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("chio-bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a command and waits until it says where it listens.
pub(crate) fn start(command: &mut Command, on_stderr: bool) -> Server {
    command.stdin(Stdio::null());
    if on_stderr {
        command.stderr(Stdio::piped()).stdout(Stdio::null());
    } else {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
    }
    let mut child = command.spawn().unwrap();
    let output: Box<dyn Read + Send> = if on_stderr {
        Box::new(child.stderr.take().unwrap())
    } else {
        Box::new(child.stdout.take().unwrap())
    };
    let mut lines = BufReader::new(output).lines();
    let address = loop {
        let line = lines.next().expect("the server says where it listens").unwrap();
        if let Some(address) =
            line.split("http://").nth(1).and_then(|it| it.split(['/', '"']).next())
            && let Ok(address) = address.replace("localhost", "127.0.0.1").parse()
        {
            break address;
        }
    };
    // Whatever it says from now on must not block it.
    std::thread::spawn(move || lines.for_each(drop));
    Server { child, address }
}

/// The bare axum server.
pub(crate) fn bare() -> Server {
    let mut command = Command::new(std::env::current_exe().unwrap());
    start(command.arg(bare::ARGUMENT), false)
}

/// `chio up` with the demo tools, on a store of its own.
pub(crate) fn up(folder: &Folder) -> Server {
    let mut command = Command::new(CHIO);
    command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(folder.0.join("data"));
    start(command.current_dir(&folder.0), false)
}

/// server-everything over HTTP, if it is installed.
pub(crate) fn everything() -> Option<Server> {
    let script = installed("@modelcontextprotocol/server-everything/dist/index.js")?;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("node");
    command.arg(script).arg("streamableHttp").env("PORT", port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().ok()?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    for _ in 0..200 {
        if std::net::TcpStream::connect(address).is_ok() {
            return Some(Server { child, address });
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    None
}

/// A file of an npm package that `cargo xtask mcp` has installed.
pub(crate) fn installed(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.clients/mcp");
    let folders = std::fs::read_dir(root).ok()?.filter_map(Result::ok);
    let mut files = folders.map(|folder| folder.path().join("node_modules").join(path));
    files.find(|file| file.is_file())
}
