//! That a kernel's key is in use on this machine, wherever the store is: a copy of a store and its
//! data directory has the same keys, and locks of its own.
//!
//! A process that uses a key is bound to a name, `chio-kernel-USER-NONCE-HASH`, which only the owner
//! of the secret can derive for this user, and which the system forgets with the process. Everyone can
//! see such a name and bind it later, so it counts only while a process of that user is bound to it,
//! as the system says.

use chio_core::crypto::Keypair;

use crate::keys::Lock;

/// That a key is in use by this process, as long as this lives.
pub(crate) struct KeyInUse {
    pub(crate) lock: Lock,
    /// Another process uses it as well.
    pub(crate) elsewhere: bool,
}

/// Notes that a key is in use. Where the system has no names for this, no other use is known.
pub(crate) fn use_key(key: &Keypair) -> KeyInUse {
    #[cfg(target_os = "linux")]
    let (lock, elsewhere) = linux::use_key(&key.seed_hex());
    #[cfg(not(target_os = "linux"))]
    let (lock, elsewhere): (Lock, bool) = (Box::new(key.public_key().clone()), false);
    KeyInUse { lock, elsewhere }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::Read as _;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use chio_core::hash::sha256_hex;
    use rustix::net::sockopt::socket_peercred;
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };
    use uuid::Uuid;

    use crate::keys::Lock;

    const PREFIX: &str = "chio-kernel-";
    /// How much of the list of names is looked at, in bytes.
    const MOST: u64 = 16 << 20;

    pub(super) fn use_key(secret: &str) -> (Lock, bool) {
        let user = rustix::process::geteuid().as_raw();
        let random = Uuid::now_v7().as_u64_pair().1;
        let own = name(secret, user, &format!("{random:016x}"));
        // First bound, then looked: of two at once, one at least finds the other.
        let bound = SocketAddr::from_abstract_name(&own)
            .and_then(|address| UnixListener::bind_addr(&address));
        let elsewhere = names().iter().any(|other| *other != own && uses(secret, other));
        (bound.map_or_else(|_| Box::new(()) as Lock, |listener| Box::new(listener)), elsewhere)
    }

    /// The system has room for 107 bytes.
    fn name(secret: &str, user: u32, nonce: &str) -> String {
        let hash = sha256_hex(format!("chio-kernel\0{secret}\0{user}\0{nonce}").as_bytes());
        format!("{PREFIX}{user}-{nonce}-{hash}")
    }

    /// The names of this kind that processes are bound to.
    fn names() -> Vec<String> {
        let mut list = Vec::new();
        let read = File::open("/proc/net/unix").map(|file| file.take(MOST).read_to_end(&mut list));
        if read.is_err() {
            return Vec::new();
        }
        let list = String::from_utf8_lossy(&list);
        let names = list.lines().filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@'));
        names.filter(|name| name.starts_with(PREFIX)).map(str::to_owned).collect()
    }

    /// Whether a process uses this secret under a name.
    pub(super) fn uses(secret: &str, found: &str) -> bool {
        let mut parts = found.trim_start_matches(PREFIX).split('-');
        let user = parts.next().and_then(|user| user.parse().ok());
        let (Some(user), Some(nonce)) = (user, parts.next()) else { return false };
        found == name(secret, user, nonce) && owner(found) == Some(user)
    }

    /// Whose process is bound to a name. It is not waited for.
    fn owner(name: &str) -> Option<u32> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
        connect(&socket, &address).ok()?;
        Some(socket_peercred(&socket).ok()?.uid.as_raw())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn bind(name: &str) -> UnixListener {
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
        }

        #[test]
        fn a_key_is_in_use_as_long_as_a_process_holds_it() {
            let (first, alone) = use_key("secret-1");
            assert!(!alone);
            let (second, elsewhere) = use_key("secret-1");
            assert!(elsewhere);
            assert!(!use_key("secret-2").1);
            drop((first, second));
            assert!(!use_key("secret-1").1);
        }

        #[test]
        fn another_user_cannot_have_a_key_taken_for_one_in_use() {
            // This test is another user to everyone but itself.
            let own = rustix::process::geteuid().as_raw();
            let theirs = name("secret-3", own + 1, "0011223344556677");
            let _listener = bind(&theirs);
            assert_eq!(owner(&theirs), Some(own));
            assert!(!uses("secret-3", &theirs));
            assert!(!use_key("secret-3").1);
            // A name without the secret.
            let made_up = format!("{PREFIX}{own}-0011223344556677-{}", sha256_hex(b"secret-3"));
            let _listener = bind(&made_up);
            assert!(!use_key("secret-3").1);
            // One that was seen before, of no process any more.
            assert!(!uses("secret-3", &name("secret-3", own, "8899aabbccddeeff")));
        }
    }
}
