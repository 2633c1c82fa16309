//! What wrapping adds to a server over stdio: the same calls with and without us in between.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Scale;
use crate::servers::{CHIO, Folder, installed};

/// A client over stdio, one call at a time.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    fn open(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut client = Self { child, input, output: BufReader::new(output), calls: 0 };
        let info = json!({"name": "bench", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        client.request("initialize", &params);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &serde_json::Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &serde_json::Value) -> String {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let wanted = format!("\"id\":{id}");
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server is there");
            if line.contains(&wanted) && !line.contains("\"method\"") {
                return line;
            }
        }
    }

    fn time_calls(
        &mut self,
        tool: &str,
        arguments: &serde_json::Value,
        calls: usize,
    ) -> Vec<Duration> {
        let params = json!({"name": tool, "arguments": arguments});
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let begun = Instant::now();
            let answer = self.request("tools/call", &params);
            times.push(begun.elapsed());
            assert!(
                !answer.contains("\"isError\":true") && answer.contains("\"result\""),
                "{answer}"
            );
        }
        times
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times[at].as_secs_f64() * 1e6
}

fn compare(
    name: &str,
    upstream: &[String],
    (tool, arguments): (&str, serde_json::Value),
    scale: Scale,
) {
    let folder = Folder::new("wrapping");
    let (program, rest) = upstream.split_first().unwrap();
    let mut direct = Client::open(Command::new(program).args(rest));
    let mut wrapped = Command::new(CHIO);
    wrapped.args(["mcp", "serve", "--data"]).arg(folder.0.join("data")).arg("--").args(upstream);
    let mut wrapped = Client::open(wrapped.current_dir(&folder.0));
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..scale.turns {
        plain.extend(direct.time_calls(tool, &arguments, scale.calls / scale.turns));
        ours.extend(wrapped.time_calls(tool, &arguments, scale.calls / scale.turns));
    }
    println!("\nwhat wrapping adds to {name} over stdio, one caller");
    for percent in [50, 99] {
        let (plain, ours) = (percentile(&mut plain, percent), percentile(&mut ours, percent));
        println!(
            "  p{percent}: direct {plain:.0} µs, wrapped {ours:.0} µs, adds {:.0} µs",
            ours - plain
        );
    }
}

pub(crate) fn run(scale: Scale) {
    let built: PathBuf = Path::new(CHIO).with_file_name("mcp-fixture");
    if built.is_file() {
        let arguments = ("echo", json!({"text": "hello"}));
        compare("a plain server", &[built.display().to_string()], arguments, scale);
    } else {
        println!(
            "\nwrapping a plain server: skipped, `cargo build --release -p chio-testkit --bin mcp-fixture` makes it"
        );
    }
    match installed("@modelcontextprotocol/server-everything/dist/index.js") {
        Some(script) => {
            let upstream = ["node".to_owned(), script.display().to_string(), "stdio".to_owned()];
            compare("server-everything", &upstream, ("echo", json!({"message": "hello"})), scale);
        }
        None => println!("\nwrapping server-everything: skipped, `cargo xtask mcp` installs it"),
    }
}
