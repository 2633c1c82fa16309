//! Programs that are given only so much time, and leave nothing behind.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::shell;

/// How often to look whether a program has ended.
const BEAT: Duration = Duration::from_millis(20);

/// What a program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    /// None when its time was up.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it ended, and the last that it complained of.
    pub(crate) fn describe(&self) -> String {
        let end = self.status.map_or("took too long".to_owned(), |status| status.to_string());
        let complaint = tail(&self.stderr, 20);
        if complaint.is_empty() { end } else { format!("{end}\n{complaint}") }
    }
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

/// Runs a command to its end, or to the end of its time; then nothing that it started is left.
pub(crate) fn run(mut command: Command, limit: Duration) -> Result<Ran> {
    let words = shell::words(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.process_group(0).spawn().with_context(|| format!("cannot run `{words}`"))?;
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = wait(&mut child, limit);
    signal("KILL", &format!("-{}", child.id()));
    let _ = child.wait();
    Ok(Ran { status, stdout: text(stdout), stderr: text(stderr) })
}

/// Waits for a program to end by itself.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            _ if start.elapsed() > limit => return None,
            _ => thread::sleep(BEAT),
        }
    }
}

/// Sends a signal to a process, or to a group of them when its number has a minus before it.
pub(crate) fn signal(name: &str, process: &str) {
    let mut kill = Command::new("kill");
    // There may be nothing left to send it to.
    let _ = kill.args(["-s", name, "--", process]).stderr(Stdio::null()).status();
}

fn reader(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{run, tail};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_given_only_so_much_time_and_so_are_its_children() {
        let ran = run(shell("sleep 600 & sleep 600"), Duration::from_millis(50)).unwrap();
        assert_eq!(ran.status, None);
        assert_eq!(ran.describe(), "took too long");
    }

    #[test]
    fn what_a_program_says_is_kept() {
        let ran = run(shell("echo a; echo b >&2; exit 3"), Duration::from_secs(30)).unwrap();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("a\n", "b\n"));
        assert!(!ran.is_success());
        assert_eq!(ran.describe(), "exit status: 3\nb");
        assert!(run(shell("true"), Duration::from_secs(30)).unwrap().is_success());
    }

    #[test]
    fn a_child_that_stays_behind_does_not_keep_us() {
        let ran = run(shell("sleep 600 & echo a"), Duration::from_secs(30)).unwrap();
        assert!(ran.is_success());
    }

    #[test]
    fn the_tail_of_a_text_is_its_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
