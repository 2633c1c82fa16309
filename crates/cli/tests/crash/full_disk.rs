//! A disk that is full and stays so: what stops calls still works, and so does a start.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use chio_testkit::process::{Run, until};
use chio_testkit::receipts::written;
use chio_testkit::skip;
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::World;

/// A small disk of its own for a world's store.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; none, and a note of it, where this user may not.
    fn of(world: &World, test: &str) -> Option<Self> {
        let at = world.data();
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs"]).arg(&at);
        let mounted = mount.stderr(Stdio::null()).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(at));
        }
        skip(test, "no file system can be mounted");
        None
    }

    fn fill(&self) {
        let mut filler = fs::File::create(self.0.join("filler")).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Has an operator run a command on the world's store until it works: what a kernel writes for
/// itself may take the room that the command was given.
#[track_caller]
fn operate(world: &World, line: &str) {
    until(line, || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chio"));
        command.args(line.split_whitespace()).arg("--data").arg(world.data());
        let run = Run::of(command.current_dir(world.folder.root()), b"");
        (run.code == 0).then_some(())
    });
}

#[test]
fn a_full_disk_lets_revoke_stop_and_start_work_and_no_call() {
    let world = World::new();
    let Some(disk) = SmallDisk::of(&world, "full disk, operators") else { return };
    let mut server = world.serve();
    let token = world.token("full-1", vec![grant("echo")]);
    let hi = || json!({"text": "hi"});
    let reserve = world.data().join("store.reserve");
    let is_kept = || fs::metadata(&reserve).is_ok_and(|file| file.len() == 1 << 20).then_some(());
    until("room to be set aside", is_kept);
    let answer = server.connect().call("1", &token, "echo", hi());
    assert_eq!(written(&answer.result)["status"], "ok");
    disk.fill();
    let mut wire = server.connect();
    // More than a page that may be free.
    let long = json!({"text": "a".repeat(20_000)});
    wire.send_call("2", &token, "echo", long);
    assert_eq!(wire.message(), None, "it cannot be recorded");
    // More than once, beside the kernel that has no room, and without it.
    for id in ["one", "two"] {
        operate(&world, &format!("capability revoke {id} --anyway"));
    }
    operate(&world, "kernel stop --reason full");
    server.kill();
    disk.fill();
    operate(&world, "capability revoke three --anyway");
    let server = world.serve();
    operate(&world, "capability revoke full-1 --anyway");
    disk.empty();
    operate(&world, "kernel resume");
    let token = world.token("full-2", vec![grant("echo")]);
    let answer = until("the kernel to see that it may go on", || {
        let answer = server.connect().call("3", &token, "echo", hi());
        (written(&answer.result)["status"] == "ok").then_some(answer)
    });
    answer.receipt.verify().unwrap();
    until("all of the room to be set aside", is_kept);
    world.audit("full disk");
}
