//! Keeps calls away from Chio's own files and listeners, and its keys and tokens out of output.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Spent, Verdict, Work};
use chio_yaml::Section;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::secret_patterns::tree::{Cuts, visit, without};
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::shell::Copied;
use crate::facts::{Access, Action, Facts, has_word, normal_paths, percent_decoded, removes};
use crate::own::paths::{Use, absolute};
use crate::own::{DEFAULT_FOLDER, Known, Own};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "own-files",
    section: "chio.own_files",
    about: "Keeps Chio itself out of every agent's reach, in every policy; it cannot be switched \
            off. Denies calls that name the store, the data directory, a policy with its files, \
            `chio.yaml`, or a file of a key or a token, by whatever path, pattern, link or patch; \
            calls that connect to a listener of this process; and command lines that run `chio`. \
            Relative paths begin where the tool server works; what is copied into a folder has its \
            own name there. In output it withholds the keys \
            and tokens of this store, by their value, also in hex and base64 and in pieces of 16 \
            characters. A tool that walks through a folder above, or unpacks or encrypts what it \
            finds, cannot be judged by its arguments, nor can `git checkout`, `tar -x` and the like: \
            keep the store and the policy where no tool looks.",
    keys: &[],
    always: true,
    build,
};

/// What stands where a key or a token of ours was.
const WITHHELD: &str = "[withheld: a key or token of Chio]";
/// Signs that divide a text with a path of ours in it.
const DIVIDES: [char; 6] = [':', '=', ',', '@', '"', '\''];
/// What it takes to ask the file system about one name of a path.
const ASKING: usize = 200;
/// How many texts that are not said to be paths are compared with the file system.
const MAX_ASKED: usize = 512;
/// How many paths a tool that copies has.
const MAX_COPIED: usize = 16;
/// Commands that take away or move what they name with all that is in it.
const REMOVERS: &str = "rm rmdir mv shred unlink";
/// Commands that open it up, where they are told to go through all that is in it.
const OPENERS: &str = "chmod chown chgrp setfacl";

struct OwnFiles {
    own: Arc<Own>,
}

fn build(_: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    let path = format!("{DEFAULT_FOLDER}/authority.key");
    let forbidden = Some(ExampleCall::new("read_file", json!({ "path": path })));
    let guard = Arc::new(OwnFiles { own: Arc::clone(building.state.own()) });
    Some(Built { guard, forbidden })
}

/// What a call may touch, and the folders that its paths may begin in.
struct Named<'a> {
    facts: &'a Facts,
    /// Where the tool server's paths begin.
    starts: Vec<Start>,
    /// Where its texts may begin: there, and in every folder that the call names.
    folders: Vec<Start>,
    removes: bool,
    /// What it writes into folders under the names that something has elsewhere.
    copied: Vec<Copied>,
}

/// Where relative paths may begin.
#[derive(Clone)]
struct Start {
    folder: String,
    /// It may be one of ours, or lead to one.
    may_name: bool,
}

impl<'a> Named<'a> {
    fn new(known: &Known, input: &GuardInput<'_>, facts: &'a Facts) -> Self {
        let start = |folder: String| Start { may_name: known.may_name(&folder), folder };
        let starts = known.folders(input.server_id).map(|it| it.to_string_lossy().into_owned());
        let starts: Vec<Start> = starts.map(start).collect();
        let mut folders = starts.clone();
        for folder in &facts.folders {
            let below = starts.iter().map(|it| start(absolute(folder, &it.folder)));
            folders.extend(below);
        }
        let copied = copied(facts);
        Self { facts, starts, folders, removes: removes(input.tool_name), copied }
    }

    /// Whether a path is ours by its name, wherever it begins. To some servers, the root is the
    /// folder that they serve.
    fn is_ours(known: &Known, path: &str, starts: &[Start], uses: Use) -> bool {
        let may_be = uses.removes || known.may_name(path);
        starts.iter().filter(|start| may_be || start.may_name).any(|Start { folder, .. }| {
            let inner = path.strip_prefix('/').filter(|inner| !inner.is_empty());
            known.names(path, folder, uses)
                || inner.is_some_and(|inner| known.names(inner, folder, uses))
        })
    }

