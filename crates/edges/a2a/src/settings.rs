//! The section of the edge in the configuration: every member of [`A2aEdgeConfig`] has its key.

use chio_edge::limits::Rate;
use chio_edge::{EdgeContext, Form, Setting, SettingError, Settings};

use crate::card_url;
use crate::config::A2aEdgeConfig;

/// The most of anything that is counted.
const MANY: Form = Form::Number(1_000_000);
/// The most bytes of anything.
const BYTES: Form = Form::Number(1 << 40);

/// The keys.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new("servers", Form::Texts, "all", "the tool servers that are offered"),
    Setting::new("name", Form::Text, "Chio A2A Edge", "the agent's name"),
    Setting::new("description", Form::Text, "a general one", "what the agent is, for people"),
    Setting::new("version", Form::Text, "that of chio", "the agent's version, a semantic one"),
    Setting::new("url", Form::Text, "where it listens", "where clients reach it"),
    Setting::new("http_json", Form::Flag, "true", "whether HTTP+JSON is served, below /rest"),
    Setting::new(
        "accept_missing_version",
        Form::Flag,
        "false",
        "whether methods of 1.0 are taken without the header `A2A-Version`",
    ),
    Setting::new("tags", Form::TextLists, "{}", "tags of skills, by id"),
    Rate::SETTING,
    Setting::new("max_body", BYTES, "4194304", "how large one request may be, in bytes"),
    Setting::new("max_running", MANY, "256", "how many calls run at once"),
    Setting::new("max_open_tasks", MANY, "256", "how many tasks of one caller may not be over"),
    Setting::new("max_tasks", MANY, "10000", "how many tasks of one caller are kept that are over"),
    Setting::new("max_task_bytes", BYTES, "134217728", "how many bytes these have together"),
    Setting::new("max_deferred", BYTES, "262144", "how large a message for later may be, in bytes"),
    Setting::new("keep_tasks", Form::Duration, "24h", "how long a task is kept after its end"),
    Setting::new("max_contexts", MANY, "4096", "how many contexts are remembered beside tasks"),
    Setting::new("max_contexts_of_one", MANY, "1024", "how many of these are one caller's"),
    Setting::new("max_callers", MANY, "4096", "how many admitted callers are remembered"),
    Setting::new("remember_callers", Form::Duration, "30s", "how long they are remembered"),
];

pub(crate) fn wrong(key: &'static str, message: String) -> SettingError {
    SettingError { key: Some(key), message }
}

impl A2aEdgeConfig {
    pub(crate) fn from_settings(
        context: &EdgeContext,
        settings: &Settings,
    ) -> Result<Self, SettingError> {
        let url = match settings.text("url") {
            Some(url) => card_url::read(url).map_err(|message| wrong("url", message))?,
            None => context.base_url.clone(),
        };
        let mut options = Self::new(offered(context, settings)?, url);
        for (key, member) in [
            ("name", &mut options.agent_name),
            ("description", &mut options.agent_description),
            ("version", &mut options.agent_version),
        ] {
            if let Some(text) = settings.text(key) {
                text.clone_into(member);
            }
        }
        options.http_json = settings.flag("http_json").unwrap_or(true);
        options.accept_missing_version =
            settings.flag("accept_missing_version").unwrap_or(options.accept_missing_version);
        options.tags = settings.text_lists("tags");
        let limits = &mut options.limits;
        limits.rate = Rate::from_settings(settings);
        for (key, member) in [
            ("max_body", &mut limits.body_bytes),
            ("max_running", &mut limits.running),
            ("max_open_tasks", &mut limits.open_tasks),
            ("max_tasks", &mut limits.ended_tasks),
            ("max_task_bytes", &mut limits.ended_bytes),
            ("max_deferred", &mut limits.deferred_bytes),
            ("max_contexts", &mut limits.contexts),
            ("max_contexts_of_one", &mut limits.contexts_per_owner),
            ("max_callers", &mut limits.principals),
        ] {
            *member = settings.number(key).unwrap_or(*member);
        }
        let kept = settings.duration("keep_tasks");
        limits.task_retention = kept.unwrap_or(limits.task_retention);
        let remembered = settings.duration("remember_callers");
        limits.principal_lifetime = remembered.unwrap_or(limits.principal_lifetime);
        Ok(options)
    }
}

/// The tool servers that are offered: all that there are, or those that are named.
fn offered(context: &EdgeContext, settings: &Settings) -> Result<Vec<String>, SettingError> {
    let named = settings.texts("servers");
    if let Some(other) = named.iter().find(|name| !context.servers.contains(name)) {
        let known = context.servers.join(", ");
        return Err(wrong("servers", format!("expected some of {known}, found `{other}`")));
    }
    Ok(if named.is_empty() { context.servers.clone() } else { named.to_vec() })
}
