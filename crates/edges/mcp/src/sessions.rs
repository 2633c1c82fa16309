//! All sessions: those that are open, and for a while those that were.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::events::Retained;
use crate::outlet::Outlet;
use crate::session::{McpSession, Stage};

/// How long it is remembered how a session ended.
const REMEMBERED: Duration = Duration::from_secs(30 * 60);
/// Of how many sessions it is remembered.
const MAX_REMEMBERED: usize = 4096;

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Table>);

#[derive(Default)]
struct Table {
    open: HashMap<String, Arc<McpSession>>,
    /// How many sessions are being opened by principals that are not admitted yet.
    unadmitted: usize,
    /// How many sessions are being opened, by owner.
    opening: HashMap<String, usize>,
    over: HashMap<String, Over>,
    /// In the order in which they ended.
    order: VecDeque<(Instant, String)>,
}

#[derive(Debug, Clone)]
struct Over {
    stage: Stage,
    owner: String,
}

/// What is known of a session id.
pub(crate) enum Found {
    /// It is open.
    Open(Arc<McpSession>),
    /// It was, and ended so.
    Over(Stage),
    /// It belongs to another principal.
    Foreign,
    /// Nothing.
    Unknown,
}

/// Room for a session that is being opened.
pub(crate) struct Reservation<'a> {
    sessions: &'a Sessions,
    /// None until the owner is admitted.
    owner: Option<String>,
}

impl Sessions {
    /// Reserves room for a session of a principal that is not admitted yet, if there is some left.
    pub(crate) fn reserve(&self, max: usize) -> Option<Reservation<'_>> {
        let mut table = self.0.lock();
        let opening = table.unadmitted + table.opening.values().sum::<usize>();
        if table.open.len() + opening >= max {
            return None;
        }
        table.unadmitted += 1;
        Some(Reservation { sessions: self, owner: None })
    }

    /// The session of this id, for this owner.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Found {
        let table = self.0.lock();
        if let Some(session) = table.open.get(id) {
            if session.owner != owner {
                return Found::Foreign;
            }
            return Found::Open(Arc::clone(session));
        }
        match table.over.get(id) {
            Some(over) if over.owner != owner => Found::Foreign,
            Some(over) => Found::Over(over.stage),
            None => Found::Unknown,
        }
    }

    /// Takes a session out, and remembers how it ended.
    pub(crate) fn end(&self, session: &McpSession, stage: Stage) {
        session.finish(stage);
        let mut table = self.0.lock();
        if table.open.remove(&session.id).is_some() {
            table.remember(session, stage);
        }
    }

    /// Ends those that their client has not used for so long.
    pub(crate) fn expire(&self, idle: Duration) {
        let now = Instant::now();
        let expired: Vec<_> = {
            let table = self.0.lock();
            table.open.values().filter(|session| session.is_idle(now, idle)).cloned().collect()
        };
        expired.into_iter().for_each(|session| self.expire_one(session));
        self.0.lock().forget(now);
    }

    fn expire_one(&self, session: Arc<McpSession>) {
        self.end(&session, Stage::Expired);
        tokio::spawn(async move { session.leave_servers().await });
    }

    /// Ends the session that was not used for longest, of this owner if one is named, if it was not
    /// used for so long.
    pub(crate) fn give_way(&self, owner: Option<&str>, idle: Duration) -> bool {
        let (now, open) = (Instant::now(), self.all().into_iter());
        let open = open.filter(|session| owner.is_none_or(|owner| session.owner == owner));
        let idle = open.filter(|session| session.is_idle(now, idle));
        let longest = idle.min_by_key(|session| session.last_used());
        longest.map(|session| self.expire_one(session)).is_some()
    }

    /// Makes room when all together keep too much: those that were not used for longest first.
    pub(crate) fn make_room(&self, retained: &Retained, max: usize) {
        if retained.bytes() <= max {
            return;
        }
        let mut sessions = self.all();
        sessions.sort_by_key(|session| session.last_used());
        for unread_too in [false, true] {
            for session in &sessions {
                if retained.bytes() <= max {
                    return;
                }
                if let Outlet::Events(events) = &session.outlet {
                    events.drop_messages(unread_too);
                }
            }
        }
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<Arc<McpSession>> {
        self.0.lock().open.values().cloned().collect()
    }

    /// Ends all.
    pub(crate) fn close_all(&self) -> Vec<Arc<McpSession>> {
        let open = self.all();
        for session in &open {
            self.end(session, Stage::Closed);
        }
        open
    }
}

impl Reservation<'_> {
    /// Counts the reservation as one of its owner, who is admitted; false when the owner has no more.
    pub(crate) fn assign(&mut self, owner: &str, each: usize) -> bool {
        let mut table = self.sessions.0.lock();
        let open = table.open.values().filter(|session| session.owner == owner).count();
        let opening = table.opening.get(owner).copied().unwrap_or_default();
        if open + opening >= each {
            return false;
        }
        table.unadmitted = table.unadmitted.saturating_sub(1);
        *table.opening.entry(owner.to_owned()).or_default() += 1;
        self.owner = Some(owner.to_owned());
        true
    }

    /// Opens the session in the reserved room.
    pub(crate) fn take(self, session: Arc<McpSession>) {
        self.sessions.0.lock().open.insert(session.id.clone(), session);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.0.lock();
        let Some(owner) = &self.owner else {
            table.unadmitted = table.unadmitted.saturating_sub(1);
            return;
        };
        if let Some(number) = table.opening.get_mut(owner) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                table.opening.remove(owner);
            }
        }
    }
}

impl Table {
    fn remember(&mut self, session: &McpSession, stage: Stage) {
        let over = Over { stage, owner: session.owner.clone() };
        self.over.insert(session.id.clone(), over);
        self.order.push_back((Instant::now(), session.id.clone()));
        while self.order.len() > MAX_REMEMBERED {
            if let Some((_, id)) = self.order.pop_front() {
                self.over.remove(&id);
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(at, _)| now.duration_since(*at) > REMEMBERED) {
            if let Some((_, id)) = self.order.pop_front() {
                self.over.remove(&id);
            }
        }
    }
}
