//! Amounts of money, in minor units.

use serde::{Deserialize, Serialize};

/// An amount in a currency's minor units (cents).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonetaryAmount {
    /// Minor units.
    pub units: u64,
    /// The currency's code; its spelling is checked only where prices are published.
    pub currency: String,
}

impl MonetaryAmount {
    /// An amount of this many minor units.
    pub fn new(units: u64, currency: impl Into<String>) -> Self {
        Self { units, currency: currency.into() }
    }

    /// The amount that a text such as `500 USD` says: minor units and a currency's code.
    pub fn parse(text: &str) -> Option<Self> {
        let (units, currency) = text.split_once(' ')?;
        let units = units.parse().ok().filter(|_| is_currency(currency))?;
        Some(Self::new(units, currency))
    }

    /// Whether this is at most `ceiling`. Amounts of two currencies do not compare.
    #[must_use]
    pub fn is_within(&self, ceiling: &Self) -> bool {
        self.currency == ceiling.currency && self.units <= ceiling.units
    }
}

/// Whether a text has the form of a currency's code.
#[must_use]
pub fn is_currency(code: &str) -> bool {
    code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}
