//! Which code may be run: its language, what it imports, and whether it reaches the network.

mod imports;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::{Value, json};

use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "code-execution",
    section: "rules.code_execution",
    about: "Looks at code before a tool runs it: its language, the modules that it imports, whether \
            it reaches the network, and how long it may run. It reads code as text; whoever wants \
            to hide an import can. A sandbox is the real control.",
    keys: &[
        Key::new("enabled", "true or false", "false", "whether it is in force"),
        Key::new(
            "language_allowlist",
            "a list of languages such as `python`",
            "(all)",
            "the languages that may be run; code that does not tell its language is none of them",
        ),
        Key::new(
            "module_denylist",
            "a list of modules",
            "(those that start programs or go around the language)",
            "the modules that code may not import",
        ),
        Key::new("network_access", "true or false", "false", "whether code may use the network"),
        Key::new(
            "max_execution_time_ms",
            "a whole number",
            "(none)",
            "how long a call may ask for",
        ),
        Key::new(
            "max_scan_bytes",
            "a whole number from 1 to 10000000",
            "65536",
            "how long code may be, since longer code is not looked at",
        ),
    ],
    always: false,
    build,
    samples: SAMPLES,
};

/// Modules that start programs or go around the language.
const MODULES: &[&str] = &[
    "subprocess",
    "ctypes",
    "cffi",
    "pty",
    "child_process",
    "node:child_process",
    "vm",
    "node:vm",
    "worker_threads",
    "cluster",
    "multiprocessing",
    "pickle",
    "marshal",
    "importlib",
    "pexpect",
];

/// Modules that reach the network.
const NETWORK: &[&str] = &[
    "socket",
    "requests",
    "urllib",
    "urllib2",
    "urllib3",
    "http",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
    "telnetlib",
    "paramiko",
    "websocket",
    "websockets",
    "xmlrpc",
    "net",
    "node:net",
    "node:http",
    "https",
    "node:https",
    "axios",
    "node-fetch",
    "got",
    "undici",
    "dgram",
    "node:dgram",
    "tls",
    "node:tls",
    "dns",
    "ws",
    "net/http",
    "open-uri",
    "LWP",
    "IO::Socket",
];

struct CodeExecution {
    languages: Option<HashSet<String>>,
    modules: HashSet<String>,
    network: bool,
    max_time: Option<u64>,
    max_scan: usize,
}

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    building.note_idle(section, &["language_allowlist", "module_denylist", "network_access"]);
    let set = |key: &str| -> HashSet<String> {
        section.texts(key).iter().map(|item| item.text.trim().to_ascii_lowercase()).collect()
    };
    let listed = |names: &[&str]| names.iter().map(|&name| name.to_ascii_lowercase()).collect();
    let has_modules = section.has("module_denylist");
    let max_scan = section.number("max_scan_bytes", 1..=10_000_000).unwrap_or(65_536);
    let guard = CodeExecution {
        languages: section.has("language_allowlist").then(|| set("language_allowlist")),
        modules: if has_modules { set("module_denylist") } else { listed(MODULES) },
        network: section.flag("network_access", false),
        max_time: section.number("max_execution_time_ms", 1..=86_400_000),
        max_scan: usize::try_from(max_scan).unwrap_or(usize::MAX),
    };
    if !section.flag("enabled", false) {
        return None;
    }
    // Code that is too long is always denied.
    let long = "#".repeat(guard.max_scan.saturating_add(1));
    let forbidden = ExampleCall::new("run_python", json!({"language": "python", "code": long}));
    Some(Built { guard: Arc::new(guard), forbidden: Some(forbidden) })
}

