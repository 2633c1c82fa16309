//! One walk over the arguments of a call, that notes what they name.

use chio_kernel::Work;
use serde_json::{Map, Value};

use super::folders::Folders;
use super::members::{Class, class_of, is_folder};
use super::names::Tool;
use super::path::{self, Unreadable};
use super::shell::{self, Script};
use super::{Access, Action, Facts, PathFact, destination, patch};

/// How deep arguments may be nested.
const MAX_DEPTH: usize = 32;
/// How many things of a kind a call may name.
const MAX_FACTS: usize = 512;
/// How long JSON in a text may be, in bytes, for its parts not to be counted before it is parsed.
const MAX_NESTED: usize = 256 * 1024;
/// How many parts JSON in a longer text may have, to be looked into.
const MAX_PARTS: usize = 64 * 1024;

/// The state of a walk.
#[derive(Debug)]
pub(super) struct Walk<'w> {
    /// What the walk costs. When it is spent, what is left is not visited, and nothing counts.
    work: &'w Work,
    pub(super) facts: Facts,
    tool: Tool,
    language: Option<String>,
    queries: usize,
    folders: Folders,
}

impl<'w> Walk<'w> {
    pub(super) fn new(tool: Tool, work: &'w Work) -> Self {
        let facts = Facts { action: tool.action, ..Facts::default() };
        Self { work, facts, tool, language: None, queries: 0, folders: Folders::default() }
    }

    pub(super) fn malformed(&mut self, why: &str) {
        self.facts.malformed.get_or_insert_with(|| why.to_owned());
    }

    /// Notes that there is more than was looked at.
    fn incomplete(&mut self, why: &str) {
        self.facts.is_incomplete = true;
        self.malformed(why);
    }

