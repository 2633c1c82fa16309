//! The lists of a child: all their pages, and what is remembered of them.

use std::collections::HashMap;
use std::sync::Arc;

use chio_core::canonical;
use chio_kernel::ListKind;
use chio_net::jsonrpc::RpcError;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::conversation::Conversation;
use crate::error::McpError;
use crate::schema;

/// What is remembered of a child's lists, until it says that they have changed.
#[derive(Default)]
pub(crate) struct ListCache(Mutex<HashMap<ListKind, CachedList>>);

#[derive(Default)]
struct CachedList {
    /// How often the list has changed.
    changes: u64,
    entries: Option<Arc<Vec<Value>>>,
}

impl ListCache {
    /// The list has changed.
    pub(crate) fn forget(&self, kind: ListKind) {
        let mut cached = self.0.lock();
        let cached = cached.entry(kind).or_default();
        cached.changes += 1;
        cached.entries = None;
    }

    fn look(&self, kind: ListKind) -> (u64, Option<Arc<Vec<Value>>>) {
        let mut cached = self.0.lock();
        let cached = cached.entry(kind).or_default();
        (cached.changes, cached.entries.clone())
    }

    /// Remembers a list that was asked for after this many changes.
    fn keep(&self, kind: ListKind, changes: u64, entries: &Arc<Vec<Value>>) {
        let mut cached = self.0.lock();
        let cached = cached.entry(kind).or_default();
        if cached.changes == changes {
            cached.entries = Some(Arc::clone(entries));
        }
    }
}

/// How a kind is asked for: the server's capability, the method, and the member with the entries.
const fn terms(kind: ListKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ListKind::Tools => ("tools", "tools/list", "tools"),
        ListKind::Resources => ("resources", "resources/list", "resources"),
        ListKind::ResourceTemplates => {
            ("resources", "resources/templates/list", "resourceTemplates")
        }
        ListKind::Prompts => ("prompts", "prompts/list", "prompts"),
    }
}

/// All entries of one kind. A server that does not say that it has such a thing is not asked.
///
/// # Errors
/// When the server does not answer, or the list has no end.
pub(crate) async fn entries(
    conversation: &Conversation,
    capabilities: &Map<String, Value>,
    kind: ListKind,
) -> Result<Arc<Vec<Value>>, McpError> {
    let (capability, ..) = terms(kind);
    if !capabilities.contains_key(capability) {
        return Ok(Arc::default());
    }
    let (changes, cached) = conversation.list_cache.look(kind);
    if let Some(entries) = cached {
        return Ok(entries);
    }
    let mut entries = match all_pages(conversation, kind).await {
        // Many servers that have resources have no templates of them.
        Err(McpError::Answered { code: RpcError::METHOD_NOT_FOUND, .. })
            if kind == ListKind::ResourceTemplates =>
        {
            Vec::new()
        }
        listed => listed?,
    };
    if kind == ListKind::Tools {
        entries.iter_mut().for_each(put_right);
    }
    let entries = Arc::new(entries);
    conversation.list_cache.keep(kind, changes, &entries);
    Ok(entries)
}

/// Puts the input schema of a tool right; what it took stands in the entry's `_meta`.
fn put_right(entry: &mut Value) {
    // That is for us to say.
    if let Some(Value::Object(chio)) = entry.pointer_mut("/_meta/chio") {
        chio.remove("repaired");
    }
    let Some(Value::Object(schema)) = entry.get_mut("inputSchema") else { return };
    let repairs = schema::repair(schema);
    let Value::Object(entry) = entry else { return };
    if !repairs.is_empty() {
        let meta = entry.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        if let Value::Object(meta) = meta {
            meta.insert("chio".to_owned(), json!({"repaired": repairs}));
        }
    }
}

/// What it took to put the input schema of a tool right.
pub(crate) fn repairs(entry: &Value) -> impl Iterator<Item = &str> {
    let repairs = entry.pointer("/_meta/chio/repaired").and_then(Value::as_array);
    repairs.into_iter().flatten().filter_map(Value::as_str)
}

async fn all_pages(conversation: &Conversation, kind: ListKind) -> Result<Vec<Value>, McpError> {
    let limits = &conversation.settings.limits;
    let (_, method, member) = terms(kind);
    let (mut entries, mut bytes, mut params) = (Vec::new(), 0_usize, Map::new());
    for _ in 0..limits.max_pages {
        let page = conversation.request_within(limits.list, method, params).await?;
        let unexpected = McpError::Unexpected { expected: "a page of a list" };
        let Value::Object(mut page) = page else { return Err(unexpected) };
        let Some(Value::Array(found)) = page.remove(member) else { return Err(unexpected) };
        bytes = bytes.saturating_add(canonical::size(&found).map_or(usize::MAX, |it| it.bytes));
        entries.extend(found);
        for (what, found, max) in [
            ("entries in a list", entries.len(), limits.max_entries),
            ("bytes in a list", bytes, limits.max_list_bytes),
        ] {
            if found > max {
                return Err(McpError::TooMany { what, max });
            }
        }
        match page.remove("nextCursor") {
            Some(cursor @ Value::String(_)) => {
                params = Map::from_iter([("cursor".to_owned(), cursor)]);
            }
            _ => return Ok(entries),
        }
    }
    Err(McpError::TooMany { what: "pages in a list", max: limits.max_pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_changed_while_it_was_asked_for_is_not_remembered() {
        let list_cache = ListCache::default();
        let (changes, cached) = list_cache.look(ListKind::Tools);
        assert_eq!(cached, None);
        list_cache.forget(ListKind::Tools);
        list_cache.keep(ListKind::Tools, changes, &Arc::default());
        assert_eq!(list_cache.look(ListKind::Tools), (1, None));
        list_cache.keep(ListKind::Tools, 1, &Arc::default());
        assert_eq!(list_cache.look(ListKind::Tools), (1, Some(Arc::default())));
        assert_eq!(list_cache.look(ListKind::Prompts), (0, None), "another list");
        list_cache.forget(ListKind::Tools);
        assert_eq!(list_cache.look(ListKind::Tools), (2, None));
    }
}
