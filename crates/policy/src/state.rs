//! The state of guards over several calls. It outlives a policy: a document that is read anew does
//! not renew an allowance.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::own::Own;

/// How many meters there may be. When all are in use, calls that need another are denied.
const MAX_METERS: usize = 100_000;

/// The state of guards.
#[derive(Debug, Default)]
pub struct State {
    /// What belongs to the program itself.
    own: Arc<Own>,
    meters: Mutex<HashMap<String, Meter>>,
}

/// How much of an allowance is used. It flows back over time.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    /// In millionths.
    used: u128,
    /// In Unix seconds.
    at: u64,
    /// In how many seconds all of it flows back; 0 for never.
    window: u64,
}

impl State {
    /// A state in which nothing has happened yet, of a program to which this belongs.
    pub fn of(own: Arc<Own>) -> Self {
        Self { own, ..Self::default() }
    }

    /// What belongs to the program itself.
    pub const fn own(&self) -> &Arc<Own> {
        &self.own
    }
}

impl Meter {
    /// Whether there is nothing left to remember.
    const fn is_spent(&self, now: u64) -> bool {
        // A burst may take longer than a window to flow back.
        self.window != 0 && now.saturating_sub(self.at) / 100 >= self.window
    }
}

const MILLION: u128 = 1_000_000;

/// What a call takes of an allowance.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    /// The name of the meter that it counts on.
    pub(crate) meter: String,
    /// How much the call takes.
    pub(crate) takes: u64,
    /// How much flows back in `window` seconds.
    pub(crate) allowance: u64,
    /// In seconds; 0 when nothing ever flows back.
    pub(crate) window: u64,
    /// How much more than the allowance may be taken at once, in hundredths: 100 is none.
    pub(crate) burst: u64,
}

impl Draw {
    fn most(&self) -> u128 {
        u128::from(self.allowance) * u128::from(self.burst.max(100)) * MILLION / 100
    }

    fn used(&self, meter: Meter, now: u64) -> u128 {
        if self.window == 0 {
            return meter.used;
        }
        let elapsed = u128::from(now.saturating_sub(meter.at));
        let back = u128::from(self.allowance) * MILLION * elapsed / u128::from(self.window);
        meter.used.saturating_sub(back)
    }

    /// In how many seconds there is enough again; none when there never is.
    fn wait(&self, used: u128) -> Option<u64> {
        let over = (used + u128::from(self.takes) * MILLION).saturating_sub(self.most());
        let rate = u128::from(self.allowance) * MILLION;
        if self.window == 0 || rate == 0 || u128::from(self.takes) * MILLION > self.most() {
            return None;
        }
        u64::try_from((over * u128::from(self.window)).div_ceil(rate)).ok()
    }
}

/// Why a draw was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// The allowance of one draw is used up.
    Used {
        /// The index of the draw.
        place: usize,
        /// In how many seconds there is enough again; none when there never is.
        wait: Option<u64>,
    },
    /// There is no room for another meter.
    Full,
}

impl State {
    /// Takes all of it, or nothing.
    pub(crate) fn draw(&self, draws: &[Draw], now: u64) -> Result<(), Short> {
        let mut meters = self.meters.lock();
        for (place, draw) in draws.iter().enumerate() {
            let meter = meters.get(&draw.meter).copied().unwrap_or_default();
            let used = draw.used(meter, now);
            if used + u128::from(draw.takes) * MILLION > draw.most() {
                return Err(Short::Used { place, wait: draw.wait(used) });
            }
        }
        let new = draws.iter().filter(|draw| !meters.contains_key(&draw.meter)).count();
        if meters.len() + new > MAX_METERS {
            meters.retain(|_, meter| !meter.is_spent(now));
            if meters.len() + new > MAX_METERS {
                return Err(Short::Full);
            }
        }
        for draw in draws {
            let meter = meters.entry(draw.meter.clone()).or_default();
            meter.used = draw.used(*meter, now) + u128::from(draw.takes) * MILLION;
            // Time that goes backwards gives nothing back twice.
            meter.at = meter.at.max(now);
            meter.window = draw.window;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(meter: &str, takes: u64, allowance: u64, window: u64) -> Draw {
        Draw { meter: meter.to_owned(), takes, allowance, window, burst: 100 }
    }

    #[test]
    fn an_allowance_is_used_up_and_flows_back() {
        let state = State::default();
        let one = [draw("a", 1, 3, 60)];
        for _ in 0..3 {
            state.draw(&one, 1000).unwrap();
        }
        assert_eq!(state.draw(&one, 1000), Err(Short::Used { place: 0, wait: Some(20) }));
        assert_eq!(state.draw(&one, 1019), Err(Short::Used { place: 0, wait: Some(1) }));
        state.draw(&one, 1020).unwrap();
        assert!(state.draw(&one, 1020).is_err());
        // Another has an allowance of its own, and long ago is as good as never.
        state.draw(&[draw("b", 3, 3, 60)], 1020).unwrap();
        state.draw(&[draw("a", 3, 3, 60)], 9999).unwrap();
    }

    #[test]
    fn all_is_taken_or_nothing() {
        let state = State::default();
        let both = [draw("a", 1, 2, 60), draw("b", 1, 1, 60)];
        state.draw(&both, 0).unwrap();
        assert_eq!(state.draw(&both, 0), Err(Short::Used { place: 1, wait: Some(60) }));
        // The first was not debited by the refused one.
        state.draw(&both[..1], 0).unwrap();
        assert!(state.draw(&both[..1], 0).is_err());
    }

    #[test]
    fn what_is_larger_than_the_allowance_never_fits_and_a_burst_fits_once() {
        let state = State::default();
        let large = [draw("a", 5, 4, 60)];
        assert_eq!(state.draw(&large, 0), Err(Short::Used { place: 0, wait: None }));
        let burst = [Draw { burst: 150, ..draw("a", 6, 4, 60) }];
        state.draw(&burst, 0).unwrap();
        assert!(state.draw(&burst, 60).is_err());
        state.draw(&burst, 90).unwrap();
        // Without a window nothing flows back.
        state.draw(&[draw("total", 4, 4, 0)], 0).unwrap();
        let again = state.draw(&[draw("total", 1, 4, 0)], u64::MAX);
        assert_eq!(again, Err(Short::Used { place: 0, wait: None }));
    }

    #[test]
    fn time_that_goes_backwards_gives_nothing_back() {
        let state = State::default();
        let all = [draw("a", 2, 2, 60)];
        state.draw(&all, 1000).unwrap();
        assert!(state.draw(&all, 900).is_err());
        assert!(state.draw(&all, 1000).is_err());
    }

    #[test]
    fn a_full_table_denies() {
        let state = State::default();
        for number in 0..MAX_METERS {
            state.draw(&[draw(&number.to_string(), 1, 2, 60)], 0).unwrap();
        }
        assert_eq!(state.draw(&[draw("new", 1, 2, 60)], 0), Err(Short::Full));
        state.draw(&[draw("1", 1, 2, 60)], 0).unwrap();
        state.draw(&[draw("new", 1, 2, 60)], 6_100).unwrap();
    }
}
