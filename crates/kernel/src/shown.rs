//! What servers say of themselves, as far as the output guards let models read it: the words of
//! manifests and lists, and how to use a server.
//!
//! What a guard holds is replaced by a notice, words first; an entry that does not pass even
//! without its words is not listed. What was looked at is remembered as long as it stays the same.

use std::sync::Arc;

use chio_core::capability::{CapabilityToken, ChioScope, Validity};
use chio_core::manifest::{ToolDefinition, ToolManifest};
use chio_core::protocol::DiscoveryProtocol;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::caller::Session;
use crate::guard::GuardInput;
use crate::kernel::Inner;
use crate::pipeline::{GuardMemo, Pipeline};
use crate::resource_provider::{ListKind, Offer};
use crate::road::{Reviewers, session_tool};
use crate::servers::Server;
use crate::work::{Work, aside};

/// What stands where words were withheld.
const NOTICE: &str =
    "[Withheld: what the server says here did not pass the output guards of the policy.]";
/// How many lists of one server are remembered: sessions may have their own.
const MAX_REMEMBERED: usize = 16;
/// Members that are words for readers, and nothing that a call depends on.
const WORDS: [&str; 6] = ["description", "title", "$comment", "examples", "default", "_meta"];

/// What was looked at before.
pub(crate) struct Remembered<T>(Mutex<Vec<Look<T>>>);

/// One look: by which guards, at what, and what was found: what may be shown of it, unless it says
/// otherwise.
struct Look<T, F = T> {
    by: Arc<Pipeline>,
    said: Arc<T>,
    found: Arc<F>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: PartialEq> Remembered<T> {
    fn find(&self, pipeline: &Arc<Pipeline>, said: &Arc<T>) -> Option<Arc<T>> {
        let remembered = self.0.lock();
        let is_same = |known: &Arc<T>| Arc::ptr_eq(known, said) || **known == **said;
        let mut looks = remembered.iter().filter(|look| Arc::ptr_eq(&look.by, pipeline));
        looks.find(|look| is_same(&look.said)).map(|look| Arc::clone(&look.found))
    }

    fn keep(&self, pipeline: &Arc<Pipeline>, said: Arc<T>, shown: &Arc<T>) {
        let mut remembered = self.0.lock();
        // A policy that is not in force any more is not asked again.
        remembered.retain(|look| Arc::ptr_eq(&look.by, pipeline));
        if remembered.len() >= MAX_REMEMBERED {
            remembered.remove(0);
        }
        let (by, found) = (Arc::clone(pipeline), Arc::clone(shown));
        remembered.push(Look { by, said, found });
    }
}

/// A tool that is not listed, since every call of it would be denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableTool {
    /// Its name.
    pub name: String,
    /// Why.
    pub problem: String,
}

/// Which tools of a manifest cannot be used, by which guards; as it was last looked at.
#[derive(Default)]
pub(crate) struct Usable(Mutex<Option<Look<ToolManifest, Vec<UnusableTool>>>>);

/// Which words an entry keeps.
#[derive(Clone, Copy)]
enum Words {
    /// All.
    All,
    /// Those of its parts, such as the arguments of a tool.
    OfParts,
    /// None.
    None,
}

impl Inner {
    /// A server's manifest.
    pub(crate) async fn shown_manifest(&self, server: &Server) -> Arc<ToolManifest> {
        let (said, pipeline) = (server.connection().manifest(), self.pipeline());
        let unusable = self.unusable_tools(server);
        if !pipeline.reviews() && unusable.is_empty() {
            return said;
        }
        if let Some(shown) = server.shown.manifests.find(&pipeline, &said) {
            return shown;
        }
        let mut shown = ToolManifest::clone(&said);
        let about = json!({
            "name": said.name, "description": said.description, "version": said.version,
        });
        let about = self.passed(&pipeline, &said.server_id, about).await;
        let text = |name: &str| about.as_ref().ok()?.get(name)?.as_str().map(str::to_owned);
        shown.name = text("name").unwrap_or_else(|| said.server_id.clone());
        shown.version = text("version").unwrap_or_else(|| "0".to_owned());
        shown.description = match &about {
            Ok(_) => text("description"),
            Err(_) => said.description.as_ref().map(|_| NOTICE.to_owned()),
        };
        shown.tools.clear();
        let is_usable = |tool: &&ToolDefinition| unusable.iter().all(|it| it.name != tool.name);
        for tool in said.tools.iter().filter(is_usable) {
            let Ok(entry) = serde_json::to_value(tool) else { continue };
            let entry = self.shown_entry(&pipeline, &said.server_id, &entry).await;
            let tool = entry.and_then(|entry| serde_json::from_value::<ToolDefinition>(entry).ok());
            shown.tools.extend(tool);
        }
        let shown = Arc::new(shown);
        server.shown.manifests.keep(&pipeline, said, &shown);
        shown
    }

