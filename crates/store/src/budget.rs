//! Which way to pay for a call fits, in any store.

use chio_kernel::store::{Alternative, Exhausted, Hold, Reserved, Spent, StoreResult};

/// The most that a book can hold: what fits the databases' integers.
const MOST: u64 = i64::MAX as u64;

/// What a call debits from a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Debit<'a> {
    pub(crate) capability_id: &'a str,
    pub(crate) grant_index: u32,
    pub(crate) invocations: u64,
    pub(crate) units: u64,
}

/// The alternative that can pay, if one can.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    /// The alternative at this place, with these debits.
    Take(usize, Vec<Debit<'a>>),
    /// None; this is what was missing in the last.
    Exhausted(Missing<'a>),
    /// There was none to choose from.
    Nothing,
}

/// The hold that does not fit, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing<'a> {
    hold: &'a Hold,
    what: Exhausted,
}

impl Missing<'_> {
    pub(crate) fn answer(&self) -> Reserved {
        Reserved::Exhausted {
            capability_id: self.hold.capability_id.clone(),
            grant_index: self.hold.grant_index,
            what: self.what,
        }
    }
}

/// Finds the first alternative of which every hold fits. `spent` tells what a grant has spent.
pub(crate) fn choose<'a>(
    alternatives: &'a [Alternative],
    mut spent: impl FnMut(&str, u32) -> StoreResult<Spent>,
) -> StoreResult<Choice<'a>> {
    let mut choice = Choice::Nothing;
    for (place, alternative) in alternatives.iter().enumerate() {
        match debits(&alternative.holds, &mut spent)? {
            Ok(debits) => return Ok(Choice::Take(place, debits)),
            Err(missing) => choice = Choice::Exhausted(missing),
        }
    }
    Ok(choice)
}

/// What these holds debit together, or the first that does not fit. Two holds on one grant both
/// count.
fn debits<'a>(
    holds: &'a [Hold],
    spent: &mut impl FnMut(&str, u32) -> StoreResult<Spent>,
) -> StoreResult<Result<Vec<Debit<'a>>, Missing<'a>>> {
    let mut debits: Vec<Debit<'a>> = Vec::with_capacity(holds.len());
    for hold in holds.iter().filter(|hold| hold.counts()) {
        let before = spent(&hold.capability_id, hold.grant_index)?;
        let same = |debit: &&mut Debit<'_>| {
            debit.grant_index == hold.grant_index && debit.capability_id == hold.capability_id
        };
        let taken = debits.iter_mut().find(same);
        let already = taken.as_ref().map_or_else(Spent::default, |debit| Spent {
            invocations: debit.invocations,
            units: debit.units,
        });
        let invocations = u64::from(hold.max_invocations.is_some());
        let units = if hold.max_units.is_some() { hold.units } else { 0 };
        let calls = [before.invocations, already.invocations, invocations];
        if !fits(calls, hold.max_invocations.map(u64::from)) {
            return Ok(Err(Missing { hold, what: Exhausted::Invocations }));
        }
        if !fits([before.units, already.units, units], hold.max_units) {
            return Ok(Err(Missing { hold, what: Exhausted::Cost }));
        }
        match taken {
            Some(debit) => {
                debit.invocations = debit.invocations.saturating_add(invocations);
                debit.units = debit.units.saturating_add(units);
            }
            None => debits.push(Debit {
                capability_id: &hold.capability_id,
                grant_index: hold.grant_index,
                invocations,
                units,
            }),
        }
    }
    Ok(Ok(debits))
}

/// Whether the sum stays within the bound, and within what a book can hold.
fn fits(parts: [u64; 3], most: Option<u64>) -> bool {
    let Some(most) = most else { return true };
    let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
    sum.is_some_and(|sum| sum <= most.min(MOST))
}

#[cfg(test)]
mod tests {
    use chio_kernel::store::{Alternative, Exhausted, Hold, Spent};

    use super::{Choice, Debit, Missing, choose};

    fn hold(grant_index: u32, calls: Option<u32>, units: u64, most: Option<u64>) -> Hold {
        let capability_id = "cap".to_owned();
        Hold { capability_id, grant_index, max_invocations: calls, units, max_units: most }
    }

    fn alternative(holds: Vec<Hold>) -> Alternative {
        Alternative { grant_index: 0, holds, price: None }
    }

    fn check(alternatives: &[Alternative], spent: Spent, expected: &Choice<'_>) {
        assert_eq!(&choose(alternatives, |_, _| Ok(spent)).unwrap(), expected);
    }

    #[test]
    fn two_holds_on_one_grant_both_count() {
        let both = hold(0, Some(2), 5, Some(10));
        let fitting = [alternative(vec![both.clone(), both.clone()])];
        let debit = Debit { capability_id: "cap", grant_index: 0, invocations: 2, units: 10 };
        check(&fitting, Spent::default(), &Choice::Take(0, vec![debit]));
        let third = [alternative(vec![both.clone(), both.clone(), both.clone()])];
        let missing = Missing { hold: &both, what: Exhausted::Invocations };
        check(&third, Spent::default(), &Choice::Exhausted(missing));
    }

    #[test]
    fn what_is_not_bounded_is_not_counted() {
        let only_calls = [alternative(vec![hold(0, Some(1), 7, None), hold(1, None, 7, None)])];
        let debit = Debit { capability_id: "cap", grant_index: 0, invocations: 1, units: 0 };
        check(&only_calls, Spent::default(), &Choice::Take(0, vec![debit]));
    }

    #[test]
    fn the_last_alternative_says_what_is_missing() {
        let (first, last) = (hold(0, Some(1), 0, None), hold(1, None, 2, Some(1)));
        let both = [alternative(vec![first]), alternative(vec![last.clone()])];
        let missing = Missing { hold: &last, what: Exhausted::Cost };
        check(&both, Spent { invocations: 1, units: 0 }, &Choice::Exhausted(missing));
        check(&[], Spent::default(), &Choice::Nothing);
    }

    #[test]
    fn sums_beyond_what_a_book_can_hold_do_not_fit() {
        let huge = hold(0, None, u64::MAX, Some(u64::MAX));
        let missing = Missing { hold: &huge, what: Exhausted::Cost };
        check(&[alternative(vec![huge.clone()])], Spent::default(), &Choice::Exhausted(missing));
    }
}
