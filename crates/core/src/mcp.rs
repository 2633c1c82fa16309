//! Which methods are a part of MCP, and which are another's.

/// What the names of MCP's own requests begin with, in any version.
const REQUESTS: [&str; 14] = [
    "completion/",
    "elicitation/",
    "initialize",
    "logging/",
    "notifications/",
    "ping",
    "prompts/",
    "resources/",
    "roots/",
    "sampling/",
    "server/",
    "subscriptions/",
    "tasks/",
    "tools/",
];

/// MCP's own notifications, in any version; and what the names of ours begin with.
const NOTIFICATIONS: [&str; 13] = [
    "notifications/cancelled",
    "notifications/chio/",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
];

/// The longest name that is passed on.
const MAX_NAME: usize = 128;

/// Whether a request is no part of MCP, and has a name that can be passed on.
pub fn is_foreign_request(method: &str) -> bool {
    is_passable(method) && !REQUESTS.iter().any(|own| method.starts_with(own))
}

/// Whether a notification is no part of MCP, and has a name that can be passed on.
pub fn is_foreign_notification(method: &str) -> bool {
    is_passable(method)
        && !NOTIFICATIONS.iter().any(|own| method.starts_with(own))
        && (method.starts_with("notifications/") || is_foreign_request(method))
}

fn is_passable(method: &str) -> bool {
    !method.is_empty() && method.len() <= MAX_NAME && method.bytes().all(|it| it.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_part_of_mcp_is_told_by_its_name() {
        for (method, request, notification) in [
            ("acme/reindex", true, true),
            ("$/acme", true, true),
            ("notifications/acme/changed", false, true),
            ("notifications/progress", false, false),
            ("notifications/chio/tool_call_chunk", false, false),
            ("tools/call", false, false),
            ("tools/unheard_of", false, false),
            ("server/discover", false, false),
            ("initialize", false, false),
            ("", false, false),
            ("acme reindex", false, false),
            ("acme\u{e9}", false, false),
            (&"x".repeat(MAX_NAME + 1), false, false),
        ] {
            let found = (is_foreign_request(method), is_foreign_notification(method));
            assert_eq!(found, (request, notification), "{method}");
        }
    }
}
