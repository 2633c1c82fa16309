//! The allocator, and how soon it gives memory back.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

/// A call allocates often, and frees on other threads: with one lock for each of a few arenas,
/// threads wait for each other more than once in every call.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// From what size on something has memory of its own, which the system has back as soon as it is
/// freed. The allocator looks before anything of ours runs.
const LARGE: &str = "MIMALLOC_ARENA_MAX_OBJECT_SIZE";

/// Has the allocator give back large things at once, unless the environment says otherwise: kept
/// for its usual second, large answers that no client reads cost twice their memory. Small things
/// it keeps for the next call. The process becomes itself again with that in its environment.
pub(crate) fn give_back_at_once() -> Result<()> {
    if env::var_os(LARGE).is_some() {
        return Ok(());
    }
    let mut words = env::args_os();
    let (Ok(program), Some(name)) = (env::current_exe(), words.next()) else { return Ok(()) };
    // Comes back only when it fails, and then signals are no longer as they were: no process to
    // serve with.
    let error = Command::new(program).arg0(name).args(words).env(LARGE, "1M").exec();
    Err(error).context(format!("the program cannot start itself again; {LARGE}=1M spares it that"))
}
