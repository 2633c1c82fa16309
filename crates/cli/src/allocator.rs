//! The allocator, and how soon it gives memory back.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A call allocates often, and frees on other threads: with one lock for each of a few arenas,
/// threads wait for each other more than once in every call.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// From what size on something has memory of its own, which the system has back as soon as it is
/// freed. The allocator looks before anything of ours runs.
const LARGE: &str = "MIMALLOC_ARENA_MAX_OBJECT_SIZE";

/// Has the allocator give back large things at once, unless somebody has said otherwise: kept for
/// its usual second, large answers that nobody reads cost twice their memory. Small things it keeps
/// for the next call. The process becomes itself again with that in its environment; if it cannot,
/// it goes on as it is.
pub(crate) fn give_back_at_once() {
    if env::var_os(LARGE).is_some() {
        return;
    }
    let mut words = env::args_os();
    if let (Ok(program), Some(name)) = (env::current_exe(), words.next()) {
        // Comes back only when it fails.
        let _ = Command::new(program).arg0(name).args(words).env(LARGE, "1M").exec();
    }
}
