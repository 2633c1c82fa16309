//! What an idle session keeps.

use crate::Scale;
use crate::client::Session;
use crate::servers::{Folder, up};

/// The resident memory of a process, in KiB.
fn resident(pid: u32) -> f64 {
    status(pid, "VmRSS:")
}

/// The most resident memory that a process has had, in KiB.
pub(crate) fn high_water(pid: u32) -> f64 {
    status(pid, "VmHWM:")
}

fn status(pid: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn run(scale: Scale) {
    let folder = Folder::new("memory");
    let server = up(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // What the first ones make it load is not theirs.
        let mut sessions = vec![Session::open(server.address).await];
        let before = resident(server.child.id());
        for _ in 0..scale.sessions {
            sessions.push(Session::open(server.address).await);
        }
        let after = resident(server.child.id());
        let each = (after - before) / scale.sessions as f64;
        println!(
            "\nmemory of an idle session with its connection: {each:.1} KiB ({} sessions)",
            scale.sessions
        );
    });
}
