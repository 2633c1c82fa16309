//! The queue: bounded, ordered, and written in few pieces.

use std::sync::Arc;
use std::time::Duration;

use chio_core::message::AgentMessage;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::time::timeout;

use super::*;

fn outbox(capacity: usize, pipe: usize) -> (Arc<Outbox>, DuplexStream) {
    let outbox = Arc::new(Outbox::new(capacity));
    let (writer, reader) = tokio::io::duplex(pipe);
    let writing = Arc::clone(&outbox);
    tokio::spawn(async move { writing.write_to(writer).await });
    (outbox, reader)
}

// covers: WIRE-004, WIRE-005, WIRE-010, WIRE-011
#[tokio::test]
async fn frames_leave_in_order_and_the_end_follows_the_last() {
    let (outbox, mut reader) = outbox(4096, 64);
    outbox.send(&AgentMessage::Heartbeat).await.unwrap();
    outbox.send_payload(&[b'x'; 256]).await.unwrap();
    outbox.finish();
    assert_eq!(outbox.send(&AgentMessage::Heartbeat).await, Err(SendError::Closed));
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.unwrap();
    let expected = [b"\0\0\0\x14{\"type\":\"heartbeat\"}".as_slice(), &[0, 0, 1, 0], &[b'x'; 256]];
    assert_eq!(bytes, expected.concat());
}

#[tokio::test]
async fn a_sender_that_finds_no_room_waits_for_it() {
    let (outbox, mut reader) = outbox(100, 1);
    outbox.send_payload(&[0; 96]).await.unwrap();
    let wait = timeout(Duration::from_millis(50), outbox.send_payload(&[0; 1])).await;
    assert!(wait.is_err());
    // A payload beyond the capacity waits until all is written, and then goes.
    let (sent, read) = tokio::join!(outbox.send_payload(&[1; 500]), async {
        let mut bytes = [0; 100 + 504];
        reader.read_exact(&mut bytes).await.map(|_| bytes)
    });
    sent.unwrap();
    assert_eq!(read.unwrap().iter().filter(|byte| **byte == 1).count(), 501);
}

#[tokio::test]
async fn a_sender_that_waits_is_sent_away_when_the_reader_is_gone() {
    let (outbox, reader) = outbox(100, 1);
    outbox.send_payload(&[0; 96]).await.unwrap();
    let (sent, ()) = tokio::join!(outbox.send_payload(&[0; 96]), async { drop(reader) });
    assert_eq!(sent, Err(SendError::Closed));
    assert!(outbox.broken().is_cancelled());
}

// covers: WIRE-008
#[tokio::test]
async fn no_frame_is_too_large() {
    let (outbox, _reader) = outbox(100, 1);
    let sent = outbox.send_payload(&vec![0; MAX_PAYLOAD + 1]).await;
    assert_eq!(sent, Err(SendError::Frame(FrameError::TooLarge(1 + MAX_PAYLOAD as u64))));
}
