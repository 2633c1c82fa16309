//! Reads a command line: words, quotes, pipelines, redirects, here-documents, substitutions.

use std::collections::{BTreeSet, HashMap};

use chio_kernel::Work;

use super::expand::{Value, output_of};
use super::word::{Field, Word};
use super::{MAX_COMMANDS, MAX_DEPTH, READING, SOURCE, Script, Simple, Unreadable};

/// How many characters variables and substitutions may put into words.
pub(super) const MAX_INSERTED: usize = 1 << 20;
/// How many functions a line may define.
const MAX_FUNCTIONS: usize = 256;
/// How many calls of functions are followed.
const MAX_CALLS: usize = 10;
/// How many here-documents a line may have.
const MAX_HERE_DOCUMENTS: usize = 64;

/// The state that all nested readers of one command line share.
#[derive(Debug)]
pub(super) struct State<'w> {
    /// What reading costs.
    pub(super) work: &'w Work,
    pub(super) script: Script,
    pub(super) variables: HashMap<String, Value>,
    /// What `$0`, `$1` and so on stand for, where the line says it.
    pub(super) given: Vec<String>,
    next_pipeline: usize,
    here_documents: usize,
    /// How many characters variables and substitutions have put into words.
    inserted: usize,
}

impl<'w> State<'w> {
    fn new(work: &'w Work) -> Self {
        Self {
            work,
            script: Script::default(),
            variables: HashMap::new(),
            given: Vec::new(),
            next_pipeline: 0,
            here_documents: 0,
            inserted: 0,
        }
    }

    pub(super) fn pipeline(&mut self) -> usize {
        self.next_pipeline += 1;
        self.next_pipeline
    }

    /// Asks whether `count` more bytes may be put into words. A short line must not expand to more
    /// than can be inspected.
    pub(super) fn may_insert(&mut self, count: usize) -> Result<(), Unreadable> {
        self.work.charge_each(count, 1)?;
        self.inserted = self.inserted.saturating_add(count);
        if self.inserted > MAX_INSERTED { Err(Unreadable::TooMuch) } else { Ok(()) }
    }

    pub(super) fn add(&mut self, command: Simple) -> Result<(), Unreadable> {
        if self.script.commands.len() >= MAX_COMMANDS {
            return Err(Unreadable::TooMuch);
        }
        self.script.commands.push(command);
        Ok(())
    }
}

/// Reads a command line and everything in it.
pub(super) fn read(text: &str, work: &Work) -> Result<Script, Unreadable> {
    let mut state = State::new(work);
    Reader::new(text, &mut state, 0)?.list(None)?;
    // What functions do with what they are given is seen when the text is read with that.
    let functions = state.script.functions.len();
    for given in given_to_functions(&state.script) {
        state.given = given;
        Reader::new(text, &mut state, 0)?.list(None)?;
    }
    state.script.functions.truncate(functions);
    super::inner::follow(&mut state)?;
    if state.script.functions.len() > MAX_FUNCTIONS {
        return Err(Unreadable::TooMuch);
    }
    Ok(state.script)
}

/// The words of each call of a function of this script that gives it something, each once. When
/// these are many, patterns for all of them.
fn given_to_functions(script: &Script) -> BTreeSet<Vec<String>> {
    let is_call = |command: &&Simple| {
        let name = command.words.first().map(|word| &word.text);
        command.words.len() > 1 && name.is_some_and(|name| script.functions.contains(name))
    };
    let calls = script.commands.iter().filter(is_call);
    let given = calls.map(|call| call.words.iter().map(|word| word.text.clone()).collect());
    let given: BTreeSet<Vec<String>> = given.take(MAX_COMMANDS).collect();
    if given.len() <= MAX_CALLS { given } else { [vec!["*".to_owned(); MAX_CALLS]].into() }
}

/// A reader of one text.
pub(super) struct Reader<'s, 'w> {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) state: &'s mut State<'w>,
    pub(super) depth: usize,
    /// The commands whose output the words of this command are made of.
    pub(super) sources: Vec<String>,
    /// The words of this command so far.
    pub(super) fields: Vec<Field>,
    redirects: Vec<(bool, Word)>,
    fed: Option<String>,
}

