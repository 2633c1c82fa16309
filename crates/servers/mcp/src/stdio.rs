//! The transport: a child process that is spoken to on standard input and output.
//!
//! A conversation knows nothing of it but its [`Outbox`](crate::outbox::Outbox) and that lines are
//! brought to [`Conversation::take`]; another transport is another file like this one.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chio_net::lines::{Line, Lines};
use chio_net::memory::read_text;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::BufReader;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

use crate::conversation::Conversation;
use crate::error::McpError;
use crate::options::McpServerOptions;

/// The variables of our environment that children see: who and where they are, and how programs that
/// are fetched on demand find their files and the network. SECURITY: any other may be a secret.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "NVM_DIR",
    "VOLTA_HOME",
    "PYENV_ROOT",
    "UV_CACHE_DIR",
    "NPM_CONFIG_CACHE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];
/// Variables with the URL of a proxy, in small and in capital letters: seen where no password is in it.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
/// How many bytes are read at once.
const READ_AT_ONCE: usize = 64 * 1024;
/// The longest line of standard error that is written to the log.
const MAX_LOG_LINE: usize = 4096;
/// How long what a process has left in its pipes is still read.
const LEFTOVERS: Duration = Duration::from_secs(1);
/// How long a process that has closed its output may take to say how it ended.
const LAST_WORD: Duration = Duration::from_millis(500);

/// A hold on a running process. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Link {
    stop: CancellationToken,
    kill: CancellationToken,
    gone: CancellationToken,
}

impl Link {
    /// Ends the process as gently as it lets us, and waits until it is gone.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.gone.cancelled().await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

/// Starts the process that a conversation is with.
///
/// # Errors
/// When it does not start.
pub(crate) fn open(conversation: &Arc<Conversation>) -> Result<Link, McpError> {
    let settings = &conversation.settings;
    let program = settings.command.first().ok_or(McpError::NoCommand)?;
    let failed = |problem: String| McpError::NotStarted { program: program.clone(), problem };
    let mut child =
        command(program, settings).spawn().map_err(|error| failed(error.to_string()))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed("its pipes are missing".to_owned()));
    };
    let process = Process {
        group: Group::from_child(&child),
        child,
        reader: tokio::spawn(read(stdout, Arc::clone(conversation)).with_current_subscriber()),
        writer: tokio::spawn(write(stdin, Arc::clone(conversation))),
        logger: tokio::spawn(log(stderr, Arc::clone(settings)).with_current_subscriber()),
    };
    let new = CancellationToken::new;
    let link = Link { stop: new(), kill: new(), gone: new() };
    let (stop, kill, gone) = (link.stop.clone(), link.kill.clone(), link.gone.clone());
    let conversation = Arc::clone(conversation);
    tokio::spawn(async move {
        process.keep(&conversation, &stop, &kill).await;
        gone.cancel();
    });
    Ok(link)
}

