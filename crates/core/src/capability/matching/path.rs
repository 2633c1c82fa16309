//! Which strings are paths, and which paths lie under a prefix.

use super::leaves::Leaf;

/// Member names that hold paths, besides those that contain `path`.
const PATH_MEMBERS: [&str; 6] = ["file", "filepath", "dir", "directory", "root", "cwd"];

/// Whether a string is a path, by its member name or by its looks.
pub(super) fn is_path(leaf: &Leaf<'_>) -> bool {
    let named = leaf.key.is_some_and(|key| {
        let key = key.to_lowercase();
        key.contains("path") || PATH_MEMBERS.contains(&key.as_str())
    });
    named || looks_like_path(leaf.text)
}

// A text that starts with `/`, `./`, `../` or `~/` also contains a slash.
fn looks_like_path(text: &str) -> bool {
    !text.contains("://") && text.contains(['/', '\\'])
}

/// Whether `path` lies under `prefix`, by whole segments, after `.` and `..` are resolved.
pub(super) fn is_under(path: &str, prefix: &str) -> bool {
    let (Some(segments), Some(prefix_segments)) = (resolve(path), resolve(prefix)) else {
        return false;
    };
    is_absolute(path) == is_absolute(prefix) && segments.starts_with(&prefix_segments)
}

fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '\\'])
}

/// The segments of a path; none when `..` leaves it.
fn resolve(path: &str) -> Option<Vec<&str>> {
    let mut segments = Vec::new();
    for segment in path.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            name => segments.push(name),
        }
    }
    Some(segments)
}
