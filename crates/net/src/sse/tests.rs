//! Events against the examples of the standard, hostile streams, and themselves.

use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{Decoder, Event, SseError, SseLimits};

/// The longest time to wait that is read, in milliseconds.
const DAY: u64 = 86_400_000;

fn event(event: Option<&str>, data: &str, id: Option<&str>, retry: Option<u64>) -> Event {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Event { event: own(event), data: data.to_owned(), id: own(id), retry }
}

fn decode(stream: &[u8], step: usize) -> Vec<Event> {
    let mut decoder = Decoder::default();
    stream.chunks(step).flat_map(|piece| decoder.feed(piece).unwrap()).collect()
}

#[test]
fn streams_are_read_as_the_standard_says_in_whatever_pieces() {
    let data = |data| event(None, data, None, None);
    let cases: Vec<(&str, Vec<Event>)> = vec![
        ("data: a\n\n", vec![data("a")]),
        ("data:a\n\n", vec![data("a")]),
        ("data:  a\n\n", vec![data(" a")]),
        ("data: a\r\n\r\n", vec![data("a")]),
        ("data: a\r\r", vec![data("a")]),
        ("data: a\r\ndata: b\r\n\r\n", vec![data("a\nb")]),
        ("data: a\r\n\ndata: b\n\r", vec![data("a"), data("b")]),
        ("data: a\rdata: b\n\r\ndata: c\r\n\r\n", vec![data("a\nb"), data("c")]),
        ("\u{feff}data: a\n\n", vec![data("a")]),
        ("\u{feff}\u{feff}data: a\n\n", vec![]),
        ("data: a\n\n\u{feff}data: b\n\n", vec![data("a")]),
        ("data: YHOO\ndata: +2\ndata: 10\n\n", vec![data("YHOO\n+2\n10")]),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n",
            vec![
                event(None, "first event", Some("1"), None),
                event(None, "second event", Some(""), None),
            ],
        ),
        ("data\n\ndata\ndata\n\ndata:", vec![data(""), data("\n")]),
        ("data:test\n\ndata: test\n\n", vec![data("test"), data("test")]),
        (
            "event: add\ndata: 1\n\ndata: 2\n\n",
            vec![event(Some("add"), "1", None, None), data("2")],
        ),
        ("event: add\n\ndata: 2\n\n", vec![data("2")]),
        ("event:\ndata: 2\n\n", vec![data("2")]),
        ("id: a\0b\ndata: 1\n\n", vec![data("1")]),
        ("id: 1\nid: 2\ndata: 1\n\n", vec![event(None, "1", Some("2"), None)]),
        ("retry: 150\ndata: 1\n\n", vec![event(None, "1", None, Some(150))]),
        ("retry: 1e3\ndata: 1\n\n", vec![data("1")]),
        ("retry: +1\nretry: -1\nretry:\nretry: 1 \ndata: 1\n\n", vec![data("1")]),
        ("retry: 86400000\ndata: 1\n\n", vec![event(None, "1", None, Some(DAY))]),
        ("retry: 86400001\ndata: 1\n\n", vec![event(None, "1", None, Some(DAY))]),
        ("retry: 18446744073709551615\ndata: 1\n\n", vec![event(None, "1", None, Some(DAY))]),
        ("retry: 99999999999999999999999\ndata: 1\n\n", vec![event(None, "1", None, Some(DAY))]),
        ("unknown: 1\nDATA: 1\n data: 1\ndata : 1\n:data: 1\n\n", vec![]),
        ("data: a:b: c\n\n", vec![data("a:b: c")]),
        ("data: é漢\n\n", vec![data("é漢")]),
        ("data: a\n", vec![]),
        ("\n\n\n", vec![]),
        ("", vec![]),
    ];
    for (stream, expected) in cases {
        for step in [1, 2, 3, 5, 1000] {
            assert_eq!(decode(stream.as_bytes(), step), expected, "{stream:?} by {step}");
        }
    }
}