    /// Visits a value.
    pub(super) fn value(&mut self, class: Class, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return self.incomplete("arguments that are nested too deep");
        }
        if self.work.charge(1).is_err() {
            return;
        }
        match value {
            Value::String(text) => self.text(class, text, depth),
            Value::Array(items) if class == Class::Command => self.command_list(items, depth),
            Value::Array(items) => {
                items.iter().for_each(|item| self.value(class, item, depth + 1));
            }
            Value::Object(members) => self.members(class, members, depth),
            // An address is also a number.
            Value::Number(number) if class == Class::Host => {
                let text = number.to_string();
                if destination::looks_like_host(&text) {
                    self.place(&text);
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn members(&mut self, outer: Class, members: &Map<String, Value>, depth: usize) {
        let mut program = None;
        let mut arguments = None;
        let mut rest = None;
        for (name, value) in members {
            if self.work.charge_each(name.len(), 1).is_err() {
                return;
            }
            let class = match class_of(name, &self.tool) {
                // `files: [{name: …}]`
                Class::Other if outer == Class::Path && name == "name" => Class::Path,
                class => class,
            };
            if matches!(class, Class::Path | Class::PathRead) && is_folder(name) {
                self.given_folder(value);
            }
            match (class, value) {
                (Class::Command, Value::String(text)) if program.is_none() => program = Some(text),
                // `commands: [ls, "rm -rf /"]`: lines, whatever they look like.
                (Class::Command, Value::Array(items)) if name.ends_with(['s', 'S']) => {
                    for item in items {
                        match item {
                            Value::String(text) => self.command(text),
                            other => self.value(Class::Command, other, depth + 1),
                        }
                    }
                }
                (Class::Arguments, Value::Array(items)) if arguments.is_none() => {
                    arguments = Some(items);
                }
                (Class::Arguments, Value::Array(items)) if self.tool.action == Action::Shell => {
                    self.command_list(items, depth + 1);
                }
                (Class::Arguments, Value::String(text)) if self.tool.action == Action::Shell => {
                    rest = Some(text);
                }
                _ => self.value(class, value, depth + 1),
            }
            // `files: {"a/b.txt": …}`
            if matches!(outer, Class::Path | Class::PathRead) && looks_like_path(name) {
                self.path(name, self.tool.access);
            } else if outer == Class::Path {
                self.facts.named.push(name.clone());
            }
        }
        match (program, rest) {
            // `command: rm, args: "-rf /"`
            (Some(program), Some(rest)) => self.command(&format!("{program} {rest}")),
            (None, Some(rest)) => self.command(rest),
            (_, None) => {}
        }
        self.program(program, arguments, depth);
    }

    /// A command that comes as one text, or as its first word and the others.
    fn program(&mut self, program: Option<&String>, arguments: Option<&Vec<Value>>, depth: usize) {
        let words = arguments.map(|items| words_of(items));
        match (program, words) {
            (Some(program), None) => self.command(program),
            (Some(program), Some(Some(words))) => {
                // Some servers start the program with these words, others hand one line to a shell.
                let quoted: Vec<String> = words.iter().map(|word| shell::quoted(word)).collect();
                self.command(&format!("{program} {}", quoted.join(" ")));
                let line = format!("{program} {}", words.join(" "));
                if quoted != words && shell::read(&line, self.work).is_ok() {
                    self.command(&line);
                }
            }
            (None, Some(Some(words))) if self.tool.action == Action::Shell => self.argv(&words),
            (Some(program), Some(None)) => {
                self.command(program);
                self.malformed("words of a command that are not text");
            }
            (None, _) => {}
        }
        if program.is_none()
            && let Some(items) = arguments
        {
            items.iter().for_each(|item| self.value(Class::Other, item, depth + 2));
        }
    }

    fn command_list(&mut self, items: &[Value], depth: usize) {
        match words_of(items) {
            // Several commands, each a line of its own, or one as a list of its words.
            Some(words) if words.len() > 1 && words.iter().all(|word| word.contains(' ')) => {
                words.iter().for_each(|word| self.command(word));
            }
            Some(words) => self.argv(&words),
            None => items.iter().for_each(|item| self.value(Class::Command, item, depth + 1)),
        }
    }

    fn argv(&mut self, words: &[&str]) {
        match words {
            [] => {}
            [only] => self.command(only),
            words => {
                let quoted: Vec<String> = words.iter().map(|word| shell::quoted(word)).collect();
                self.command(&quoted.join(" "));
            }
        }
    }

    fn text(&mut self, class: Class, text: &str, depth: usize) {
        match class {
            Class::Path => {
                let access = self.tool.access;
                self.path_or_url(text, access);
            }
            Class::PathRead => self.path_or_url(text, Access::Read),
            Class::Url => self.url(text),
            Class::Host => self.host(text),
            Class::Command => self.command(text),
            Class::Patch => self.patch(text),
            Class::Code => self.code(text),
            Class::Language => self.language = Some(text.trim().to_ascii_lowercase()),
            Class::Query if self.tool.action == Action::Database => {
                self.queries += usize::from(!text.trim().is_empty());
                let literals = super::code::literals(text).into_iter();
                self.facts.named.extend(literals.map(|literal| literal.text.to_owned()));
            }
            // What is written into a file is not visited.
            Class::Content
                if matches!(
                    self.tool.action,
                    Action::FileWrite | Action::Patch | Action::FileRead
                ) => {}
            Class::Content | Class::Arguments | Class::Query | Class::Other => {
                self.any_text(class, text, depth);
            }
        }
    }

    /// A text of unknown meaning: a URL, or JSON that the tool may parse later.
    fn any_text(&mut self, class: Class, text: &str, depth: usize) {
        let begins = text.trim_start();
        if begins.starts_with(['{', '[', '"']) {
            return self.nested(text, depth);
        }
        if text.len() > path::MAX_PATH {
            return;
        }
        let has_folder = class != Class::Content && text.contains(['/', '\\']);
        // A name of its own may be that of a file, whatever the member is called.
        let is_name = class == Class::Other && text.contains('.') && !text.contains(' ');
        if (has_folder || is_name) && !text.contains('\n') {
            self.facts.named.push(text.to_owned());
        }
        if !begins.contains(':') {
            return;
        }
        if destination::is_file(begins) {
            self.path(text, self.tool.access);
        }
        let one_word = !begins.trim_end().contains([' ', '\n']);
        if (one_word || class == Class::Other)
            && let Some(fact) = destination::of_url(text)
            && (one_word || fact.host.is_some())
        {
            // A text that only begins with a URL is not read as one.
            if one_word { self.destination(fact) } else { self.note_destination(fact) }
        }
    }

    /// JSON in a text, which the tool may parse.
    fn nested(&mut self, text: &str, depth: usize) {
        if self.work.charge_each(text.len(), 1).is_err() {
            return;
        }
        let parts =
            || text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':')).count();
        if text.len() > MAX_NESTED && parts() > MAX_PARTS {
            // Where it is some, it is too large to be looked into.
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
                self.incomplete("JSON in a text that has more parts than can be looked at");
            }
            return;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(nested) => self.value(Class::Other, &nested, depth + 1),
            Err(error) if error.to_string().starts_with("recursion limit") => {
                self.incomplete("JSON in a text that is nested too deep");
            }
            Err(_) => {}
        }
    }

    /// A folder that the tool works in.
    fn given_folder(&mut self, value: &Value) {
        let texts = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for text in texts.iter().filter_map(Value::as_str).filter(|text| !text.trim().is_empty()) {
            let forms = path::forms(text).unwrap_or_default();
            self.folders.given.extend(forms);
        }
        if self.folders.given.len() > MAX_FACTS {
            self.incomplete("more folders than can be looked at");
        }
    }

