//! Frames: what is written, what is cut out of a stream, and what ends a connection.

use serde_json::json;

use super::*;
use crate::message::AgentMessage;

const HEARTBEAT: &[u8] = b"{\"type\":\"heartbeat\"}";

/// The prefix of a payload of this length.
fn prefix(length: u32) -> [u8; PREFIX_LEN] {
    length.to_be_bytes()
}

/// Everything that comes out of a decoder when the bytes arrive in pieces of this size.
fn decode(bytes: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut decoder = Decoder::default();
    let mut payloads = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.feed(piece);
        while let Some(payload) = decoder.next_payload()? {
            payloads.push(payload.to_vec());
        }
    }
    decoder.finish()?;
    Ok(payloads)
}

// covers: WIRE-004, WIRE-005, WIRE-010
#[test]
fn the_prefix_counts_the_payload_in_four_bytes_big_endian() {
    for (length, expected) in [
        (0, [0, 0, 0, 0]),
        (1, [0, 0, 0, 1]),
        (255, [0, 0, 0, 255]),
        (256, [0, 0, 1, 0]),
        (65_536, [0, 1, 0, 0]),
        (0x0001_0203, [0, 1, 2, 3]),
        (MAX_PAYLOAD, [1, 0, 0, 0]),
    ] {
        let payload = vec![b' '; length];
        let frame = encode_payload(&payload).unwrap();
        assert_eq!(frame[..PREFIX_LEN], expected, "{length}");
        assert_eq!(&frame[PREFIX_LEN..], payload, "{length}");
    }
    assert_eq!(PREFIX_LEN, 4);
}

// covers: WIRE-006, WIRE-011
#[test]
fn messages_are_written_in_canonical_form() {
    let expected = [&prefix(20), HEARTBEAT].concat();
    assert_eq!(encode(&AgentMessage::Heartbeat).unwrap(), expected);
    for (message, payload) in [
        (
            json!({"b": 1.0, "a": [1e21, "\u{7f}\u{1}"]}),
            "{\"a\":[1e+21,\"\u{7f}\\u0001\"],\"b\":1}",
        ),
        (json!({"\u{e000}": 1, "😀": 2}), "{\"😀\":2,\"\u{e000}\":1}"),
        (json!({}), "{}"),
    ] {
        let frame = encode(&message).unwrap();
        assert_eq!(&frame[PREFIX_LEN..], payload.as_bytes());
        assert_eq!(frame[..PREFIX_LEN], prefix(u32::try_from(payload.len()).unwrap()));
    }
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(encode(&deep), Err(CanonicalError::TooDeep.into()));
}

// covers: WIRE-007, WIRE-008
#[test]
fn the_largest_payload_is_sent_and_received_and_one_byte_more_is_not_sent() {
    assert_eq!(MAX_PAYLOAD, 16_777_216);
    let mut payload = vec![b'x'; MAX_PAYLOAD];
    let frame = encode_payload(&payload).unwrap();
    assert!(decode(&frame, 1 << 20).unwrap() == [payload.clone()]);
    payload.push(b'x');
    assert_eq!(encode_payload(&payload), Err(FrameError::TooLarge(16_777_217)));
    // The same by way of a message: two bytes are quotes.
    let text = "x".repeat(MAX_PAYLOAD - 2);
    assert_eq!(encode(&text).map(|frame| frame.len()), Ok(PREFIX_LEN + MAX_PAYLOAD));
    let text = "x".repeat(MAX_PAYLOAD - 1);
    assert_eq!(encode(&text), Err(FrameError::TooLarge(16_777_217)));
}

