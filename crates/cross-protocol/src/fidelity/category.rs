//! What kind of thing a tool works on, by its name.

use serde::{Deserialize, Serialize};

/// The kinds of tool that the Agent Client Protocol tells apart.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum AcpCategory {
    /// Files and folders.
    Filesystem,
    /// Commands.
    Terminal,
    /// Web pages.
    Browser,
    /// Anything else.
    #[default]
    Tool,
}

/// What stands in the names of each category. The first category with a sign on the name is the
/// tool's.
const SIGNS: [(AcpCategory, &[&str]); 3] = [
    (AcpCategory::Filesystem, &["read_file", "write_file", "list_dir"]),
    (AcpCategory::Terminal, &["terminal", "exec", "shell", "command"]),
    (AcpCategory::Browser, &["browser", "navigate", "screenshot"]),
];

/// How names of the first category may begin instead.
const FILESYSTEM: &str = "fs_";

impl AcpCategory {
    /// The category of a tool with this name, in any case of letters; `default` when it does not
    /// tell.
    pub fn of(tool_name: &str, default: Self) -> Self {
        let name = tool_name.to_lowercase();
        if name.starts_with(FILESYSTEM) {
            return Self::Filesystem;
        }
        let mut categories = SIGNS.iter();
        let found = categories.find(|(_, signs)| signs.iter().any(|sign| name.contains(sign)));
        found.map_or(default, |(category, _)| *category)
    }
}

#[cfg(test)]
mod tests {
    use super::AcpCategory::{self, Browser, Filesystem, Terminal, Tool};

    const ALL: [AcpCategory; 4] = [Filesystem, Terminal, Browser, Tool];

    #[test]
    fn the_first_category_with_a_sign_on_the_name_is_the_tools() {
        let cases = [
            ("read_file", Some(Filesystem)),
            ("fs_stat", Some(Filesystem)),
            ("write_file", Some(Filesystem)),
            ("my_list_directory", Some(Filesystem)),
            ("FS_Stat", Some(Filesystem)),
            ("nfs_stat", None),
            ("exec_command", Some(Terminal)),
            ("run_shell", Some(Terminal)),
            ("open_terminal", Some(Terminal)),
            ("Command", Some(Terminal)),
            ("browser_click", Some(Browser)),
            ("navigate_to", Some(Browser)),
            ("take_screenshot", Some(Browser)),
            ("search", None),
            ("get_weather", None),
            ("", None),
            // Several signs: the earlier row rules.
            ("exec_read_file", Some(Filesystem)),
            ("browser_exec", Some(Terminal)),
        ];
        for (name, expected) in cases {
            for default in ALL {
                assert_eq!(AcpCategory::of(name, default), expected.unwrap_or(default), "{name}");
            }
        }
        assert_eq!(AcpCategory::default(), Tool);
    }

    #[test]
    fn categories_are_written_as_published() {
        let written = ALL.map(|category| serde_json::to_value(category).unwrap());
        assert_eq!(written, ["filesystem", "terminal", "browser", "tool"]);
    }
}