    fn path_or_url(&mut self, text: &str, access: Access) {
        if text.contains(':')
            && self.work.charge_each(text.len(), 1).is_ok()
            && let Some(fact) = destination::of_url(text)
        {
            self.destination(fact);
        }
        self.path(text, access);
    }

    /// Notes a path.
    pub(super) fn path(&mut self, text: &str, access: Access) {
        if text.trim().is_empty() {
            if self.tool.known && matches!(self.tool.action, Action::FileRead | Action::FileWrite) {
                self.malformed("a blank path");
            }
            return;
        }
        if self.facts.paths.len() >= MAX_FACTS {
            return self.incomplete("more paths than can be looked at");
        }
        // It is read in several forms, and compared with those before it.
        if self.work.charge_each(text.len().min(path::MAX_PATH), 8).is_err()
            || self.work.charge_each(self.facts.paths.len(), 1).is_err()
        {
            return;
        }
        match path::forms(text) {
            Ok(forms) => forms.into_iter().for_each(|normal| {
                let fact = PathFact { access, text: text.to_owned(), normal };
                if !self.facts.paths.contains(&fact) {
                    self.facts.paths.push(fact);
                }
            }),
            // No path is that long; but text that is no path may end up here.
            Err(Unreadable::TooLong) if !self.tool.known => {}
            Err(why) => self.malformed(why.why()),
        }
    }

    fn url(&mut self, text: &str) {
        if text.trim().is_empty() || self.work.charge_each(text.len(), 1).is_err() {
            return;
        }
        let is_file = destination::is_file(text);
        if is_file {
            self.path(text, self.tool.access);
        }
        match destination::of_url(text) {
            Some(fact) => self.destination(fact),
            None if !is_file && (self.may_be_host(text) || text.starts_with("//")) => {
                self.place(text);
            }
            None => {}
        }
    }

    fn may_be_host(&self, text: &str) -> bool {
        matches!(self.tool.action, Action::Network | Action::Browser)
            || destination::looks_like_host(text)
    }

    fn host(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty()
            && self.work.charge_each(text.len(), 1).is_ok()
            && (self.may_be_host(text) || text.contains("://"))
        {
            self.place(text);
        }
    }

    fn place(&mut self, text: &str) {
        if let Some(fact) = destination::of_place(text) {
            self.destination(fact);
        }
    }

    /// Notes a destination.
    pub(super) fn destination(&mut self, fact: super::DestinationFact) {
        self.facts.is_ambiguous |= destination::is_ambiguous(&fact.text);
        self.note_destination(fact);
    }

    fn note_destination(&mut self, fact: super::DestinationFact) {
        if self.work.charge_each(self.facts.destinations.len(), 1).is_err() {
            return;
        }
        if self.facts.destinations.len() >= MAX_FACTS {
            return self.malformed("more destinations than can be looked at");
        }
        if fact.text.contains('\0') {
            self.malformed("a destination with a NUL character");
        }
        if !self.facts.destinations.contains(&fact) {
            self.facts.destinations.push(fact);
        }
    }

    /// Notes a command line, and what it names.
    pub(super) fn command(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if text.contains('\0') {
            return self.malformed("a command with a NUL character");
        }
        if self.facts.commands.len() >= MAX_FACTS {
            return self.incomplete("more commands than can be looked at");
        }
        if self.facts.commands.iter().any(|known| known == text)
            || self.work.charge_each(self.facts.commands.len(), 1).is_err()
        {
            return;
        }
        self.facts.commands.push(text.to_owned());
        let script = shell::read(text, self.work);
        if let Ok(script) = &script {
            self.script(script);
        }
        self.facts.scripts.push(script);
    }

    fn script(&mut self, script: &Script) {
        if self.work.charge_each(script.size(), 4).is_err() {
            return;
        }
        for (text, access) in script.paths() {
            self.path(&text, access);
        }
        self.facts.named.extend(script.operands().map(str::to_owned));
        self.folders.entered.extend(script.folders());
        for (target, name) in script.links() {
            self.folders.link(&target, &name);
        }
        for text in script.places() {
            self.place(&text);
        }
        for text in script.patches() {
            self.patch(text);
        }
        for (language, code) in script.codes() {
            self.code_facts(language, code);
        }
    }

    fn patch(&mut self, text: &str) {
        if self.tool.action != Action::Patch && !patch::looks_like_patch(text) {
            return;
        }
        if self.facts.patches.len() >= MAX_FACTS {
            return self.malformed("more patches than can be looked at");
        }
        if text.trim().is_empty()
            || self.facts.patches.iter().any(|known| known == text)
            || self.work.charge_each(text.len(), 1).is_err()
        {
            return;
        }
        self.facts.patches.push(text.to_owned());
        if let Ok(patch) = patch::read(text) {
            for file in &patch.files {
                file.paths().for_each(|path| self.path(path, Access::Patch));
            }
        }
    }

