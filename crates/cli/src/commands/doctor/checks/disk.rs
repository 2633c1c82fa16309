//! Whether there is room to write, and leave to.

use std::path::Path;

use rustix::fs::{Access, access, statvfs};

use crate::health::Check;

/// Below this, in bytes, a store soon takes no call any more.
const TOO_LITTLE: u64 = 16 << 20;
/// Below this, it is time to make room.
const LITTLE: u64 = 256 << 20;

/// Whether a folder, or the one in which it is to be made, can be written to.
pub(super) fn check(folder: &Path) -> Vec<Check> {
    // What is not there yet is made in the nearest folder that is.
    let is_there = |place: &&Path| place.exists() || place.as_os_str().is_empty();
    let Some(place) = folder.ancestors().find(is_there) else { return Vec::new() };
    let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
    let mut checks = Vec::new();
    if let Err(error) = access(place, Access::WRITE_OK | Access::EXEC_OK) {
        let found = format!("{} cannot be written to: {error}", place.display());
        let to_do = "let this user write there, or name another folder with `data`";
        checks.push(Check::wrong("folder", found).with_advice(to_do));
    }
    if let Ok(disk) = statvfs(place) {
        checks.push(room(place, disk.f_bavail.saturating_mul(disk.f_frsize)));
    }
    checks
}

/// What this many free bytes mean.
fn room(place: &Path, free: u64) -> Check {
    let shown = place.display();
    let found = format!("{} MiB are free where {shown} is", free >> 20);
    match free {
        ..TOO_LITTLE => Check::wrong("disk", format!("it is full: {found}"))
            .with_advice("make room: no call runs whose receipt cannot be written"),
        TOO_LITTLE..LITTLE => Check::note("disk", found),
        LITTLE.. => Check::fine("disk", found),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LITTLE, TOO_LITTLE, check, room};
    use crate::health::State;

    #[test]
    fn a_full_disk_is_wrong_and_one_that_fills_is_worth_a_word() {
        for (free, expected) in [
            (0, State::Wrong),
            (TOO_LITTLE - 1, State::Wrong),
            (TOO_LITTLE, State::Note),
            (LITTLE, State::Fine),
        ] {
            assert_eq!(room(Path::new("x"), free).state, expected, "{free}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_wrong() {
        // Nothing can be made in a device, by no user.
        let checks = check(Path::new("/dev/null/new"));
        assert!(checks.iter().any(|it| it.found.contains("cannot be written to")), "{checks:?}");
    }
}
