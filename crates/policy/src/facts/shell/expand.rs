//! Words, quotes, and what they stand for: variables, substitutions, escapes.

use super::reader::{MAX_INSERTED, Reader, is_variable};
use super::word::Field;
use super::{MAX_DEPTH, READING, Simple, Unreadable};

/// What a variable stands for.
#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    pub(super) text: String,
    /// Some of it is only known when it runs.
    pub(super) unknown: bool,
    /// The commands that made it.
    pub(super) sources: Vec<String>,
}

impl Value {
    pub(super) fn unknown(name: &str) -> Self {
        Self { text: format!("${name}"), unknown: true, sources: Vec::new() }
    }
}

impl Reader<'_, '_> {
    /// Reads a word, which may turn out to be several, or none.
    pub(super) fn word(&mut self) -> Result<(), Unreadable> {
        let mut field = Field::default();
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' => {
                    // The number before a redirect is none of the words.
                    if field.marks.iter().all(|mark| mark.c.is_ascii_digit()) && !field.quoted {
                        field = Field::default();
                    }
                    break;
                }
                '(' if field.marks.last().is_some_and(|mark| mark.c == '=' && !mark.quoted) => {
                    self.array(&mut field)?;
                }
                '(' if self.begins_group(&field) => self.group(&mut field)?,
                '(' => break,
                _ => self.piece(&mut field)?,
            }
        }
        if !field.is_empty() {
            self.fields.push(field);
        }
        Ok(())
    }

    /// Whether a bracket behind these characters is one of a pattern: `@(a|b)`. `!(…)` as a first word
    /// is read as commands.
    fn begins_group(&self, field: &Field) -> bool {
        let mark = field.marks.last().filter(|mark| !mark.quoted && "@!?*+".contains(mark.c));
        mark.is_some_and(|mark| mark.c != '!' || field.marks.len() > 1 || !self.fields.is_empty())
    }

    /// `@(a|b)` and the like: `*`, which finds as much and more.
    fn group(&mut self, field: &mut Field) -> Result<(), Unreadable> {
        self.deeper()?;
        let (mut inner, mut open) = (Field::default(), 0_usize);
        loop {
            match self.peek(0).ok_or(Unreadable::Unbalanced)? {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {
                    self.piece(&mut inner)?;
                    continue;
                }
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
        self.depth -= 1;
        field.marks.pop();
        field.push('*', false);
        Ok(())
    }

    /// One character, one quoted text or one expansion of a word.
    fn piece(&mut self, field: &mut Field) -> Result<(), Unreadable> {
        let Some(c) = self.peek(0) else { return Ok(()) };
        self.at += 1;
        match c {
            '\\' => {
                match self.peek(0) {
                    Some('\n') => {}
                    Some(next) => field.push(next, true),
                    None => field.push('\\', true),
                }
                self.at += 1;
            }
            '\'' => {
                field.quoted = true;
                loop {
                    let c = self.next()?;
                    if c == '\'' {
                        break;
                    }
                    field.push(c, true);
                }
            }
            '"' => self.double_quoted(field)?,
            '$' => self.dollar(field, false)?,
            '`' => self.backticks(field, false)?,
            c => field.push(c, false),
        }
        Ok(())
    }

    /// The next character of something that needs an end.
    fn next(&mut self) -> Result<char, Unreadable> {
        let c = self.peek(0).ok_or(Unreadable::Unbalanced)?;
        self.at += 1;
        Ok(c)
    }

    fn double_quoted(&mut self, field: &mut Field) -> Result<(), Unreadable> {
        field.quoted = true;
        loop {
            let c = self.peek(0).ok_or(Unreadable::Unbalanced)?;
            if c == '"' {
                self.at += 1;
                return Ok(());
            }
            self.quoted_piece(field)?;
        }
    }

    /// One character or one expansion within double quotes.
    fn quoted_piece(&mut self, field: &mut Field) -> Result<(), Unreadable> {
        let Some(c) = self.peek(0) else { return Ok(()) };
        self.at += 1;
        match c {
            '\\' => match self.peek(0) {
                Some('\n') => self.at += 1,
                Some(next @ ('$' | '`' | '"' | '\\')) => {
                    self.at += 1;
                    field.push(next, true);
                }
                _ => field.push('\\', true),
            },
            '$' => self.dollar(field, true)?,
            '`' => self.backticks(field, true)?,
            c => field.push(c, true),
        }
        Ok(())
    }

    /// A text with its expansions, as in double quotes.
    pub(super) fn expanded(&mut self, text: &str) -> Result<String, Unreadable> {
        self.deeper()?;
        self.state.work.charge_each(text.len() + READING, 1)?;
        let chars = std::mem::replace(&mut self.chars, text.chars().collect());
        let at = std::mem::take(&mut self.at);
        let mut field = Field::default();
        while self.at < self.chars.len() {
            self.quoted_piece(&mut field)?;
        }
        (self.chars, self.at) = (chars, at);
        self.depth -= 1;
        Ok(field.text())
    }

    fn deeper(&mut self) -> Result<(), Unreadable> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Unreadable::TooMuch) } else { Ok(()) }
    }

    fn dollar(&mut self, field: &mut Field, quoted: bool) -> Result<(), Unreadable> {
        match (self.peek(0), self.peek(1)) {
            (Some('\''), _) if !quoted => {
                self.at += 1;
                self.ansi(field)?;
            }
            (Some('"'), _) if !quoted => {
                self.at += 1;
                self.double_quoted(field)?;
            }
            (Some('('), Some('(')) => {
                self.at += 1;
                self.arithmetic()?;
                field.push('0', quoted);
            }
            (Some('('), _) => {
                self.at += 1;
                let first = self.state.script.commands.len();
                self.nested_list()?;
                self.substituted(field, quoted, first)?;
            }
            (Some('{'), _) => self.parameter(field, quoted)?,
            (Some('@' | '*'), _) => {
                self.at += 1;
                let all = self.state.given.get(1..).unwrap_or_default().join(" ");
                self.insert(&all, field, false)?;
            }
            (Some(c @ '1'..='9'), _) => {
                self.at += 1;
                let digit = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                let given = digit.and_then(|digit| self.state.given.get(digit)).cloned();
                let given = given.unwrap_or_default();
                self.insert(&given, field, quoted)?;
            }
            (Some('-'), _) => self.at += 1,
            (Some('$' | '?' | '#' | '!'), _) => {
                self.at += 1;
                field.push('0', quoted);
            }
            (Some('0'), _) => {
                self.at += 1;
                let first = self.state.given.first().cloned();
                self.insert(first.as_deref().unwrap_or("sh"), field, quoted)?;
            }
            (Some(c), _) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.chars.get(self.at..).unwrap_or_default();
                let name: String =
                    rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
                self.at += name.len();
                self.variable(&name, field, quoted)?;
            }
            _ => field.push('$', quoted),
        }
        Ok(())
    }

    /// The value of a variable, split at blanks where it is not in quotes.
    fn variable(&mut self, name: &str, field: &mut Field, quoted: bool) -> Result<(), Unreadable> {
        match self.state.variables.get(name).cloned() {
            Some(value) => {
                self.add_sources(value.sources)?;
                if !value.unknown {
                    return self.insert(&value.text, field, quoted);
                }
                self.state.may_insert(value.text.len())?;
                field.push_unknown(&value.text);
            }
            None if name == "IFS" => self.insert(" ", field, quoted)?,
            None => field.push_unknown(&format!("${name}")),
        }
        Ok(())
    }

    /// Puts a text into a word; its blanks split the word where it is not in quotes.
    fn insert(&mut self, text: &str, field: &mut Field, quoted: bool) -> Result<(), Unreadable> {
        self.state.may_insert(text.len())?;
        for c in text.chars() {
            if !quoted && c.is_whitespace() {
                let done = std::mem::take(field);
                if !done.is_empty() {
                    self.fields.push(done);
                }
            } else {
                field.push(c, quoted);
            }
        }
        Ok(())
    }

    /// What a substitution stands for: the text, where it is known without running it.
    fn substituted(
        &mut self,
        field: &mut Field,
        quoted: bool,
        first: usize,
    ) -> Result<(), Unreadable> {
        let made: Vec<&Simple> = self.state.script.commands.iter().skip(first).collect();
        let text = match made.as_slice() {
            [] => Some(String::new()),
            [only] => output_of(only),
            _ => None,
        };
        match text {
            Some(text) => self.insert(text.trim_end_matches('\n'), field, quoted)?,
            None => field.push_unknown("$(…)"),
        }
        self.note_sources(first)
    }

    fn backticks(&mut self, field: &mut Field, quoted: bool) -> Result<(), Unreadable> {
        let mut text = String::new();
        loop {
            let c = self.next()?;
            match (c, self.peek(0)) {
                ('`', _) => break,
                ('\\', Some(next @ ('`' | '\\' | '$'))) => {
                    self.at += 1;
                    text.push(next);
                }
                _ => text.push(c),
            }
        }
        let first = self.state.script.commands.len();
        let depth = self.depth + 1;
        Reader::new(&text, self.state, depth)?.list(None)?;
        self.substituted(field, quoted, first)
    }

    /// `$'…'`, with its escapes.
    fn ansi(&mut self, field: &mut Field) -> Result<(), Unreadable> {
        field.quoted = true;
        let mut raw = String::new();
        loop {
            let c = self.next()?;
            match c {
                '\'' => break,
                '\\' => {
                    raw.push(c);
                    raw.extend(self.peek(0));
                    self.at += 1;
                }
                c => raw.push(c),
            }
        }
        unescaped(&raw).chars().for_each(|c| field.push(c, true));
        Ok(())
    }

    /// `name=(a b)`: the words, with a blank between them.
    fn array(&mut self, field: &mut Field) -> Result<(), Unreadable> {
        self.at += 1;
        self.deeper()?;
        let outer = std::mem::take(&mut self.fields);
        while self.peek(0).ok_or(Unreadable::Unbalanced)? != ')' {
            let before = self.at;
            self.word()?;
            self.at += usize::from(self.at == before);
        }
        self.at += 1;
        self.depth -= 1;
        let items = std::mem::replace(&mut self.fields, outer);
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                field.push(' ', true);
            }
            field.marks.extend(&item.marks);
        }
        Ok(())
    }

    /// `${…}`.
    fn parameter(&mut self, field: &mut Field, quoted: bool) -> Result<(), Unreadable> {
        self.at += 1;
        let mut depth = 1_usize;
        let mut text = String::new();
        loop {
            let c = self.next()?;
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => break,
                '}' => depth -= 1,
                _ => {}
            }
            text.push(c);
        }
        let name: String = text
            .trim_start_matches(['!', '#'])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let operation = text.get(name.len()..).unwrap_or_default();
        let is_plain = !text.starts_with(['#', '!']);
        let value = self.state.variables.get(&name);
        let default = value.is_none_or(|value| value.unknown).then(|| default_of(operation));
        let default = default.flatten().filter(|_| is_plain);
        // Whatever becomes of it, what is in it runs. A default is expanded below.
        if default.is_none() && (operation.contains("$(") || operation.contains('`')) {
            self.expanded(operation)?;
        }
        if let Some(default) = default {
            let default = self.expanded(default)?;
            self.insert(&default, field, quoted)?;
        } else if text.starts_with('#') {
            field.push('0', quoted);
        } else if text.starts_with('!') {
            let target = self.state.variables.get(&name).map(|value| value.text.clone());
            match target.filter(|target| is_variable(target)) {
                Some(target) => self.variable(&target, field, quoted)?,
                None => field.push_unknown(&format!("${{{text}}}")),
            }
        } else if let Ok(number) = text.parse::<usize>() {
            let given = self.state.given.get(number).cloned().unwrap_or_default();
            self.insert(&given, field, quoted)?;
        } else if operation.is_empty() {
            self.variable(&name, field, quoted)?;
        } else {
            self.operated(&name, operation, field, quoted)?;
        }
        Ok(())
    }

    /// A variable with something done to it, as far as it can be followed.
    fn operated(
        &mut self,
        name: &str,
        operation: &str,
        field: &mut Field,
        quoted: bool,
    ) -> Result<(), Unreadable> {
        let value = self.state.variables.get(name).filter(|value| !value.unknown);
        let value = value.map(|value| value.text.clone());
        self.state.work.charge_each(value.as_ref().map_or(0, String::len), 1)?;
        if operation == "[@]" || operation == "[*]" {
            return self.variable(name, field, false);
        }
        // These begin with a slash on every system that has them.
        let rooted = matches!(name, "HOME" | "PATH" | "PWD" | "SHELL" | "OLDPWD");
        let value = value.or_else(|| (rooted && operation == ":0:1").then(|| "/".to_owned()));
        if value.as_ref().is_some_and(|value| grows(value, operation)) {
            return Err(Unreadable::TooMuch);
        }
        match value.and_then(|value| operate(&value, operation)) {
            Some(text) => self.insert(&text, field, quoted)?,
            None => field.push_unknown(&format!("${{{name}{operation}}}")),
        }
        Ok(())
    }
}