    fn code(&mut self, text: &str) {
        let runs = matches!(self.tool.action, Action::Code | Action::Browser);
        let looks = text.len() > 8 && text.contains(['(', '\n', '=', ';']);
        if text.trim().is_empty() || !(runs || looks) {
            return;
        }
        self.facts.code.push((None, text.to_owned()));
        if runs {
            self.code_facts("", text);
        }
    }

    /// What the texts in code name: paths, places, and commands that it has run.
    fn code_facts(&mut self, language: &str, code: &str) {
        if shell::is_shell(language) {
            return self.command(code);
        }
        if self.work.charge_each(code.len(), 1).is_err() {
            return;
        }
        for literal in super::code::literals(code) {
            if literal.runs {
                // Texts of code have escapes of their own: what cannot be read is left to chance.
                if shell::read(literal.text, self.work).is_ok() {
                    self.command(literal.text);
                }
            } else if literal.text.starts_with(['/', '~']) || literal.text.starts_with("..") {
                self.path(literal.text, Access::Read);
            } else if literal.text.contains("://")
                && let Some(fact) = destination::of_url(literal.text)
            {
                self.destination(fact);
            } else {
                self.facts.named.push(literal.text.to_owned());
            }
        }
    }

    /// What the walk found, with what is only known at its end.
    pub(super) fn finished(mut self, arguments: &Value) -> Facts {
        let language = self.language.take().or_else(|| self.tool.language.map(str::to_owned));
        if let Some(language) = language.filter(|_| !self.facts.code.is_empty()) {
            let shell = shell::is_shell(&language);
            let codes: Vec<String> = self.facts.code.iter().map(|(_, code)| code.clone()).collect();
            for (told, _) in &mut self.facts.code {
                told.get_or_insert_with(|| language.clone());
            }
            if shell {
                codes.iter().for_each(|code| self.command(code));
            }
        }
        self.settle_folders();
        self.tell_action();
        if self.tool.known
            && let Some(missing) = self.missing(arguments)
        {
            self.malformed(missing);
        }
        self.facts
    }

    /// Adds what the paths mean in the folders that the call names.
    fn settle_folders(&mut self) {
        let folders = self.folders.all();
        let paths = &self.facts.paths;
        let meant =
            folders.as_ref().and_then(|folders| self.folders.meant(paths, folders, self.work));
        match meant {
            Some(meant) => self.facts.paths.extend(meant),
            None => self.incomplete("more paths than can be looked at"),
        }
        self.facts.folders = folders.unwrap_or_default();
    }

    /// Retains the destinations that would be connected to, for a tool whose arguments are URIs of
    /// schemes that its server defines.
    pub(super) fn only_networks(&mut self) {
        let connects = |fact: &super::DestinationFact| {
            fact.scheme.as_deref().is_none_or(|it| it == "file" || destination::is_of_network(it))
        };
        self.facts.destinations.retain(connects);
    }

    /// Derives the action from the arguments where the tool's name says nothing.
    fn tell_action(&mut self) {
        let facts = &mut self.facts;
        if facts.action != Action::Other {
            return;
        }
        facts.action = if !facts.commands.is_empty() {
            Action::Shell
        } else if !facts.patches.is_empty() {
            Action::Patch
        } else if !facts.code.is_empty() {
            Action::Code
        } else if !facts.paths.is_empty() {
            match self.tool.access {
                Access::Read => Action::FileRead,
                Access::Write | Access::Patch => Action::FileWrite,
            }
        } else if !facts.destinations.is_empty() {
            Action::Network
        } else {
            Action::Other
        };
    }

    /// What a known tool cannot do without.
    fn missing(&self, arguments: &Value) -> Option<&'static str> {
        let facts = &self.facts;
        let restarts = || arguments.get("restart").and_then(Value::as_bool) == Some(true);
        match self.tool.action {
            Action::FileRead | Action::FileWrite if facts.paths.is_empty() => Some("no path"),
            Action::Patch if facts.patches.is_empty() => Some("no patch"),
            Action::Shell if facts.commands.is_empty() && !restarts() => Some("no command"),
            Action::Code if facts.code.is_empty() && facts.commands.is_empty() => Some("no code"),
            Action::Network | Action::Browser if facts.destinations.is_empty() => {
                Some("no destination")
            }
            Action::Database if self.queries == 0 => Some("no query"),
            _ => None,
        }
    }
}

fn words_of(items: &[Value]) -> Option<Vec<&str>> {
    items.iter().map(Value::as_str).collect()
}

fn looks_like_path(name: &str) -> bool {
    name.contains('/') || name.starts_with(['.', '~']) || name.contains('\\')
}
