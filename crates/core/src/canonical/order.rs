//! The order of object members: by UTF-16 code units, decided on UTF-8 bytes.

use std::cmp::Ordering;

/// The first lead byte of characters that come after the surrogates in UTF-16 (U+E000 and up).
const LEAD_AFTER_SURROGATES: u8 = 0xEE;
/// The first lead byte of characters that UTF-16 writes as surrogate pairs (U+10000 and up).
const LEAD_OF_PAIRS: u8 = 0xF0;

/// Compares two member names, which are UTF-8, as RFC 8785 orders them.
///
/// UTF-8 bytes sort by code point. UTF-16 agrees, but for characters above U+FFFF: their
/// surrogates (U+D800 to U+DFFF) sort before U+E000 to U+FFFF.
pub(super) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    // The first difference is between lead bytes, or between continuation bytes of characters
    // with one lead byte; only lead bytes reach the values compared below.
    let Some((l, r)) = left.iter().zip(right).find(|(l, r)| l != r) else {
        return left.len().cmp(&right.len());
    };
    let reversed = *l >= LEAD_AFTER_SURROGATES
        && *r >= LEAD_AFTER_SURROGATES
        && (*l >= LEAD_OF_PAIRS) != (*r >= LEAD_OF_PAIRS);
    if reversed { r.cmp(l) } else { l.cmp(r) }
}