impl CodeExecution {
    /// Why code may not be run.
    fn refuses(&self, language: Option<&str>, code: &str) -> Option<String> {
        if code.len() > self.max_scan {
            return Some(format!("the code is longer than {} bytes", self.max_scan));
        }
        if let Some(languages) = &self.languages {
            let Some(language) = language else {
                return Some("the code does not tell its language".to_owned());
            };
            if !languages.contains(imports::usual_name(language)) {
                return Some(format!(
                    "the language is not in `{}.language_allowlist`",
                    KIND.section
                ));
            }
        }
        for module in imports::of(code) {
            let module = module.to_ascii_lowercase();
            let root = module.split(['.', '/']).next().unwrap_or(&module);
            let named =
                [module.as_str(), root].into_iter().find(|name| self.modules.contains(*name));
            if let Some(name) = named {
                return Some(format!("the code imports `{name}`, which is denied"));
            }
            if !self.network
                && NETWORK.iter().any(|it| it.eq_ignore_ascii_case(root) || *it == module)
            {
                return Some(
                    "the code imports a module for the network, which it may not use".to_owned(),
                );
            }
        }
        if !self.network && imports::calls_network(code) {
            return Some("the code uses the network, which it may not".to_owned());
        }
        None
    }

    /// Whether a call asks for more time than it may have.
    fn is_too_long(&self, arguments: &Value) -> bool {
        let Some(most) = self.max_time else { return false };
        let Some(members) = arguments.as_object() else { return false };
        let mut asked = members.iter().filter_map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
            match name.as_str() {
                "timeout_ms" | "timeoutms" | "max_execution_time_ms" | "timeout_millis" => {
                    Some(number)
                }
                "timeout" | "timeout_seconds" | "timeout_secs" | "max_time" => {
                    Some(number * 1000.0)
                }
                _ => None,
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "at most a day in milliseconds")]
        asked.any(|asked| asked > most as f64)
    }
}

#[async_trait]
impl Guard for CodeExecution {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let facts = Facts::of_call(input)?;
        if let Some(why) = facts.malformed.as_ref().filter(|_| facts.action == Action::Code) {
            return Ok(Verdict::Deny(format!("the code cannot be read: {why}")).into());
        }
        if facts.code.is_empty() {
            return Ok(Verdict::Allow.into());
        }
        if self.is_too_long(input.arguments) {
            let reason =
                format!("more time is asked for than `{}.max_execution_time_ms`", KIND.section);
            return Ok(Verdict::Deny(reason).into());
        }
        let mut code = facts.code.iter();
        let refused = code.find_map(|(language, code)| self.refuses(language.as_deref(), code));
        Ok(refused.map_or(Verdict::Allow, Verdict::Deny).into())
    }
}

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  rules:
    code_execution:
      enabled: true
      language_allowlist: [python, javascript]
      max_execution_time_ms: 10000
      max_scan_bytes: 2000
cases:
  - {name: sums, tool: run_python, args: {code: "import math\nprint(math.sqrt(2))"}, expect: allow}
  - {name: another language of the list, tool: execute_code, args: {language: javascript, code: "console.log(1 + 1)"}, expect: allow}
  - {name: nothing of code, tool: echo, args: {text: import subprocess}, expect: allow}
  - {name: a language that is not listed, tool: execute_code, args: {language: ruby, code: "puts 1"}, expect: deny, by: code-execution, says: language_allowlist}
  - {name: no language told, tool: execute_code, args: {code: "puts 1"}, expect: deny, by: code-execution, says: does not tell}
  - {name: a denied module, tool: run_python, args: {code: "from subprocess import run\nrun(['ls'])"}, expect: deny, by: code-execution, says: subprocess}
  - {name: a denied module by another way, tool: run_python, args: {code: "__import__('sub' 'process')\nx = __import__(\"ctypes\")"}, expect: deny, by: code-execution, says: ctypes}
  - {name: a denied module among others, tool: run_python, args: {code: "import math, pty as p"}, expect: deny, by: code-execution, says: pty}
  - {name: a denied module of another language, tool: execute_code, args: {language: javascript, code: "const c = require('node:child_process')"}, expect: deny, by: code-execution}
  - {name: the network, tool: run_python, args: {code: "import urllib.request as r\nr.urlopen('https://example.com')"}, expect: deny, by: code-execution, says: network}
  - {name: the network without a module, tool: execute_code, args: {language: javascript, code: "await fetch('https://example.com')"}, expect: deny, by: code-execution, says: network}
  - {name: too much time, tool: run_python, args: {code: "print(1)", timeout: 60}, expect: deny, by: code-execution, says: max_execution_time_ms}
  - {name: no code at all, tool: run_python, args: {code: 7}, expect: deny, by: code-execution, says: no code}
"#;
