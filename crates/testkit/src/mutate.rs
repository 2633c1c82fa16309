//! A deterministic source of broken inputs: seeds, cut, joined and altered.

/// A small generator of numbers (SplitMix64); the same seed gives the same run.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; zero when `bound` is.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// One of these; none when there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.below(from.len());
        from.get(index)
    }
}

/// Pieces that parsers trip over.
const TRICKY: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b":",
    b",",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"1.0",
    b"18446744073709551616",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\xF0\x9F\x98\x80",
    b"\xEF\xBF\xBE",
    b"\xFF",
    b"\"type\":",
    b"\"value\":",
    b"\"schema\":null",
    b"0x",
    b"*",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"\x00\x00\x00\x00",
    b"\xFF\xFF\xFF\xFF",
];

/// Makes one broken input out of the seeds.
#[must_use]
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        let end = at + random.below((input.len() - at).min(16) + 1);
        match random.below(7) {
            0 => flip(&mut input, at, random),
            1 => drop(input.drain(at..end)),
            2 => insert(&mut input, at, random.pick(TRICKY).copied().unwrap_or_default()),
            3 => input.truncate(at),
            4 => {
                let again = input.get(at..end).unwrap_or_default().to_vec();
                insert(&mut input, at, &again);
            }
            5 => {
                let other = random.pick(seeds).cloned().unwrap_or_default();
                let from = random.below(other.len());
                input.truncate(at);
                input.extend_from_slice(other.get(from..).unwrap_or_default());
            }
            _ => replace_number(&mut input, at, random),
        }
    }
    input
}

fn flip(input: &mut [u8], at: usize, random: &mut Random) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

/// Replaces the digits from `at` on with another number.
fn replace_number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let rest = input.get(at..).unwrap_or_default();
    let Some(start) = rest.iter().position(u8::is_ascii_digit).map(|p| at + p) else { return };
    let digits = input.get(start..).unwrap_or_default();
    let end = start + digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = match random.below(3) {
        0 => random.next().to_string(),
        1 => format!("{}.5", random.next()),
        _ => random.below(10).to_string(),
    };
    input.splice(start..end, number.bytes());
}
