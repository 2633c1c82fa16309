//! A command that is run to its end.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// What a run of a command came to.
#[derive(Debug)]
pub struct Run {
    /// Its exit code.
    pub code: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Run {
    /// Runs a command with this on standard input.
    ///
    /// # Panics
    /// When it does not start, or ends by a signal.
    #[track_caller]
    pub fn of(command: &mut Command, input: &[u8]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        // A command that does not read its input is free not to.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        Self::end_of(child)
    }

    #[track_caller]
    fn end_of(child: Child) -> Self {
        let output = child.wait_with_output().expect("the output of a process");
        Self {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The same run, if it ended with this exit code.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// The same run, if it wrote this to standard output.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "expected {text:?} in {self:#?}");
        self
    }

    /// The same run, if it wrote this to standard output, wherever its lines end.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn tells(self, text: &str) -> Self {
        let words: Vec<&str> = self.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(text), "expected {text:?} in {self:#?}");
        self
    }

    /// The same run, if it wrote this to standard error.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn complains(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "expected {text:?} in {self:#?}");
        self
    }

    /// The JSON object that it wrote.
    ///
    /// # Panics
    /// When it wrote something else.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        assert!(self.stdout.ends_with("}\n"), "{self:#?}");
        serde_json::from_str(&self.stdout).expect("a JSON object")
    }
}

/// A command that runs beside the test. It is killed when dropped.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Starts a command without anything on standard input.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().expect("a process")))
    }

    /// Whether it still runs.
    ///
    /// # Panics
    /// When that cannot be told.
    pub fn is_running(&mut self) -> bool {
        let child = self.0.as_mut().expect("a process");
        child.try_wait().expect("the state of a process").is_none()
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// When it ends by a signal.
    #[track_caller]
    #[must_use]
    pub fn end(mut self) -> Run {
        Run::end_of(self.0.take().expect("a process"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
