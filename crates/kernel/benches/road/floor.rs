//! The floors: what the same machine does without us.

use std::hint::black_box;
use std::time::{Duration, Instant};

use chio_core::crypto::Keypair;

/// Raw Ed25519 signatures a second, over as many bytes as a receipt has, on one core.
pub(crate) fn signing(turn: Duration) -> f64 {
    let (key, message) = (Keypair::from_seed(&[7; 32]), [b'x'; 1500]);
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < turn {
        for _ in 0..50 {
            black_box(key.sign(black_box(&message)));
        }
        count += 50;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}