    /// How many steps it takes to compare all of it with what is ours.
    fn steps(&self, known: &Known, argument_bytes: usize) -> usize {
        let (facts, places) = (self.facts, known.places().count());
        let text = |text: &str, starts: usize| {
            let parts = 1 + text.matches(DIVIDES).count();
            text.len() * (1 + places / 16) + starts * (text.len() / 2 + parts * 2 * places)
        };
        let paths = facts.paths.iter().map(|path| text(&path.text, self.starts.len()));
        let named = facts.named.iter().map(|named| text(named, self.folders.len()));
        let taken = self.taken().map(|taken| text(&taken, self.folders.len()));
        let copied = self.copied.iter().flat_map(|Copied { into, names, .. }| {
            let starts = self.folders.len();
            names.iter().map(move |name| text(into, starts) + text(name, starts))
        });
        let unread = unread(facts).map(|unread| unread.len() * (1 + places / 16));
        let steps: usize = paths.chain(named).chain(taken).chain(copied).chain(unread).sum();
        // Each destination on this machine is compared with all numbers of the call.
        steps + facts.destinations.len() * (known.addresses.len() + argument_bytes / 8)
    }

    /// Why the call may not be, by the names that it has in it.
    fn refuses(&self, known: &Known) -> bool {
        let reads = Use { writes: false, removes: false };
        let facts = self.facts;
        facts.paths.iter().any(|path| {
            let uses = Use { writes: path.access != Access::Read, removes: self.removes };
            Self::is_ours(known, &path.normal, &self.starts, uses)
                || Self::part_is_ours(known, &path.text, &self.starts, reads)
        }) || facts.named.iter().any(|text| Self::part_is_ours(known, text, &self.folders, reads))
            || self.takes_away(known)
            || self.writes_over(known)
            || unread(facts).any(|text| known.mentions(text))
    }

    /// Whether a text is a path of ours, or has one in it behind a sign that divides: `if=/x`,
    /// `unix:/x`, `/x:/y`.
    fn part_is_ours(known: &Known, text: &str, starts: &[Start], uses: Use) -> bool {
        let ours = |part: &str| {
            let mut paths = normal_paths(part).into_iter().filter(|path| path != ".");
            paths.any(|path| Self::is_ours(known, &path, starts, uses))
        };
        ours(text) || (text.contains(DIVIDES) && text.split(DIVIDES).any(ours))
    }

    /// Whether a command takes away, or moves elsewhere, a folder that has ours in it.
    fn takes_away(&self, known: &Known) -> bool {
        let uses = Use { writes: true, removes: true };
        let mut paths = self.taken().flat_map(|taken| normal_paths(&taken));
        paths.any(|path| Self::is_ours(known, &path, &self.folders, uses))
    }

    /// Whether something that is copied or moved has the name and the place of ours.
    fn writes_over(&self, known: &Known) -> bool {
        self.copied.iter().any(|Copied { into, names, whole }| {
            let uses = |name| Use { writes: true, removes: *whole && name != "**" };
            names.iter().any(|name| {
                let paths = normal_paths(&format!("{into}/{name}"));
                paths.iter().any(|it| Self::is_ours(known, it, &self.folders, uses(name.as_str())))
            })
        })
    }

    /// What commands take away or move elsewhere.
    fn taken(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let commands = self.facts.scripts.iter().flatten().flat_map(|script| &script.commands);
        let removers = commands.filter(|command| {
            let deep = |text: &str| text == "--recursive" || is_flag(text, 'R');
            has_word(REMOVERS, &command.name())
                || (has_word(OPENERS, &command.name()) && command.arguments().any(deep))
        });
        let taken = removers.flat_map(|command| {
            let words = command.arguments().filter(|text| !text.starts_with('-'));
            let mut words: Vec<&str> = words.collect();
            if command.name() == "mv" {
                words.pop();
            }
            words.into_iter().map(Cow::Borrowed)
        });
        let emptied = self.facts.scripts.iter().flatten().flat_map(|script| script.emptied());
        taken.chain(emptied.map(Cow::Owned))
    }

