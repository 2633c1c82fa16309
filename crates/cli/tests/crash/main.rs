//! Processes that die, disks that forget and disks that fail: nothing that was answered is lost,
//! and nothing runs unrecorded.
//!
//! Every test prints its seed; `CHIO_CRASH_SEED` runs it again.
#![cfg(test)]

mod cancelled;
mod check;
mod clock;
mod failing_disk;
mod full_disk;
mod kill;
mod load;
mod own_key;
mod power_cut;
mod shim;
mod snapshot;
mod support;
mod two_processes;
mod unsynced;
