//! What each version has added to messages, by the published schemas.

use super::Version::{self, Jun2025, Mar2025, Nov2025};
use Object::{
    Annotations, Argument, Block, Client, Contents, Elicitation, Implementation, Progress, Prompt,
    Resource, Sampling, Server, Tool, ToolResult,
};

/// A kind of object in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// What a server can do.
    Server,
    /// What a client can do.
    Client,
    /// What a client can do when it is asked for a message of a model.
    Sampling,
    /// What a client can do when its user is asked.
    Elicitation,
    /// What a server says about itself.
    Implementation,
    Tool,
    /// A resource, a template of resources, or a link to one.
    Resource,
    Prompt,
    /// An argument of a prompt.
    Argument,
    ToolResult,
    /// A block of content.
    Block,
    Annotations,
    /// What a resource holds.
    Contents,
    Progress,
}

/// The members that a version has added to an object.
pub(super) const MEMBERS: &[(Version, Object, &[&str])] = &[
    (Mar2025, Server, &["completions"]),
    (Mar2025, Tool, &["annotations"]),
    (Mar2025, Progress, &["message"]),
    (Jun2025, Client, &["elicitation"]),
    (Jun2025, Implementation, &["title"]),
    (Jun2025, Tool, &["title", "outputSchema", "_meta"]),
    (Jun2025, Resource, &["title", "_meta"]),
    (Jun2025, Prompt, &["title", "_meta"]),
    (Jun2025, Argument, &["title"]),
    (Jun2025, ToolResult, &["structuredContent"]),
    (Jun2025, Block, &["_meta"]),
    (Jun2025, Annotations, &["lastModified"]),
    (Jun2025, Contents, &["_meta"]),
    (Nov2025, Server, &["tasks"]),
    (Nov2025, Client, &["tasks"]),
    (Nov2025, Sampling, &["context", "tools"]),
    (Nov2025, Elicitation, &["form", "url"]),
    (Nov2025, Implementation, &["description", "icons", "websiteUrl"]),
    (Nov2025, Tool, &["execution", "icons"]),
    (Nov2025, Resource, &["icons"]),
    (Nov2025, Prompt, &["icons"]),
];

/// The types of blocks of content that a version has added.
pub(super) const BLOCKS: &[(Version, &str)] = &[(Mar2025, "audio"), (Jun2025, "resource_link")];

/// The methods that a version has added, of requests and notifications.
pub(super) const METHODS: &[(Version, &str)] = &[
    (Jun2025, "elicitation/create"),
    (Nov2025, "notifications/elicitation/complete"),
    (Nov2025, "notifications/tasks/status"),
    (Nov2025, "tasks/cancel"),
    (Nov2025, "tasks/get"),
    (Nov2025, "tasks/list"),
    (Nov2025, "tasks/result"),
];

/// The params that a version has added to what a client is asked, without which the question is
/// another one: a client that would not see them is not asked.
pub(super) const PARAMS: &[(Version, &str)] = &[(Nov2025, "tools"), (Nov2025, "toolChoice")];