    /// The tools of a server of which the guards in force would deny every call.
    pub(crate) fn unusable_tools(&self, server: &Server) -> Arc<Vec<UnusableTool>> {
        let (said, by) = (server.connection().manifest(), self.pipeline());
        if let Some(look) = &*server.shown.usable.0.lock()
            && Arc::ptr_eq(&look.by, &by)
            && Arc::ptr_eq(&look.said, &said)
        {
            return Arc::clone(&look.found);
        }
        let found = aside(|| unusable(&by, &said));
        for UnusableTool { name, problem } in &found {
            let server = said.server_id.as_str();
            tracing::warn!(server, tool = name, "the tool is not listed: {problem}");
        }
        let found = Arc::new(found);
        let look = Look { by, said, found: Arc::clone(&found) };
        *server.shown.usable.0.lock() = Some(look);
        found
    }

    /// A list of a server, as it writes it.
    pub(crate) async fn shown_list(
        &self,
        server_id: &str,
        server: &Server,
        kind: ListKind,
        mut said: Arc<Vec<Value>>,
    ) -> Arc<Vec<Value>> {
        if kind == ListKind::Tools {
            let unusable = self.unusable_tools(server);
            if !unusable.is_empty() {
                let name =
                    |entry: &Value| entry.get("name").and_then(Value::as_str).map(str::to_owned);
                let is_usable = |entry: &&Value| {
                    unusable.iter().all(|it| name(entry).as_ref() != Some(&it.name))
                };
                said = Arc::new(said.iter().filter(is_usable).cloned().collect());
            }
        }
        let pipeline = self.pipeline();
        if !pipeline.reviews() {
            return said;
        }
        if let Some(shown) = server.shown.lists.find(&pipeline, &said) {
            return shown;
        }
        let mut shown = Vec::with_capacity(said.len());
        for entry in said.iter() {
            shown.extend(self.shown_entry(&pipeline, server_id, entry).await);
        }
        let shown = Arc::new(shown);
        server.shown.lists.keep(&pipeline, said, &shown);
        shown
    }

    /// What a server offers to a session.
    pub(crate) async fn shown_offer(&self, server_id: &str, mut offer: Offer) -> Offer {
        let pipeline = self.pipeline();
        if !pipeline.reviews() {
            return offer;
        }
        if let Some(text) = offer.instructions.take() {
            let passed = self.passed(&pipeline, server_id, Value::String(text)).await;
            offer.instructions = Some(match passed {
                Ok(Value::String(text)) => text,
                _ => NOTICE.to_owned(),
            });
        }
        for name in ["experimental", "extensions"] {
            let Some(said) = offer.capabilities.remove(name) else { continue };
            if let Ok(shown) = self.passed(&pipeline, server_id, said).await {
                offer.capabilities.insert(name.to_owned(), shown);
            }
        }
        if let Some(said) = offer.server_info.take() {
            offer.server_info = self.passed(&pipeline, server_id, said).await.ok();
        }
        offer
    }

    /// An entry with as many of its words as pass; none when what a call depends on does not.
    async fn shown_entry(
        &self,
        pipeline: &Arc<Pipeline>,
        server_id: &str,
        entry: &Value,
    ) -> Option<Value> {
        let bare = with_words(entry, Words::None, Depth::Entry);
        for words in [Words::All, Words::OfParts, Words::None] {
            let candidate = with_words(entry, words, Depth::Entry);
            // Guards may change words; what a call depends on has to stay as it is.
            if let Ok(passed) = self.passed(pipeline, server_id, candidate).await
                && with_words(&passed, Words::None, Depth::Entry) == bare
            {
                return Some(passed);
            }
        }
        tracing::warn!(server = server_id, "an entry is not listed: the output guards hold it");
        None
    }

