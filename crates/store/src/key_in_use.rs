//! That a kernel's key is in use on this machine, wherever the store is: a copy of a store and its
//! data directory has the same keys, and locks of its own.

use chio_core::crypto::Keypair;

use crate::keys::Lock;

/// Notes that a key is in use, as long as the lock lives; none when it is in use already. Where the
/// system has no names for this, no use is known.
#[cfg(target_os = "linux")]
pub(crate) fn lock_key(key: &Keypair) -> Option<Lock> {
    use std::io::ErrorKind;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    // Only the owner of the secret knows the name, and the system forgets it with the process.
    let name = chio_core::hash::sha256_hex(format!("chio-kernel\0{}", *key.seed_hex()).as_bytes());
    let bound = SocketAddr::from_abstract_name(name).and_then(|it| UnixListener::bind_addr(&it));
    match bound {
        Ok(listener) => Some(Box::new(listener)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => None,
        Err(_) => Some(Box::new(())),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lock_key(_key: &Keypair) -> Option<Lock> {
    Some(Box::new(()))
}