impl<'s, 'w> Reader<'s, 'w> {
    pub(super) fn new(
        text: &str,
        state: &'s mut State<'w>,
        depth: usize,
    ) -> Result<Self, Unreadable> {
        state.work.charge_each(text.len() + READING, 1)?;
        Ok(Self {
            chars: text.replace("\r\n", "\n").chars().collect(),
            at: 0,
            state,
            depth,
            sources: Vec::new(),
            fields: Vec::new(),
            redirects: Vec::new(),
            fed: None,
        })
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Reads commands to the end, or to this bracket.
    pub(super) fn list(&mut self, end: Option<char>) -> Result<(), Unreadable> {
        if self.depth > MAX_DEPTH {
            return Err(Unreadable::TooMuch);
        }
        let mut pipeline = self.state.pipeline();
        loop {
            let Some(c) = self.peek(0) else {
                self.finish(pipeline, false)?;
                return if end.is_none() { Ok(()) } else { Err(Unreadable::Unbalanced) };
            };
            if Some(c) == end {
                self.at += 1;
                return self.finish(pipeline, false);
            }
            match (c, self.peek(1)) {
                (' ' | '\t', _) => self.at += 1,
                ('\\', Some('\n')) => self.at += 2,
                ('#', _) => self.comment(),
                ('\n' | ';', _) | ('&' | '|', _) if !self.is_redirect() => {
                    pipeline = self.separator(pipeline)?;
                }
                ('(', _) => self.bracket(pipeline)?,
                // The end of a pattern in `case`.
                (')', _) => {
                    self.at += 1;
                    self.fields.clear();
                }
                ('<' | '>', Some('(')) => self.process()?,
                ('<' | '>' | '&', _) => self.redirect()?,
                _ => self.word()?,
            }
        }
    }

    fn is_redirect(&self) -> bool {
        self.peek(0) == Some('&') && self.peek(1) == Some('>')
    }

    fn comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// What ends a command. Gives the pipeline that the next one is part of.
    fn separator(&mut self, pipeline: usize) -> Result<usize, Unreadable> {
        let (first, second) = (self.peek(0), self.peek(1));
        let double = first == second && first != Some('\n');
        let piped = first == Some('|') && !double;
        let background = first == Some('&') && !double;
        self.finish(pipeline, background)?;
        self.at += if double || (piped && second == Some('&')) { 2 } else { 1 };
        Ok(if piped { pipeline } else { self.state.pipeline() })
    }

    /// A bracket: of a function, of arithmetic, or of commands on their own.
    fn bracket(&mut self, pipeline: usize) -> Result<(), Unreadable> {
        let rest = self.chars.get(self.at + 1..).unwrap_or_default();
        let blank = rest.iter().take_while(|c| c.is_whitespace()).count();
        if self.fields.len() == 1 && rest.get(blank) == Some(&')') {
            let name = self.fields.iter().map(Field::text).collect();
            self.state.script.functions.push(name);
            self.fields.clear();
            self.at += blank + 2;
            return Ok(());
        }
        self.finish(pipeline, false)?;
        self.at += 1;
        if self.peek(0) == Some('(') {
            return self.arithmetic();
        }
        self.nested_list()
    }

    /// Commands in brackets, of the same text.
    pub(super) fn nested_list(&mut self) -> Result<(), Unreadable> {
        let outer = (
            std::mem::take(&mut self.fields),
            std::mem::take(&mut self.redirects),
            std::mem::take(&mut self.sources),
            self.fed.take(),
        );
        self.depth += 1;
        self.list(Some(')'))?;
        self.depth -= 1;
        (self.fields, self.redirects, self.sources, self.fed) = outer;
        Ok(())
    }

    /// To the end of `((…))`, whose first bracket was read. Only what runs in it counts.
    pub(super) fn arithmetic(&mut self) -> Result<(), Unreadable> {
        let start = self.at;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.peek(0).ok_or(Unreadable::Unbalanced)? {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        let text: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        self.expanded(&text).map(|_| ())
    }

    /// `<(…)`: a file that is the output of commands.
    fn process(&mut self) -> Result<(), Unreadable> {
        self.at += 2;
        let first = self.state.script.commands.len();
        self.nested_list()?;
        self.note_sources(first)?;
        let mut field = Field::default();
        field.push_unknown("<(…)");
        self.fields.push(field);
        Ok(())
    }

    pub(super) fn note_sources(&mut self, first: usize) -> Result<(), Unreadable> {
        let made = self.state.script.commands.iter().skip(first);
        let names: Vec<String> = made.map(Simple::name).collect();
        self.add_sources(names)
    }

    /// Notes commands whose output the words of this command are made of, each once.
    pub(super) fn add_sources(&mut self, names: Vec<String>) -> Result<(), Unreadable> {
        self.state.work.charge_each(names.len(), SOURCE + self.sources.len())?;
        for name in names {
            if !self.sources.contains(&name) {
                self.sources.push(name);
            }
        }
        Ok(())
    }

    fn redirect(&mut self) -> Result<(), Unreadable> {
        let start = self.at;
        while self.peek(0).is_some_and(|c| matches!(c, '<' | '>' | '&' | '|'))
            && self.at < start + 3
        {
            self.at += 1;
        }
        let mark: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        if mark == "<<" {
            let strips = self.peek(0) == Some('-');
            self.at += usize::from(strips);
            return self.here_document(strips);
        }
        while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
        if matches!(self.peek(0), Some('<' | '>')) && self.peek(1) == Some('(') {
            return self.process();
        }
        let before = self.fields.len();
        self.word()?;
        let target: Vec<Field> = self.fields.drain(before.min(self.fields.len())..).collect();
        let Some(target) = target.first() else { return Ok(()) };
        if mark == "<<<" {
            self.fed = Some(target.text());
            return Ok(());
        }
        let text = target.text();
        let number =
            mark.ends_with('&') && (text == "-" || text.bytes().all(|b| b.is_ascii_digit()));
        if !number {
            let writes = mark.contains('>');
            self.redirects
                .extend(target.words(self.state.work)?.into_iter().map(|word| (writes, word)));
        }
        Ok(())
    }

    /// The lines after this one, up to the word that ends them. They are taken out of the text.
    fn here_document(&mut self, strips: bool) -> Result<(), Unreadable> {
        while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
        self.state.here_documents += 1;
        if self.state.here_documents > MAX_HERE_DOCUMENTS {
            return Err(Unreadable::TooMuch);
        }
        let before = self.fields.len();
        self.word()?;
        let end: Vec<Field> = self.fields.drain(before.min(self.fields.len())..).collect();
        let Some(end) = end.first() else { return Ok(()) };
        let literal = end.marks.iter().any(|mark| mark.quoted) || end.quoted;
        let end = end.text();
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let Some(line_end) = rest.iter().position(|c| *c == '\n') else { return Ok(()) };
        let body_start = self.at + line_end + 1;
        self.state.work.charge_each(self.chars.len() - self.at, 2)?;
        let body: String = self.chars.get(body_start..).unwrap_or_default().iter().collect();
        let mut taken = 0;
        let mut text = String::new();
        for line in body.split_inclusive('\n') {
            taken += line.chars().count();
            let line = if strips { line.trim_start_matches('\t') } else { line };
            if line.trim_end_matches('\n') == end {
                break;
            }
            text.push_str(line);
        }
        self.chars.drain(body_start..body_start + taken);
        self.fed = Some(if literal { text } else { self.expanded(&text)? });
        Ok(())
    }

    /// Ends a command and stores it.
    fn finish(&mut self, pipeline: usize, background: bool) -> Result<(), Unreadable> {
        let fields = std::mem::take(&mut self.fields);
        let redirects = std::mem::take(&mut self.redirects);
        let sources = std::mem::take(&mut self.sources);
        let fed = self.fed.take();
        let words = self.without_grammar(&fields, &sources)?;
        if words.is_empty() && redirects.is_empty() {
            return Ok(());
        }
        self.state.add(Simple { words, redirects, pipeline, background, sources, fed })
    }

    /// The words of a command without what belongs to the language: `if`, `do`, assignments.
    fn without_grammar(
        &mut self,
        fields: &[Field],
        sources: &[String],
    ) -> Result<Vec<Word>, Unreadable> {
        let mut rest = fields;
        while let Some((first, after)) = rest.split_first() {
            let text = first.text();
            match text.as_str() {
                "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done"
                | "{" | "}" | "!" | "time" | "coproc" | "esac" => {}
                "-p" if rest.len() < fields.len() => {}
                "function" => {
                    self.state.script.functions.extend(after.first().map(Field::text));
                    return Ok(Vec::new());
                }
                "case" => return Ok(Vec::new()),
                "for" | "select" => {
                    self.assign_loop(after, sources)?;
                    return Ok(Vec::new());
                }
                _ if self.assign(first, sources)? => {}
                _ => break,
            }
            rest = after;
        }
        let mut words: Vec<Word> = Vec::with_capacity(rest.len());
        for field in rest {
            words.extend(field.words(self.state.work)?);
        }
        self.declare(rest, &words, sources)?;
        Ok(words)
    }

    /// Commands that give variables their values.
    fn declare(
        &mut self,
        fields: &[Field],
        words: &[Word],
        sources: &[String],
    ) -> Result<(), Unreadable> {
        let declares = words.first().is_some_and(|word| {
            matches!(word.text.as_str(), "export" | "declare" | "local" | "readonly" | "typeset")
        });
        if declares {
            for field in fields.iter().skip(1) {
                self.assign(field, sources)?;
            }
        }
        if words.first().is_some_and(|word| word.text == "read") {
            words.iter().skip(1).for_each(|word| {
                self.state.variables.insert(word.text.clone(), Value::unknown(&word.text));
            });
        }
        match words {
            [set, rest @ ..] if set.text == "set" => self.give(rest),
            [shift, ..] if shift.text == "shift" && self.state.given.len() > 1 => {
                self.state.given.remove(1);
            }
            [printf, flag, name, rest @ ..] if printf.text == "printf" && flag.text == "-v" => {
                let words = [printf].into_iter().chain(rest).cloned().collect();
                let printed = output_of(&Simple { words, ..Simple::default() });
                let unknown = printed.is_none();
                let text = printed.unwrap_or_else(|| format!("${}", name.text));
                self.set(name.text.clone(), text, unknown, sources)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// `set -- a b`: what `$1` and `$2` stand for from then on.
    fn give(&mut self, words: &[Word]) {
        let flags = words.iter().take_while(|word| word.text.starts_with(['-', '+'])).count();
        let ends = words.iter().position(|word| word.text == "--").map(|place| place + 1);
        let rest = words.get(ends.unwrap_or(flags)..).unwrap_or_default();
        if ends.is_some() || !rest.is_empty() {
            let first = self.state.given.first().cloned().unwrap_or_else(|| "sh".to_owned());
            let rest = rest.iter().map(|word| word.text.clone());
            self.state.given = [first].into_iter().chain(rest).collect();
        }
    }

    /// `for x in a b c`: the variable stands for all of them.
    fn assign_loop(&mut self, words: &[Field], sources: &[String]) -> Result<(), Unreadable> {
        let Some((name, rest)) = words.split_first() else { return Ok(()) };
        let items: Vec<String> = rest.iter().skip(1).map(Field::text).collect();
        let unknown = rest.iter().any(|field| field.marks.iter().any(|mark| mark.unknown));
        self.set(name.text(), items.join(" "), unknown, sources)
    }

    /// Gives a variable its value.
    fn set(
        &mut self,
        name: String,
        text: String,
        unknown: bool,
        sources: &[String],
    ) -> Result<(), Unreadable> {
        self.state.work.charge_each(sources.len(), SOURCE)?;
        self.state.work.charge_each(text.len(), 1)?;
        let value = Value { text, unknown, sources: sources.to_vec() };
        self.state.variables.insert(name, value);
        Ok(())
    }

    /// `name=value`: keeps it, and says whether this was one.
    fn assign(&mut self, field: &Field, sources: &[String]) -> Result<bool, Unreadable> {
        let Some(equals) = field.marks.iter().position(|mark| mark.c == '=' && !mark.quoted) else {
            return Ok(false);
        };
        let name: String = field.marks.iter().take(equals).map(|mark| mark.c).collect();
        let appends = name.ends_with('+');
        let name = name.trim_end_matches('+').to_owned();
        if !is_variable(&name) {
            return Ok(false);
        }
        let marks = field.marks.get(equals + 1..).unwrap_or_default();
        let mut text: String = marks.iter().map(|mark| mark.c).collect();
        if let Some(before) = self.state.variables.get(&name).filter(|_| appends) {
            text = format!("{}{text}", before.text);
        }
        let unknown = marks.iter().any(|mark| mark.unknown);
        self.set(name, text, unknown, sources)?;
        Ok(true)
    }
}

pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