    /// Paths that lead up again, as they are written: behind a link, `..` leads elsewhere than the
    /// names say.
    fn climbs(&self) -> impl Iterator<Item = String> {
        let paths = self.facts.paths.iter().map(|path| &path.text);
        let texts = paths.chain(&self.facts.named);
        let written = texts.map(|text| written(text)).filter(|text| climbs(text));
        written.flat_map(|path| self.folders.iter().map(move |it| absolute(&path, &it.folder)))
    }

    /// The paths to ask the file system about.
    fn asked(&self) -> BTreeSet<String> {
        let paths =
            self.facts.paths.iter().map(|path| (Cow::Borrowed(&*path.normal), &self.starts));
        let named = self.facts.named.iter().filter(|text| text.contains(['/', '\\']));
        let named = named.take(MAX_ASKED).flat_map(|text| normal_paths(text));
        let named = named.map(|path| (Cow::Owned(path), &self.folders));
        let each = paths.chain(named);
        each.flat_map(|(path, starts)| {
            starts.iter().map(move |start| absolute(&path, &start.folder))
        })
        .chain(self.climbs().take(MAX_ASKED))
        .collect()
    }
}

/// What a call writes into folders under the names that something has elsewhere.
fn copied(facts: &Facts) -> Vec<Copied> {
    let mut found: Vec<Copied> =
        facts.scripts.iter().flatten().flat_map(|script| script.copied()).collect();
    // A tool that copies or moves may take the name of a folder for where it goes to.
    let few = facts.action == Action::FileWrite && (2..=MAX_COPIED).contains(&facts.paths.len());
    let written = facts.paths.iter().filter(|path| few && path.access == Access::Write);
    found.extend(written.map(|folder| {
        let others = facts.paths.iter().filter(|path| path.text != folder.text);
        let names = others.filter_map(|path| path.normal.rsplit('/').next());
        let names = names.map(str::to_owned).collect();
        Copied { into: folder.normal.clone(), names, whole: false }
    }));
    found
}

/// A path as it is written, without what some programs take away: escapes, and `file:`.
fn written(text: &str) -> String {
    let text = percent_decoded(text.trim());
    let path = ["file://localhost", "file://", "file:"].iter().find_map(|it| text.strip_prefix(it));
    path.map_or_else(|| text.clone(), str::to_owned)
}

fn climbs(path: &str) -> bool {
    path.split('/').any(|name| name == "..")
}

/// Whether a text is one or more flags of one letter, with this among them.
fn is_flag(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}

/// The command lines and patches that cannot be read.
fn unread(facts: &Facts) -> impl Iterator<Item = &str> {
    let commands = facts.commands.iter().zip(&facts.scripts);
    let commands = commands.filter(|(_, script)| script.is_err()).map(|(text, _)| text.as_str());
    let unreadable = |text: &&String| crate::facts::patch::read(text).is_err();
    commands.chain(facts.patches.iter().filter(unreadable).map(String::as_str))
}

