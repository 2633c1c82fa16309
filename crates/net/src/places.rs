//! The places of a listener: how many connections it has at once, and which of them go when a client
//! comes and none is left.
//!
//! A connection goes when nothing runs for its client: first those that never sent anything whole,
//! then those between two requests, then those whose request does not arrive; of each the one that has
//! waited for longest. One whose request runs never goes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One client has at most this fraction of all places: one in four.
const SHARE: usize = 4;
/// How long a request may arrive before its connection counts as one that waits.
const ARRIVAL: Duration = Duration::from_secs(1);
/// How many bits of a state say what the connection does; the rest say since when.
const BITS: u32 = 3;

/// What a connection does, in the order in which they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// Nothing whole has come yet.
    Silent,
    /// It waits for the next request.
    Idle,
    /// A request has begun to arrive.
    Receiving,
    /// A request runs, or its answer leaves.
    Running,
    /// It is about to be closed.
    Evicted,
}

const ALL: [Doing; 5] =
    [Doing::Silent, Doing::Idle, Doing::Receiving, Doing::Running, Doing::Evicted];

/// The places of a listener. Clones share them.
#[derive(Debug, Clone)]
pub struct Places(Arc<Table>);

#[derive(Debug)]
struct Table {
    most: usize,
    began: Instant,
    open: Mutex<Open>,
    /// Woken when a place is free.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    places: HashMap<u64, Arc<State>>,
    /// How many places each address has, but for this machine's.
    addresses: HashMap<IpAddr, usize>,
    principals: HashMap<Box<str>, usize>,
}

#[derive(Debug)]
struct State {
    number: u64,
    address: Option<IpAddr>,
    principal: Mutex<Option<Box<str>>>,
    /// What it does, and since when in microseconds.
    doing: AtomicU64,
    evicted: CancellationToken,
}

/// The place of a connection. Dropping it makes room for another.
#[derive(Debug)]
pub struct Place {
    table: Weak<Table>,
    began: Instant,
    state: Arc<State>,
}

/// The client has too many connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected at most a quarter of all connections for one client, found more")]
pub struct TooMany;

/// By what a client's connections are counted: clients of this machine have one address, and a client
/// of IPv6 has a whole network of them.
fn counted(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    match address {
        _ if address.is_loopback() => None,
        IpAddr::V4(_) => Some(address),
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Some(IpAddr::V6(network.into()))
        }
    }
}

impl Places {
    /// A number of places, at least one.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Table {
            most: most.max(1),
            began: Instant::now(),
            open: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    /// A place for a client that has come from this address, if it has one; waits until one is free or
    /// can be made free.
    ///
    /// # Errors
    /// When the client has its share, and uses all of it.
    pub async fn take(&self, from: Option<IpAddr>) -> Result<Place, TooMany> {
        let address = from.and_then(counted);
        let mut told = false;
        loop {
            let freed = self.0.freed.notified();
            if let Some(place) = self.try_take(address)? {
                return Ok(place);
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!("all {} connections are in use: further clients wait", self.0.most);
            }
            // One whose request does not arrive can be had after a while.
            let _ = tokio::time::timeout(ARRIVAL, freed).await;
        }
    }

    fn try_take(&self, address: Option<IpAddr>) -> Result<Option<Place>, TooMany> {
        let table = &self.0;
        let now = table.now();
        let mut open = table.open.lock();
        let share = (table.most / SHARE).max(1);
        if let Some(address) = address
            && open.addresses.get(&address).is_some_and(|count| *count >= share)
            && !open.evict(now, |state| state.address == Some(address))
        {
            return Err(TooMany);
        }
        if open.places.len() >= table.most && !open.evict(now, |_| true) {
            return Ok(None);
        }
        open.last += 1;
        let state = Arc::new(State {
            number: open.last,
            address,
            principal: Mutex::default(),
            doing: AtomicU64::new(encode(Doing::Silent, now)),
            evicted: CancellationToken::new(),
        });
        open.places.insert(state.number, Arc::clone(&state));
        if let Some(address) = address {
            *open.addresses.entry(address).or_default() += 1;
        }
        drop(open);
        Ok(Some(Place { table: Arc::downgrade(table), began: table.began, state }))
    }
}

impl Table {
    fn now(&self) -> u64 {
        micros(self.began)
    }
}

fn micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX >> BITS)
}

const fn encode(doing: Doing, since: u64) -> u64 {
    (since << BITS) | doing as u64
}

fn decode(state: u64) -> (Doing, u64) {
    let index = usize::try_from(state & ((1 << BITS) - 1)).unwrap_or_default();
    (ALL.get(index).copied().unwrap_or(Doing::Evicted), state >> BITS)
}

impl Open {
    /// Closes the connection of this kind that goes first; false when none can go.
    fn evict(&mut self, now: u64, wanted: impl Fn(&State) -> bool) -> bool {
        let arrival = u64::try_from(ARRIVAL.as_micros()).unwrap_or(u64::MAX);
        loop {
            let candidates = self.places.values().filter(|state| wanted(state));
            let found = candidates.filter_map(|state| {
                let seen = state.doing.load(Ordering::Acquire);
                let (doing, since) = decode(seen);
                let goes = match doing {
                    Doing::Silent | Doing::Idle => true,
                    Doing::Receiving => now.saturating_sub(since) >= arrival,
                    Doing::Running | Doing::Evicted => false,
                };
                goes.then_some(((doing, since), seen, state))
            });
            let Some((_, seen, state)) = found.min_by_key(|(order, ..)| *order) else {
                return false;
            };
            let evicted = encode(Doing::Evicted, now);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            if state.doing.compare_exchange(seen, evicted, success, failure).is_ok() {
                let state = Arc::clone(state);
                state.evicted.cancel();
                self.remove(&state);
                return true;
            }
            // Its request has come meanwhile.
        }
    }