    /// Shows a value to every guard that looks at output.
    async fn passed(
        &self,
        pipeline: &Arc<Pipeline>,
        server_id: &str,
        value: Value,
    ) -> Result<Value, ()> {
        let (now, key) = (self.clock.unix_seconds(), self.key.public_key().clone());
        let validity = Validity { issued_at: now, expires_at: now };
        let token = CapabilityToken::draft("", key.clone(), key, ChioScope::default(), validity);
        let session = Session::anonymous(server_id, DiscoveryProtocol::Native);
        let (arguments, tool) = (Value::Object(Map::new()), session_tool());
        let (memo, work) = (GuardMemo::default(), Work::default());
        let input = GuardInput {
            request_id: "",
            token: &token,
            server_id,
            tool_name: &tool.name,
            arguments: &arguments,
            argument_bytes: 2,
            meta: None,
            tool: Some(tool),
            grant_index: 0,
            cost: None,
            session: &session,
            target: DiscoveryProtocol::Native,
            fidelity: None,
            intent: None,
            model: None,
            now,
            resumed: false,
            memo: &memo,
            work: &work,
        };
        let reviewed = Reviewers::new(pipeline, &input).review_all(value).await;
        reviewed.map(|reviewed| reviewed.value).map_err(drop)
    }
}

/// The tools of a manifest that some guard would deny every call of.
fn unusable(by: &Pipeline, said: &ToolManifest) -> Vec<UnusableTool> {
    let work = Work::long();
    let mut found = Vec::new();
    for tool in &said.tools {
        let mut problems =
            by.guards().iter().filter_map(|it| it.unusable(&said.server_id, tool, &work));
        if let Some(problem) = problems.next() {
            found.push(UnusableTool { name: tool.name.clone(), problem });
        }
    }
    found
}

/// What the members of an object are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Of an entry of a list.
    Entry,
    /// Of one of its parts.
    Part,
    /// Names that the server chose, such as those of arguments.
    Names,
}

/// The value with no more than these words; a notice stands in the place of a description.
fn with_words(value: &Value, words: Words, depth: Depth) -> Value {
    let keeps = match words {
        Words::All => return value.clone(),
        Words::OfParts => depth != Depth::Entry,
        Words::None => depth == Depth::Names,
    };
    match value {
        Value::Array(items) => {
            items.iter().map(|item| with_words(item, words, Depth::Part)).collect()
        }
        Value::Object(members) => {
            let mut left = Map::with_capacity(members.len());
            for (name, value) in members {
                let below = match name.as_str() {
                    "properties" | "$defs" | "definitions" | "patternProperties"
                        if depth != Depth::Names =>
                    {
                        Depth::Names
                    }
                    "annotations" if depth == Depth::Entry => Depth::Entry,
                    _ => Depth::Part,
                };
                if keeps || !WORDS.contains(&name.as_str()) {
                    left.insert(name.clone(), with_words(value, words, below));
                } else if name == "description" {
                    left.insert(name.clone(), Value::String(NOTICE.to_owned()));
                }
            }
            Value::Object(left)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_out_and_nothing_else() {
        let tool = json!({
            "name": "t", "title": "T", "description": "d", "annotations": {"title": "A", "readOnlyHint": true},
            "inputSchema": {
                "type": "object", "description": "s", "required": ["title"],
                "properties": {
                    "title": {"type": "string", "description": "p", "default": "x"},
                    "description": {"enum": ["a"]},
                },
            },
        });
        assert_eq!(with_words(&tool, Words::All, Depth::Entry), tool);
        let parts = with_words(&tool, Words::OfParts, Depth::Entry);
        assert_eq!(parts["inputSchema"], tool["inputSchema"]);
        assert_eq!(parts["description"], NOTICE);
        assert_eq!(
            (&parts["title"], &parts["annotations"]),
            (&Value::Null, &json!({"readOnlyHint": true}))
        );
        let none = with_words(&tool, Words::None, Depth::Entry);
        let schema = json!({
            "type": "object", "description": NOTICE, "required": ["title"],
            "properties": {
                "title": {"type": "string", "description": NOTICE},
                "description": {"enum": ["a"]},
            },
        });
        assert_eq!(none["inputSchema"], schema);
        assert_eq!(with_words(&none, Words::None, Depth::Entry), none);
    }
}
