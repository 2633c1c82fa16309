//! `chio receipt export`: receipts with all that is needed to verify them.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use chio_core::bundle::BUNDLE_SCHEMA;
use chio_kernel::proof::{self, Part, Place};
use chio_kernel::store::{ReceiptQuery, SharedStore};
use serde_json::json;

use super::bundle::covers;
use super::filter::Filter;
use super::find;
use crate::files::Out;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on};
use crate::text;

/// How many receipts are read at once.
const PAGE: usize = 1000;
/// How long a running kernel may take to cover the newest receipts.
const PATIENCE: Duration = Duration::from_secs(2);

const HELP: &str = "\
A bundle holds receipts, the checkpoints over them, the proofs that tie them together, and the
authority's certificates. `chio receipt verify --bundle` needs nothing else but a public key.

Examples:
  chio receipt export --since 1d --out day.json
  chio receipt export --id 109bfb253f65 --out one.json
  chio receipt verify --bundle day.json --authority authority.pub";

/// Write receipts with all that is needed to verify them
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// This receipt, of whose id the beginning will do; can be repeated
    #[arg(long, value_name = "RECEIPT_ID")]
    id: Vec<String>,
    /// At most this many
    #[arg(long, default_value_t = 10_000)]
    limit: usize,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    out: Out,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let (store, places, more) = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        let query = args.filter.query(io, PAGE)?;
        let (places, more) = gather(args, &store, query).await?;
        wait_until_covered(&store, &places).await?;
        Ok((store, places, more))
    })?;
    if places.is_empty() {
        return Err(Refused::new("there is no such receipt").into());
    }
    let count = text::count(places.len(), "receipt");
    let (mut pending, mut coverage) = (0, Vec::new());
    args.out.write_pieces(io, ("exported", &count), |output| {
        let mut writer = BundleWriter { output, section: None };
        block_on(async {
            proof::export(&*store, &places, |part| {
                match &part {
                    Part::Entry(entry) if entry.inclusion.is_none() => pending += 1,
                    Part::Coverage(log) => coverage.push(log.clone()),
                    _ => {}
                }
                writer.write(&part)
            })
            .await?;
            writer.finish(&store.store_id().await?)
        })
    })?;
    if args.out.has_room_for_words() {
        io.list("coverage", coverage.iter().map(covers))?;
    }
    if pending > 0 {
        let pending = text::count(pending, "receipt");
        io.complain("warning", format_args!("{pending} not under a checkpoint yet"));
    }
    if more {
        let limit = args.limit;
        io.complain("warning", format_args!("there are more: only the newest {limit} are written"));
    }
    Ok(())
}

/// Writes a bundle, a line for each piece.
struct BundleWriter<'a> {
    output: &'a mut dyn Write,
    /// The member whose pieces are being written.
    section: Option<&'static str>,
}

impl BundleWriter<'_> {
    /// The members that are lists, in the order in which their pieces come.
    const SECTIONS: [&'static str; 5] =
        ["certificates", "checkpoints", "consistency", "entries", "coverage"];

    fn write(&mut self, part: &Part) -> Result<()> {
        let (section, text) = match part {
            Part::Certificate(part) => ("certificates", serde_json::to_string(part)?),
            Part::Checkpoint(part) => ("checkpoints", serde_json::to_string(part)?),
            Part::Consistency(part) => ("consistency", serde_json::to_string(part)?),
            Part::Entry(part) => ("entries", serde_json::to_string(part)?),
            Part::Coverage(part) => ("coverage", serde_json::to_string(part)?),
        };
        let between = if self.open(Some(section))? { "" } else { "," };
        write!(self.output, "{between}\n{}", text::visible_json(&text))?;
        Ok(())
    }

    /// Goes on to a section, past those without pieces. Tells whether it was not there already.
    fn open(&mut self, section: Option<&'static str>) -> Result<bool> {
        if self.section == section && section.is_some() {
            return Ok(false);
        }
        let place = |name| Self::SECTIONS.iter().position(|section| *section == name);
        let from = self.section.and_then(place).map_or(0, |at| at + 1);
        let until = section.and_then(place).map_or(Self::SECTIONS.len(), |at| at + 1);
        for (at, name) in Self::SECTIONS.iter().enumerate().take(until).skip(from) {
            let before = if at == 0 { "{" } else { "\n]," };
            write!(self.output, "{before}\n\"{name}\": [")?;
        }
        self.section = section;
        Ok(true)
    }

    fn finish(mut self, store_id: &str) -> Result<()> {
        self.open(None)?;
        let (schema, store_id) = (serde_json::to_string(BUNDLE_SCHEMA)?, json!(store_id));
        Ok(writeln!(self.output, "\n],\n\"schema\": {schema},\n\"store_id\": {store_id}\n}}")?)
    }
}

/// The receipts asked for, oldest first, and whether there are more than allowed.
async fn gather(
    args: &Args,
    store: &SharedStore,
    mut query: ReceiptQuery,
) -> Result<(Vec<Place>, bool)> {
    let mut places: Vec<Place> = Vec::new();
    for id in &args.id {
        let Some(row) = find::receipt(store, id).await? else {
            return Err(Refused::new(format!("there is no receipt `{id}` in the store")).into());
        };
        places.push(Place::from(&row));
    }
    let (mut more, mut names) = (false, HashSet::new());
    while args.id.is_empty() && !more {
        let page = store.query(&query).await?;
        let Some(last) = page.last() else { break };
        query.cursor = Some(last.cursor);
        for row in &page {
            let mut place = Place::from(row);
            // One name for all receipts of a log.
            match names.get(&place.log_id) {
                Some(name) => place.log_id = Arc::clone(name),
                None => drop(names.insert(Arc::clone(&place.log_id))),
            }
            places.push(place);
        }
        more = places.len() > args.limit;
    }
    places.truncate(args.limit);
    places.reverse();
    Ok((places, more))
}

/// Gives a running kernel time to cover the newest receipts.
async fn wait_until_covered(store: &SharedStore, places: &[Place]) -> Result<()> {
    let mut newest: HashMap<&str, u64> = HashMap::new();
    for place in places {
        let seq = newest.entry(&place.log_id).or_default();
        *seq = place.seq.max(*seq);
    }
    let start = Instant::now();
    for (log_id, seq) in newest {
        while store.covering(log_id, seq).await?.is_none() && start.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    Ok(())
}