    fn remove(&mut self, state: &State) {
        if self.places.remove(&state.number).is_none() {
            return;
        }
        if let Some(address) = state.address {
            release(&mut self.addresses, &address);
        }
        if let Some(principal) = state.principal.lock().take() {
            release(&mut self.principals, &principal);
        }
    }
}

fn release<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Place {
    /// The place of a connection that has no others beside it.
    pub fn alone() -> Self {
        let state = State {
            number: 0,
            address: None,
            principal: Mutex::default(),
            doing: AtomicU64::new(encode(Doing::Silent, 0)),
            evicted: CancellationToken::new(),
        };
        Self { table: Weak::new(), began: Instant::now(), state: Arc::new(state) }
    }

    /// Nothing of the next request is here.
    pub fn idle(&self) {
        self.becomes(Doing::Idle);
    }

    /// A request has begun to arrive. False when the connection is about to be closed: then nothing
    /// is done for it any more.
    pub fn receiving(&self) -> bool {
        self.becomes(Doing::Receiving)
    }

    /// A request runs. False as with [`Self::receiving`].
    pub fn running(&self) -> bool {
        self.becomes(Doing::Running)
    }

    fn becomes(&self, doing: Doing) -> bool {
        let next = encode(doing, micros(self.began));
        let change = |state| (decode(state).0 != Doing::Evicted).then_some(next);
        self.state.doing.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }

    /// Whether nothing whole has come from the client so far.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        decode(self.state.doing.load(Ordering::Acquire)).0 == Doing::Silent
    }

    /// Whether a request has begun to arrive.
    #[must_use]
    pub fn is_receiving(&self) -> bool {
        decode(self.state.doing.load(Ordering::Acquire)).0 == Doing::Receiving
    }

    /// Waits until another client needs the place.
    pub async fn evicted(&self) {
        self.state.evicted.cancelled().await;
    }

    /// Counts the connection as one of this principal, whose request is on it.
    ///
    /// # Errors
    /// When the principal has its share, and uses all of it.
    pub fn belongs_to(&self, principal: &str) -> Result<(), TooMany> {
        if self.state.principal.lock().as_deref() == Some(principal) {
            return Ok(());
        }
        let Some(table) = self.table.upgrade() else { return Ok(()) };
        let now = table.now();
        let mut open = table.open.lock();
        if !open.places.contains_key(&self.state.number) {
            return Ok(());
        }
        let share = (table.most / SHARE).max(1);
        let is_theirs = |state: &State| state.principal.lock().as_deref() == Some(principal);
        if open.principals.get(principal).is_some_and(|count| *count >= share)
            && !open.evict(now, is_theirs)
        {
            return Err(TooMany);
        }
        let before = self.state.principal.lock().replace(principal.into());
        if let Some(before) = before {
            release(&mut open.principals, &before);
        }
        *open.principals.entry(principal.into()).or_default() += 1;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            table.open.lock().remove(&self.state);
            table.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn there(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    fn is_evicted(place: &Place) -> bool {
        place.state.evicted.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_go_first_and_the_longest_of_them() {
        let places = Places::new(5);
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(places.take(HERE).await.unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(taken[0].running() && taken[1].running() && taken[3].receiving());
        taken[1].idle();
        // The silent ones 2 and 4, then the idle one, then the one that does not arrive.
        for gone in [2, 4, 1, 3] {
            assert!(!is_evicted(&taken[gone]), "{gone}");
            taken.push(places.take(HERE).await.unwrap());
            assert!(is_evicted(&taken[gone]) && !taken[gone].receiving(), "{gone}");
            assert!(taken.last().unwrap().running());
        }
        let waits = tokio::time::timeout(Duration::from_secs(60), places.take(HERE)).await;
        assert!(waits.is_err(), "requests run on all");
        drop(taken.remove(0));
        places.take(HERE).await.unwrap();
    }

    #[tokio::test]
    async fn an_address_elsewhere_has_its_share_and_no_more() {
        let places = Places::new(8);
        let first = [places.take(there(1)).await.unwrap(), places.take(there(1)).await.unwrap()];
        assert!(first[0].running());
        let third = places.take(there(1)).await.unwrap();
        assert!(is_evicted(&first[1]) && third.running());
        assert_eq!(places.take(there(1)).await.unwrap_err(), TooMany);
        places.take(there(2)).await.unwrap();
        let network = |last: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        let six = [places.take(network(1)).await.unwrap(), places.take(network(2)).await.unwrap()];
        assert!(six.iter().all(Place::running));
        assert_eq!(places.take(network(3)).await.unwrap_err(), TooMany);
        drop(six);
        places.take(network(3)).await.unwrap();
    }

    #[tokio::test]
    async fn a_principal_has_its_share_and_no_more() {
        let places = Places::new(8);
        let mut taken = Vec::new();
        for _ in 0..2 {
            let place = places.take(HERE).await.unwrap();
            assert!(place.running());
            assert_eq!([place.belongs_to("alice"), place.belongs_to("alice")], [Ok(()), Ok(())]);
            taken.push(place);
        }
        let third = places.take(HERE).await.unwrap();
        assert!(third.running());
        assert_eq!(third.belongs_to("alice"), Err(TooMany));
        assert_eq!(third.belongs_to("bob"), Ok(()));
        taken[0].idle();
        assert_eq!(third.belongs_to("alice"), Ok(()));
        assert!(is_evicted(&taken[0]));
        drop((taken, third));
        let open = places.0.open.lock();
        assert!(open.places.is_empty() && open.principals.is_empty());
    }
}