#[test]
fn id_and_retry_count_also_without_data() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"id: 7\nretry: 10\n"), Ok(vec![]));
    assert_eq!((decoder.last_id(), decoder.last_retry()), (None, None));
    assert_eq!(decoder.feed(b"\n"), Ok(vec![]));
    assert_eq!((decoder.last_id(), decoder.last_retry()), (Some("7"), Some(10)));
    assert_eq!(decoder.feed(b"data: 1\n\n").unwrap().len(), 1);
    assert_eq!((decoder.last_id(), decoder.last_retry()), (Some("7"), Some(10)));
    decoder.feed(b"id\n\n").unwrap();
    assert_eq!(decoder.last_id(), Some(""));
}

#[test]
fn what_does_not_end_is_an_error_and_stays_one() {
    let limits = SseLimits { max_line: 20, max_event: 30 };
    let line = SseError::LineTooLong { limit: 20 };
    let large = SseError::EventTooLarge { limit: 30 };
    let cases: [(&[u8], SseError); 6] = [
        (b"data: 12345678901234567890", line),
        (b": 12345678901234567890", line),
        (b"data: 0123456789\ndata: 0123456789\ndata: 0123456789\n", large),
        (&b"data\n".repeat(31), large),
        (b"data: \xff\n", SseError::NotUtf8),
        (b"\xef\xbb\n", SseError::NotUtf8),
    ];
    for (stream, expected) in cases {
        for step in [1, 7, 1000] {
            let mut decoder = Decoder::new(limits);
            let outcome: Result<Vec<_>, _> =
                stream.chunks(step).map(|piece| decoder.feed(piece)).collect();
            assert_eq!(outcome, Err(expected), "{stream:?} by {step}");
            assert_eq!(decoder.feed(b"data: a\n\n"), Err(expected));
        }
    }
}

#[test]
fn what_just_fits_is_read() {
    let mut decoder = Decoder::new(SseLimits { max_line: 20, max_event: 30 });
    let stream = b"data: 01234567890123\ndata: 01234567890123\n\ndata: 01234567890123\n\n";
    assert_eq!(decoder.feed(stream).unwrap().len(), 2);
}

/// An event without line breaks but in its data, as text.
fn written(event: &Event) -> String {
    let mut lines = Vec::new();
    lines.extend(event.event.as_ref().map(|name| format!("event: {name}\n")));
    lines.extend(event.id.as_ref().map(|id| format!("id: {id}\n")));
    lines.extend(event.retry.map(|retry| format!("retry: {retry}\n")));
    lines.extend(event.data.split('\n').map(|line| format!("data: {line}\n")));
    lines.concat() + "\n"
}

fn any_event() -> impl Strategy<Value = Event> {
    let line = || "[^\\r\\n\\x00]{0,12}";
    let name = prop_oneof![Just(None), "[^\\r\\n\\x00]{1,12}".prop_map(Some)];
    let id = prop_oneof![Just(None), line().prop_map(Some)];
    let data =
        proptest::collection::vec("[^\\r\\n]{0,12}", 0..4).prop_map(|lines| lines.join("\n"));
    (name, data, id, proptest::option::of(0..=DAY)).prop_map(|(event, data, id, retry)| Event {
        event,
        data,
        id,
        retry,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again_in_any_pieces(
        events in proptest::collection::vec(any_event(), 0..6),
        cuts in proptest::collection::vec(1_usize..9, 1..40),
    ) {
        let text: String = events.iter().map(written).collect();
        let mut decoder = Decoder::default();
        let (mut rest, mut read, mut cuts) = (text.as_bytes(), Vec::new(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            read.extend(decoder.feed(piece).unwrap());
            rest = tail;
        }
        prop_assert_eq!(read, events);
    }

    #[test]
    fn any_bytes_are_read_the_same_in_any_pieces(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..60),
        step in 1_usize..9,
    ) {
        let (mut whole, mut pieces) = (Decoder::default(), Decoder::default());
        let at_once = whole.feed(&bytes);
        let in_pieces: Result<Vec<_>, _> = bytes.chunks(step).map(|piece| pieces.feed(piece)).collect();
        prop_assert_eq!(in_pieces.map(|events| events.concat()), at_once);
    }
}