/// What a variable stands for where it has no value, if the operation says it.
fn default_of(operation: &str) -> Option<&str> {
    [":-", ":=", "-", "="].iter().find_map(|mark| operation.strip_prefix(mark))
}

/// Whether an operation makes more of a value than may be put into words.
fn grows(value: &str, operation: &str) -> bool {
    let Some((from, to)) = operation.strip_prefix("//").and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    value.matches(from).count().saturating_mul(to.len()) > MAX_INSERTED
}

/// What an operation makes of a value; none where it is not known.
fn operate(value: &str, operation: &str) -> Option<String> {
    if let Some(index) = operation.strip_prefix('[') {
        let index: usize = index.strip_suffix(']')?.parse().ok()?;
        return Some(value.split(' ').nth(index).unwrap_or_default().to_owned());
    }
    if let Some(rest) = operation.strip_prefix("//") {
        let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
        return Some(value.replace(from, to));
    }
    if let Some(rest) = operation.strip_prefix('/') {
        let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
        return Some(value.replacen(from, to, 1));
    }
    match operation {
        "," | ",," | "@L" => return Some(value.to_lowercase()),
        "^^" | "@U" => return Some(value.to_uppercase()),
        _ => {}
    }
    if let Some(end) = operation.strip_prefix("%%").or_else(|| operation.strip_prefix('%')) {
        return (!end.contains(['*', '?', '[']))
            .then(|| value.strip_suffix(end).unwrap_or(value).to_owned());
    }
    if let Some(start) = operation.strip_prefix("##").or_else(|| operation.strip_prefix('#')) {
        return (!start.contains(['*', '?', '[']))
            .then(|| value.strip_prefix(start).unwrap_or(value).to_owned());
    }
    if operation.starts_with([':', '-', '=']) && !operation.starts_with(":+") {
        let rest = operation.strip_prefix(':')?;
        let (start, length) = rest.split_once(':').unwrap_or((rest, ""));
        if let Ok(start) = start.trim().parse::<usize>() {
            let length = length.trim().parse::<usize>().unwrap_or(usize::MAX);
            return Some(value.chars().skip(start).take(length).collect());
        }
        return Some(value.to_owned());
    }
    None
}

