//! Which code may be run: its language, what it imports, and whether it reaches the network.

mod imports;

use std::collections::HashSet;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use serde_json::{Value, json};

use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "code-execution",
    section: "rules.code_execution",
    about: "Looks at code before a tool runs it: its language, the modules that it imports, whether \
            it reaches the network, and how long it may run. It reads code as text; an author who wants \
            to hide an import can. A sandbox is the real control.",
    keys: &[
        Key::flag("enabled", "false", "whether it is in force"),
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
        Key::flag("network_access", "false", "whether code may use the network"),
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
};

/// Modules that start programs or go around the language.
const MODULES: &str = "subprocess ctypes cffi pty child_process node:child_process vm node:vm worker_threads \
    cluster multiprocessing pickle marshal importlib pexpect";

/// Modules that reach the network.
const NETWORK: &str = "socket requests urllib urllib2 urllib3 http httpx aiohttp ftplib smtplib telnetlib paramiko \
    websocket websockets xmlrpc net node:net node:http https node:https axios node-fetch got \
    undici dgram node:dgram tls node:tls dns ws net/http open-uri LWP IO::Socket";

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
    let default = || MODULES.split(' ').map(str::to_ascii_lowercase).collect();
    let has_modules = section.has("module_denylist");
    let max_scan = section.number("max_scan_bytes", 1..=10_000_000).unwrap_or(65_536);
    let guard = CodeExecution {
        languages: section.has("language_allowlist").then(|| set("language_allowlist")),
        modules: if has_modules { set("module_denylist") } else { default() },
        network: section.flag("network_access", false),
        max_time: section.number("max_execution_time_ms", 1..=86_400_000),
        max_scan: usize::try_from(max_scan).unwrap_or(usize::MAX),
    };
    section.enabled(false)?;
    // Code that is too long is always denied.
    let long = "#".repeat(guard.max_scan.saturating_add(1));
    let forbidden = ExampleCall::new("run_python", json!({"language": "python", "code": long}));
    Some(Built::refusing(KIND.name, Some(forbidden), move |input| guard.refuses_call(input)))
}

impl CodeExecution {
    fn refuses_call(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        let facts = Facts::of_call(input)?;
        if let Some(why) = facts.malformed.as_ref().filter(|_| facts.action == Action::Code) {
            return Ok(Some(format!("the code cannot be read: {why}")));
        }
        if !facts.code.is_empty() && self.is_too_long(input.arguments) {
            let section = KIND.section;
            let reason = format!("more time is asked for than `{section}.max_execution_time_ms`");
            return Ok(Some(reason));
        }
        let looked = facts.code.iter().map(|(_, code)| code.len().min(self.max_scan));
        let steps = input.work.charge_each(looked.sum(), 8);
        steps.map_err(|spent| spent.to_string())?;
        let mut code = facts.code.iter();
        Ok(code.find_map(|(language, code)| self.refuses(language.as_deref(), code)))
    }

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
                && NETWORK.split(' ').any(|it| it.eq_ignore_ascii_case(root) || it == module)
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