/// Whether a value has this number in it, as a number or as a text of its own.
fn has_number(value: &Value, number: u16) -> bool {
    match value {
        Value::Number(found) => found.as_u64() == Some(u64::from(number)),
        Value::String(text) => {
            text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.parse() == Ok(number))
        }
        Value::Array(items) => items.iter().any(|item| has_number(item, number)),
        Value::Object(members) => members.values().any(|item| has_number(item, number)),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Why a call may not be, as far as its arguments tell.
fn refusal(known: &Known, input: &GuardInput<'_>, named: &Named<'_>) -> Option<&'static str> {
    let facts = named.facts;
    let number = |number: u16| {
        has_number(input.arguments, number) || input.meta.is_some_and(|it| has_number(it, number))
    };
    if facts.destinations.iter().any(|to| known.listens(to, number)) {
        return Some("the call goes to a listener of Chio itself");
    }
    let mut scripts = facts.scripts.iter().flatten();
    if scripts.any(|script| script.commands.iter().any(|command| command.name() == "chio")) {
        return Some("the command line runs Chio itself");
    }
    // What is there is another thing to each process that looks.
    let own = |path: &String| ["/proc/", "/dev/"].iter().any(|it| path.starts_with(it));
    if facts.is_incomplete || named.climbs().any(|path| own(&path)) {
        return Some("it cannot be told whether the call names files of Chio itself");
    }
    named.refuses(known).then_some(NAMED)
}

const NAMED: &str = "the call names a file or folder of Chio itself";

#[async_trait]
impl Guard for OwnFiles {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let (facts, known) = (Facts::of_call(input)?, self.own.known());
        if facts.names_nothing() {
            return Ok(Verdict::Allow.into());
        }
        let named = Named::new(&known, input, facts);
        let steps = input.work.charge_each(named.steps(&known, input.argument_bytes), 1);
        steps.map_err(|spent| spent.to_string())?;
        if let Some(why) = refusal(&known, input, &named) {
            return Ok(Verdict::Deny(why.to_owned()).into());
        }
        let asked = named.asked();
        if asked.is_empty() {
            return Ok(Verdict::Allow.into());
        }
        let (places, starts) = (known.places().count(), named.starts.len());
        let steps = asked.iter().map(|path| {
            let names = path.split('/').count();
            // Only such a path is tried from each of its names on.
            let mounted =
                if known.mentions(path) { names * names * starts * places / 8 } else { 0 };
            names * ASKING + mounted
        });
        input.work.charge_each(steps.sum(), 1).map_err(|spent| spent.to_string())?;
        // A file system may be far away.
        let starts: Vec<String> = named.starts.into_iter().map(|start| start.folder).collect();
        let is_ours =
            move |path: &String| known.is_linked(path) || known.may_be_mounted(path, &starts);
        let look = move || asked.iter().any(is_ours);
        let linked = spawn_blocking(look).await.map_err(|error| error.to_string())?;
        Ok(if linked { Verdict::Deny(NAMED.to_owned()) } else { Verdict::Allow }.into())
    }

    fn review_mode(&self) -> ReviewMode {
        ReviewMode::EachChunk
    }

    async fn review(&self, input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        let less =
            less(&self.own.known(), output, input.work).map_err(|spent| spent.to_string())?;
        Ok(less.map_or(Review::Pass, Review::Replace))
    }
}

/// The output without the values of our keys and tokens; none where it has none.
fn less(known: &Known, output: &Value, work: &Work) -> Result<Option<Value>, Spent> {
    if known.pieces.is_empty() {
        return Ok(None);
    }
    let (mut search, mut number) = (known.pieces.search(), 0);
    let mut found: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut charged = Ok(());
    visit(output, &mut |leaf| {
        charged = charged.and_then(|()| work.charge_each(leaf.text.len(), 2));
        if charged.is_err() {
            return;
        }
        search.read(number, &leaf.text, |text, place| {
            found.insert((text, place));
        });
        number += 1;
    });
    charged?;
    let mut cuts = Cuts::new();
    for (text, place) in found {
        let cuts = cuts.entry(text).or_default();
        match cuts.last_mut() {
            // Signs between the letters go with them.
            Some((range, _)) if place - range.end <= SIGNS => range.end = place + 1,
            _ => cuts.push((place..place + 1, WITHHELD.to_owned())),
        }
    }
    Ok((!cuts.is_empty()).then(|| without(output, &cuts)))
}

/// How many signs may stand between two letters of one secret.
const SIGNS: usize = 8;
