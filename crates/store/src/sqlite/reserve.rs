//! Room on the disk that is set aside, so that a store on a full disk can still be stopped, have
//! tokens revoked, and be opened again.
//!
//! It is a file that is removed when a store is opened on a full disk. What is left of the room is
//! set aside again when the store is closed, and once a second by a kernel that runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use super::folder::Folder;
use crate::files::{open_lock, unreachable};

/// Bytes that are set aside.
const SIZE: u64 = 1 << 20;

/// Bytes without which the disk counts as full.
const LITTLE: u64 = SIZE / 2;

pub(crate) struct Reserve {
    folder: PathBuf,
    file: PathBuf,
    /// It was removed, so that there is room.
    gave_room: bool,
    /// Its length when a kernel last looked.
    looked: AtomicU64,
}

impl Reserve {
    /// The reserve of a store that is opened. Gives its room away if the disk is full.
    pub(crate) fn make_room(folder: &Folder) -> Self {
        let (folder, file) = (folder.path().to_owned(), folder.reserve());
        let mut reserve = Self { folder, file, gave_room: false, looked: AtomicU64::new(u64::MAX) };
        let is_full = room(&reserve.folder).is_some_and(|free| free < LITTLE);
        reserve.gave_room = is_full && fs::remove_file(&reserve.file).is_ok();
        reserve
    }

    /// Sets aside what is left of the room that was given away.
    pub(crate) fn keep_again(&self) {
        if self.gave_room {
            self.keep();
        }
    }

    /// Sets aside what is missing, unless that changed since the last look: a command that made room
    /// may still need it.
    pub(crate) fn keep_later(&self) {
        let length = self.length();
        if self.looked.swap(length, Ordering::Relaxed) == length {
            self.keep();
        }
    }

    fn length(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    /// Sets aside what is missing, as far as the disk has it.
    fn keep(&self) {
        let kept = self.length();
        if kept >= SIZE {
            return;
        }
        let Some(free) = room(&self.folder).filter(|free| *free > 0) else { return };
        let wanted = SIZE.min(kept.saturating_add(free));
        // Where this does not work there is no reserve; all else does.
        let _ = open_lock(&self.file).and_then(|file| {
            fallocate(&file, FallocateFlags::empty(), 0, wanted)
                .map_err(|error| unreachable(&self.file, &error.into()))
        });
    }
}

/// Bytes that this process may still write to the disk of a folder; none when that is not known.
pub(crate) fn room(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
