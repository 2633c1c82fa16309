//! Secrets that are looked for by their value, without keeping the value: a keyed hash of every
//! piece of each, in the forms that programs print bytes in.
//!
//! Only letters and digits count, in lower case, so that blanks, line ends and signs between them
//! hide nothing.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// How many letters and digits a piece has. Fewer are in ordinary text by chance, and tell little
/// of a key.
pub(crate) const LENGTH: usize = 16;
/// How many bits the quick look has.
const BITS: u64 = 1 << 16;

/// The pieces of all secrets.
#[derive(Clone)]
pub(crate) struct Pieces {
    keys: [u64; 2],
    /// A bit for each hash, for the quick look.
    quick: Vec<bool>,
    hashes: HashSet<u64>,
}

impl Default for Pieces {
    fn default() -> Self {
        let key = |text: &str| RandomState::new().hash_one(text);
        Self { keys: [key("first"), key("second")], quick: Vec::new(), hashes: HashSet::new() }
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("count", &self.hashes.len()).finish_non_exhaustive()
    }
}

/// The last letters and digits of a text.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    letters: u128,
    count: usize,
}

impl Window {
    /// One more, when it counts; tells whether the window is full.
    fn push(&mut self, byte: u8) -> bool {
        self.letters = (self.letters << 8) | u128::from(byte.to_ascii_lowercase());
        self.count += 1;
        self.count >= LENGTH
    }
}

impl Pieces {
    /// Whether there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Adds a secret: as it is, in base64 and in hex; and where it is hex itself, what it stands
    /// for in base64. One that is too short to be told from ordinary text is left out.
    pub(crate) fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.bytes().filter(u8::is_ascii_alphanumeric).count() < LENGTH {
            return;
        }
        let raw = Zeroizing::new(const_hex::decode(secret).unwrap_or_default());
        self.add_form(secret.as_bytes());
        for bytes in [secret.as_bytes(), raw.as_slice()] {
            self.add_form(Zeroizing::new(const_hex::encode(bytes)).as_bytes());
            // A text in base64 looks different wherever it stands among threes.
            for shift in 0..3 {
                self.add_form(base64(bytes.get(shift..).unwrap_or_default()).as_bytes());
            }
        }
    }

    fn add_form(&mut self, form: &[u8]) {
        let mut window = Window::default();
        for byte in form.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
            if window.push(*byte) {
                let hash = self.hash(window.letters);
                if self.quick.is_empty() {
                    self.quick = vec![false; usize::try_from(BITS).unwrap_or_default()];
                }
                if let Some(bit) = self.quick.get_mut(quick(hash)) {
                    *bit = true;
                }
                self.hashes.insert(hash);
            }
        }
    }

    fn hash(&self, letters: u128) -> u64 {
        let [low, high] = [letters, letters >> 64].map(|half| u64::try_from(half & MASK));
        let [one, two] = self.keys;
        let low = u128::from(low.unwrap_or_default() ^ one);
        let product = low * u128::from(high.unwrap_or_default() ^ two);
        let fold = |half: u128| u64::try_from(half & MASK).unwrap_or_default();
        fold(product) ^ fold(product >> 64)
    }

    /// A reader of texts, one after the other: a secret in pieces is one, too.
    pub(crate) fn search(&self) -> Search<'_> {
        Search { pieces: self, window: Window::default(), places: [(0, 0); LENGTH] }
    }
}

const MASK: u128 = u64::MAX as u128;

fn quick(hash: u64) -> usize {
    usize::try_from(hash % BITS).unwrap_or_default()
}

/// Looks for pieces of secrets.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    pieces: &'a Pieces,
    window: Window,
    /// Where the last letters stand: in which text, and where in it.
    places: [(usize, usize); LENGTH],
}

impl Search<'_> {
    /// Reads the next text, and tells the place of every letter that is part of a secret: its text
    /// and where it is in that.
    pub(crate) fn read(&mut self, number: usize, text: &str, mut see: impl FnMut(usize, usize)) {
        for (place, byte) in text.bytes().enumerate() {
            if !byte.is_ascii_alphanumeric() {
                continue;
            }
            let slot = self.window.count % LENGTH;
            if let Some(slot) = self.places.get_mut(slot) {
                *slot = (number, place);
            }
            if !self.window.push(byte) {
                continue;
            }
            let hash = self.pieces.hash(self.window.letters);
            if self.pieces.quick.get(quick(hash)) == Some(&true)
                && self.pieces.hashes.contains(&hash)
            {
                self.places.iter().for_each(|(number, place)| see(*number, *place));
            }
        }
    }
}

/// Base64 of as many bytes as make whole letters.
fn base64(bytes: &[u8]) -> Zeroizing<String> {
    let whole = bytes.len() - bytes.len() % 3;
    Zeroizing::new(STANDARD.encode(bytes.get(..whole).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "3f9a0c4be17d5582a6f0c9d1e2b3847556aa01fe99c8d7b6e5f403126789abcd";

    fn found(text: &str) -> usize {
        let mut pieces = Pieces::default();
        pieces.add(&format!("{SECRET}\n"));
        let mut seen = std::collections::BTreeSet::new();
        pieces.search().read(0, text, |_, place| {
            seen.insert(place);
        });
        seen.len()
    }

    #[test]
    fn a_secret_is_found_in_every_form_and_whole() {
        let raw = const_hex::decode(SECRET).unwrap();
        let encoded = base64(&raw).to_string();
        let line = format!("key: {SECRET}\n");
        for shift in 0..3 {
            let text = format!("{}{SECRET}{SECRET}", "x".repeat(shift));
            let text = base64(text.as_bytes()).to_string();
            assert!(found(&text) > 60, "{shift}");
        }
        assert_eq!(found(&line), 64);
        assert_eq!(found(&line.to_uppercase()), 64);
        assert!(found(&encoded) > 30);
        assert!(found(&const_hex::encode(SECRET)) == 128);
        let spread: String = SECRET.chars().flat_map(|c| [c, ' ']).collect();
        assert_eq!(found(&spread), 64);
        assert_eq!(found(SECRET.get(..20).unwrap()), 20);
    }

    #[test]
    fn other_text_is_left_alone() {
        assert_eq!(found(&"0123456789abcdef".repeat(100)), 0);
        assert_eq!(found(SECRET.get(..15).unwrap()), 0);
        let mut pieces = Pieces::default();
        pieces.add("short token");
        assert!(pieces.is_empty());
        assert!(!format!("{pieces:?}").contains("short"));
    }
}