// covers: WIRE-009, WIRE-016
#[test]
fn a_length_beyond_the_limit_is_refused_as_soon_as_it_is_known() {
    for length in [16_777_217, 16_777_472, 0x0200_0000, 0x7fff_ffff, u32::MAX] {
        let mut decoder = Decoder::default();
        for byte in &prefix(length)[..3] {
            decoder.feed(&[*byte]);
            assert_eq!(decoder.next_payload(), Ok(None));
        }
        decoder.feed(&prefix(length)[3..]);
        let refused = FrameError::TooLarge(length.into());
        assert_eq!(decoder.next_payload(), Err(refused.clone()));
        assert_eq!(decoder.finish(), Err(refused.clone()));
        assert!(decoder.buffer.capacity() < 64, "nothing is reserved for it");
        let expected = format!(
            "message_too_large: expected at most 16777216 bytes of payload, found {length}"
        );
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn memory_grows_with_what_arrives_and_not_with_what_is_announced() {
    let mut decoder = Decoder::default();
    decoder.feed(&prefix(16_777_216));
    assert_eq!(decoder.next_payload(), Ok(None));
    assert!(decoder.buffer.capacity() < 64);
    decoder.feed(&[b'x'; 100]);
    assert_eq!(decoder.next_payload(), Ok(None));
    assert!(decoder.buffer.capacity() < 1024);
}

// covers: WIRE-018
#[test]
fn after_a_length_that_is_refused_nothing_more_is_read() {
    let heartbeat = encode_payload(HEARTBEAT).unwrap();
    let mut decoder = Decoder::default();
    decoder.feed(&heartbeat);
    decoder.feed(&prefix(u32::MAX));
    decoder.feed(&heartbeat);
    assert_eq!(decoder.next_payload(), Ok(Some(HEARTBEAT)), "what came before is good");
    for _ in 0..3 {
        assert_eq!(decoder.next_payload(), Err(FrameError::TooLarge(u32::MAX.into())));
        decoder.feed(&heartbeat);
    }
}

#[test]
fn frames_are_cut_wherever_the_stream_is_cut() {
    let payloads: [&[u8]; 6] = [HEARTBEAT, b"", b"x", &[0; 300], b"", HEARTBEAT];
    let stream = payloads.map(|payload| encode_payload(payload).unwrap()).concat();
    for piece in (1..40).chain([299, 300, 301, 304, stream.len(), stream.len() + 1]) {
        assert_eq!(decode(&stream, piece).unwrap(), payloads, "in pieces of {piece}");
    }
    for cut in 0..=stream.len() {
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        for part in [&stream[..cut], &stream[cut..]] {
            decoder.feed(part);
            while let Some(payload) = decoder.next_payload().unwrap() {
                seen.push(payload.to_vec());
            }
        }
        assert_eq!(seen, payloads, "cut at {cut}");
        assert_eq!(decoder.finish(), Ok(()));
    }
}

#[test]
fn two_frames_in_one_piece_are_two_payloads() {
    let mut decoder = Decoder::default();
    decoder.feed(&[&prefix(1)[..], b"a", &prefix(2), b"bc"].concat());
    assert_eq!(decoder.next_payload(), Ok(Some(&b"a"[..])));
    assert_eq!(decoder.next_payload(), Ok(Some(&b"bc"[..])));
    assert_eq!(decoder.next_payload(), Ok(None));
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn an_empty_payload_is_a_payload() {
    let mut decoder = Decoder::default();
    decoder.feed(&[0; 8]);
    assert_eq!(decoder.next_payload(), Ok(Some(&b""[..])));
    assert_eq!(decoder.next_payload(), Ok(Some(&b""[..])));
    assert_eq!(decoder.next_payload(), Ok(None));
    assert_eq!(encode_payload(b""), Ok(vec![0; 4]));
}

// covers: WIRE-014, WIRE-015
#[test]
fn an_end_inside_a_frame_is_a_closed_connection_and_no_message() {
    let frame = encode_payload(HEARTBEAT).unwrap();
    for before in [0, 1, 2] {
        let whole = frame.repeat(before);
        for cut in 0..=frame.len() {
            let stream = [&whole[..], &frame[..cut]].concat();
            let mut decoder = Decoder::default();
            decoder.feed(&stream);
            let mut payloads = 0;
            while decoder.next_payload().unwrap().is_some() {
                payloads += 1;
            }
            assert_eq!(payloads, before + usize::from(cut == frame.len()), "cut at {cut}");
            let expected = match cut {
                1..4 => Err(FrameError::Closed { expected: 4 - cut }),
                4..24 => Err(FrameError::Closed { expected: 24 - cut }),
                _ => Ok(()),
            };
            assert_eq!(decoder.finish(), expected, "cut at {cut}");
        }
    }
    let closed = FrameError::Closed { expected: 3 };
    let expected = "connection_closed: expected 3 more bytes of a frame, found the end";
    assert_eq!(closed.to_string(), expected);
}

#[test]
fn nothing_at_all_is_the_end_between_two_frames() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.finish(), Ok(()));
    decoder.feed(&[]);
    assert_eq!(decoder.next_payload(), Ok(None));
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn what_was_given_out_is_forgotten() {
    let frame = encode_payload(&[b'x'; 1000]).unwrap();
    let mut decoder = Decoder::default();
    for _ in 0..1000 {
        decoder.feed(&frame);
        assert!(decoder.next_payload().unwrap().is_some());
    }
    assert!(decoder.buffer.capacity() < 8 * frame.len());
}

#[test]
fn regression_frames_that_nobody_read_do_not_break_the_end() {
    let frame = encode_payload(b"{}").unwrap();
    let mut decoder = Decoder::default();
    decoder.feed(&frame);
    assert_eq!(decoder.finish(), Ok(()));
    decoder.feed(&frame);
    assert_eq!(decoder.finish(), Ok(()));
    decoder.feed(&frame[..5]);
    assert_eq!(decoder.finish(), Err(FrameError::Closed { expected: 1 }));
}
