//! The receipts of an act among those that organisations have exported.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;

use super::tree::Found;
use crate::commands::receipt::bundle;
use crate::io::Io;
use crate::outcome::Refused;

/// Reads what was exported.
pub(super) fn read(io: &mut Io<'_>, files: &[PathBuf]) -> Result<Vec<Found>> {
    let entries = bundle::entries(io, files)?;
    Ok(entries.into_iter().map(|entry| Found::new(entry.receipt, entry.log_id)).collect())
}

/// The trace that a name is in, and all receipts of the act: those of the trace, and those that
/// name a request of it as the one that they were made for, or are named so.
pub(super) fn act(all: Vec<Found>, id: &str) -> Result<(Option<String>, Vec<Found>)> {
    let is_meant = |found: &&Found| {
        found.trace_id.as_deref() == Some(id)
            || found.request_id.as_deref() == Some(id)
            || found.receipt.id().starts_with(id)
    };
    // A request that has no receipt here is known from those that were made for it.
    let names_it = |found: &&Found| found.parent.as_ref().is_some_and(|it| it.request_id == id);
    let Some(meant) = all.iter().find(is_meant).or_else(|| all.iter().find(names_it)) else {
        let message = format!("there is no trace, receipt or request `{id}` in the exports");
        return Err(Refused::new(message).into());
    };
    let trace_id = meant.trace_id.clone();
    let mut names: HashSet<String> = meant.request_id.iter().cloned().collect();
    let (mut inside, mut outside) = (Vec::new(), all);
    loop {
        let before = inside.len();
        let (more, rest): (Vec<Found>, Vec<Found>) = outside.into_iter().partition(|found| {
            (trace_id.is_some() && found.trace_id == trace_id)
                || found.request_id.as_ref().is_some_and(|id| names.contains(id))
                || found.parent.as_ref().is_some_and(|parent| names.contains(&parent.request_id))
        });
        outside = rest;
        for found in &more {
            names.extend(found.request_id.clone());
            names.extend(found.parent.as_ref().map(|parent| parent.request_id.clone()));
        }
        inside.extend(more);
        if inside.len() == before {
            break;
        }
    }
    inside.sort_by_key(|found| found.receipt.timestamp());
    // One receipt may be in several exports.
    let mut seen = HashSet::new();
    inside.retain(|found| seen.insert(found.receipt.id().to_owned()));
    Ok((trace_id, inside))
}