/// What a command prints, where that is known without running it.
pub(super) fn output_of(command: &Simple) -> Option<String> {
    if command.words.iter().any(|word| word.bare.is_some()) {
        return None;
    }
    let arguments: Vec<&str> = command.arguments().collect();
    match command.name().as_str() {
        "echo" => {
            let flags = arguments.iter().take_while(|text| is_echo_flag(text)).count();
            let text = arguments.get(flags..)?.join(" ");
            Some(unescaped(&text))
        }
        "printf" => {
            let (form, values) = arguments.split_first()?;
            let form = unescaped(form);
            if !form.contains('%') {
                return Some(form);
            }
            let (mut text, mut rest) = (String::new(), form.as_str());
            for value in values {
                let mut marks = rest.match_indices('%').map(|(place, _)| rest.split_at(place));
                let found = marks.find_map(|(before, mark)| {
                    Some((before, mark.strip_prefix("%")?.strip_prefix(['s', 'b', 'c', 'q'])?))
                });
                let (before, after) = found.unwrap_or((rest, ""));
                text.push_str(before);
                text.push_str(&unescaped(value));
                rest = after;
            }
            Some(text + rest)
        }
        "which" | "type" => arguments.last().map(|text| (*text).to_owned()),
        "command" if matches!(arguments.first(), Some(&("-v" | "-V"))) => {
            arguments.last().map(|text| (*text).to_owned())
        }
        "cat" if arguments.is_empty() => command.fed.clone(),
        _ => None,
    }
}

fn is_echo_flag(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|b| matches!(b, b'e' | b'n' | b'E'))
    })
}

/// Escapes as `$'…'`, `printf` and `echo -e` know them.
pub(super) fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let Some(next) = (c == '\\').then(|| rest.next()).flatten() else {
            out.push(c);
            continue;
        };
        let mut digits = |most: usize, radix: u32, start: u32| {
            let mut number = start;
            for _ in 0..most {
                let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
                number = number * radix + digit;
                rest.next();
            }
            char::from_u32(number).unwrap_or('\u{fffd}')
        };
        let made = match next {
            'x' => digits(2, 16, 0),
            'u' => digits(4, 16, 0),
            'U' => digits(6, 16, 0),
            '0' => digits(3, 8, 0),
            '1'..='7' => digits(2, 8, next.to_digit(8).unwrap_or(0)),
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'e' | 'E' => '\u{1b}',
            'a' => '\u{7}',
            'b' => '\u{8}',
            other => other,
        };
        out.push(made);
    }
    out
}
