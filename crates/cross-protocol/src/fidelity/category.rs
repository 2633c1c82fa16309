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

/// What a name must have.
enum Sign {
    Contains(&'static str),
    StartsWith(&'static str),
}

impl Sign {
    fn is_on(&self, name: &str) -> bool {
        match self {
            Self::Contains(part) => name.contains(part),
            Self::StartsWith(beginning) => name.starts_with(beginning),
        }
    }
}

/// The signs of each category. The first category with a sign on the name is the tool's.
const SIGNS: [(AcpCategory, &[Sign]); 3] = [
    (
        AcpCategory::Filesystem,
        &[
            Sign::Contains("read_file"),
            Sign::Contains("write_file"),
            Sign::Contains("list_dir"),
            Sign::StartsWith("fs_"),
        ],
    ),
    (
        AcpCategory::Terminal,
        &[
            Sign::Contains("terminal"),
            Sign::Contains("exec"),
            Sign::Contains("shell"),
            Sign::Contains("command"),
        ],
    ),
    (
        AcpCategory::Browser,
        &[Sign::Contains("browser"), Sign::Contains("navigate"), Sign::Contains("screenshot")],
    ),
];

impl AcpCategory {
    /// Every category.
    pub const ALL: [Self; 4] = [Self::Filesystem, Self::Terminal, Self::Browser, Self::Tool];

    /// The category of a tool with this name, in any case of letters; `default` when it does not
    /// tell.
    pub fn of(tool_name: &str, default: Self) -> Self {
        let name = tool_name.to_lowercase();
        let mut categories = SIGNS.iter();
        let found = categories.find(|(_, signs)| signs.iter().any(|sign| sign.is_on(&name)));
        found.map_or(default, |(category, _)| *category)
    }
}

#[cfg(test)]
mod tests {
    use super::AcpCategory::{self, Browser, Filesystem, Terminal, Tool};

    // covers: BRIDGE-117, BRIDGE-118, BRIDGE-119, BRIDGE-120, BRIDGE-121
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
            for default in AcpCategory::ALL {
                assert_eq!(AcpCategory::of(name, default), expected.unwrap_or(default), "{name}");
            }
        }
        assert_eq!(AcpCategory::default(), Tool);
    }

    // covers: BRIDGE-114
    #[test]
    fn categories_are_written_as_published() {
        let written = AcpCategory::ALL.map(|category| serde_json::to_value(category).unwrap());
        assert_eq!(written, ["filesystem", "terminal", "browser", "tool"]);
    }
}