fn command(program: &str, settings: &McpServerOptions) -> Command {
    let mut command = Command::new(program);
    command.args(settings.command.iter().skip(1));
    let passed = env::vars_os().filter(|(name, value)| is_passed(name, value));
    command.env_clear().envs(passed).envs(&settings.env);
    if let Some(folder) = &settings.cwd {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What it starts itself ends with it.
    command.process_group(0).kill_on_drop(true);
    command
}

/// Whether children see a variable of our environment.
fn is_passed(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let capital = name.to_ascii_uppercase();
    PASSED.contains(&name)
        || name.starts_with("LC_")
        || name == "npm_config_cache"
        || (PROXIES.contains(&&*capital) && !value.as_encoded_bytes().contains(&b'@'))
}

/// A process and everything that it has started, killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn from_child(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // A process that is gone needs no signal.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Kills the processes that are left, once: the number may be another's before long.
    fn end(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why reading ended.
enum ReadEnd {
    Closed,
    Garbage,
}

struct Process {
    group: Group,
    child: Child,
    reader: JoinHandle<ReadEnd>,
    writer: JoinHandle<()>,
    logger: JoinHandle<()>,
}

/// What a process's end begins with.
enum Ending {
    Kill,
    Stop,
    Exited(io::Result<ExitStatus>),
    Read(ReadEnd),
}

impl Process {
    /// Stays until the process is gone.
    async fn keep(
        mut self,
        conversation: &Conversation,
        stop: &CancellationToken,
        kill: &CancellationToken,
    ) {
        let ending = tokio::select! {
            biased;
            () = kill.cancelled() => Ending::Kill,
            () = stop.cancelled() => Ending::Stop,
            status = self.child.wait() => Ending::Exited(status),
            end = &mut self.reader => Ending::Read(end.unwrap_or(ReadEnd::Closed)),
        };
        let read_all = matches!(ending, Ending::Read(_));
        let limits = &conversation.settings.limits;
        let error = match ending {
            Ending::Kill => McpError::Stopped,
            Ending::Stop => {
                conversation.outbox.finish();
                self.end_gently(limits.stop).await;
                McpError::Stopped
            }
            Ending::Exited(status) => ended(&status),
            Ending::Read(ReadEnd::Garbage) => {
                let max = limits.max_garbage;
                McpError::Ended(format!("it wrote {max} lines in a row that are no messages"))
            }
            Ending::Read(ReadEnd::Closed) => {
                conversation.outbox.finish();
                match timeout(LAST_WORD, self.child.wait()).await {
                    Ok(status) => ended(&status),
                    Err(_) => {
                        let error = McpError::Ended("it closed its output".to_owned());
                        conversation.end(&error);
                        self.end_gently(limits.stop).await;
                        error
                    }
                }
            }
        };
        self.group.end();
        let _ = self.child.wait().await;
        // Where it was stopped, no more is waited for.
        let leftovers =
            if error == McpError::Stopped { limits.stop.min(LEFTOVERS) } else { LEFTOVERS };
        if !read_all {
            let _ = timeout(leftovers, &mut self.reader).await;
        }
        conversation.end(&error);
        let _ = timeout(leftovers, &mut self.logger).await;
        if error != McpError::Stopped {
            conversation.settings.note(&error);
        }
        for task in [self.writer, self.logger] {
            task.abort();
        }
        self.reader.abort();
    }

    /// Waits for a process that was told by the end of its input, then tells it louder.
    async fn end_gently(&mut self, patience: Duration) {
        if timeout(patience, self.child.wait()).await.is_err() {
            self.group.signal(Signal::TERM);
            let _ = timeout(patience, self.child.wait()).await;
        }
    }
}

/// How a process ended.
fn ended(status: &io::Result<ExitStatus>) -> McpError {
    use std::os::unix::process::ExitStatusExt;
    let words = match status.as_ref().map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => format!("exit status {code}"),
        Ok((None, Some(signal))) => format!("signal {signal}"),
        _ => "nobody knows how".to_owned(),
    };
    McpError::Ended(words)
}

async fn write(stdin: ChildStdin, conversation: Arc<Conversation>) {
    // A child that does not read any more ends in its own way, and is noticed by that.
    let _ = conversation.outbox.write_to(stdin).await;
    conversation.outbox.finish();
}

/// Brings every line to the conversation.
async fn read(stdout: ChildStdout, conversation: Arc<Conversation>) -> ReadEnd {
    let settings = Arc::clone(&conversation.settings);
    let limits = &settings.limits;
    let mut lines =
        Lines::new(BufReader::with_capacity(READ_AT_ONCE, stdout), limits.max_line_bytes);
    let mut garbage = 0;
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => line,
            Line::Cut { head, tail } => {
                let error = McpError::TooLong(limits.max_line_bytes);
                settings.note(&error);
                conversation.take_ends(head, tail, error);
                continue;
            }
            Line::Crowded => {
                settings.note(&McpError::Crowded);
                conversation.fail_all(&McpError::Crowded);
                continue;
            }
        };
        let (length, taking) = (line.len(), Arc::clone(&conversation));
        if read_text(line, move |line| taking.take(line)).await == Ok(true) {
            garbage = 0;
            continue;
        }
        garbage += 1;
        settings.note(format_args!("a line of {length} bytes is no message"));
        if garbage >= limits.max_garbage {
            return ReadEnd::Garbage;
        }
    }
    ReadEnd::Closed
}

/// Writes standard error to the log.
async fn log(stderr: ChildStderr, settings: Arc<McpServerOptions>) {
    let mut lines = Lines::new(BufReader::new(stderr), MAX_LOG_LINE);
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Whole(line) => settings.note(harmless(&line)),
            Line::Crowded => {}
            Line::Cut { head, .. } => settings.note(format_args!("{}…", harmless(head))),
        }
    }
}

/// A line as text that cannot steer the terminal of its reader.
pub(crate) fn harmless(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut plain = String::with_capacity(text.len());
    for letter in text.trim_end().chars() {
        // Direction marks reorder what is shown around them.
        let reorders = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (letter.is_control() && letter != '\t') || reorders {
            plain.extend(letter.escape_unicode());
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_see_a_few_variables_and_no_password_of_a_proxy() {
        for (name, value, expected) in [
            ("PATH", "/bin", true),
            ("LC_ALL", "C", true),
            ("https_proxy", "http://proxy:3128", true),
            ("HTTPS_PROXY", "http://user:secret@proxy:3128", false),
            ("GITHUB_TOKEN", "x", false),
            ("CHIO_AUTH_TOKEN", "x", false),
            ("path", "/bin", false),
            ("LD_PRELOAD", "x.so", false),
        ] {
            assert_eq!(is_passed(name.as_ref(), value.as_ref()), expected, "{name}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(harmless(b"a\tb\x1b[31m\r"), "a\tb\\u{1b}[31m");
        assert_eq!(harmless("\u{202e}x\u{85}".as_bytes()), "\\u{202e}x");
        assert_eq!(harmless(b"\xff"), "\u{fffd}");
    }
}
