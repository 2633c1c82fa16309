//! What is kept, for whom, and for how long.

use super::{Conflict, EventLog, EventReader, NOTIFICATIONS, Next, Priming, Retained};
use crate::limits::McpLimits;
use std::sync::Arc;

fn limits() -> McpLimits {
    McpLimits {
        window_events: 8,
        window_bytes: 64,
        retained_bytes: 1 << 20,
        queued_notifications: 4,
        ..McpLimits::default()
    }
}

const BARE: Priming = Priming::Bare;

fn log() -> Arc<EventLog> {
    Arc::new(EventLog::new("s-1".to_owned(), limits(), Arc::default()))
}

/// What is there now, by `data`; `+` for a number to go on from.
fn drain(reader: &mut EventReader) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(next) = reader.try_next(BARE) {
        match next {
            Next::Event(event) => {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                found.push(data.unwrap_or("+").to_owned());
            }
            Next::Ended => {
                found.push("end".to_owned());
                break;
            }
            Next::Lost => {
                found.push("lost".to_owned());
                break;
            }
        }
    }
    found
}

#[test]
fn events_are_numbered_over_all_streams_and_written_without_empty_data() {
    let log = log();
    let (one, other) = (log.open(), log.open());
    log.send(other, "b", false);
    log.send(one, "a", false);
    let mut reader = log.read(one);
    assert_eq!(reader.try_next(BARE), Some(Next::Event("id: s-1-1\nretry: 1000\n\n".to_owned())));
    assert_eq!(reader.try_next(BARE), Some(Next::Event("id: s-1-4\ndata: a\n\n".to_owned())));
    assert_eq!(reader.try_next(BARE), None);
    log.end(one);
    assert_eq!(reader.try_next(BARE), Some(Next::Ended));
    assert_eq!(drain(&mut log.read(other)), ["+", "b"]);
}

#[test]
fn a_stream_goes_on_after_the_event_that_was_seen_last() {
    let log = log();
    let stream = log.open();
    log.send(stream, "a", false);
    log.send(NOTIFICATIONS, "n", false);
    log.send(stream, "b", false);
    assert_eq!(drain(&mut log.resume("s-1-2").unwrap()), ["b"]);
    log.end(stream);
    assert_eq!(drain(&mut log.resume("s-1-1").unwrap()), ["a", "b", "end"]);
    assert_eq!(log.resume("s-1-4").unwrap_err(), Conflict::Finished);
}

#[test]
fn only_numbers_of_events_that_are_kept_can_be_gone_on_from() {
    let log = log();
    let stream = log.open();
    for text in ["a", "b"] {
        log.send(stream, text, false);
    }
    for id in
        ["s-1-0", "s-1-4", "s-1-99999999999999999999", "s-2-1", "s-1", "1", "", "s-1-+1", "s-1-01"]
    {
        assert_eq!(log.resume(id).unwrap_err(), Conflict::Outside, "{id}");
    }
    for _ in 0..limits().window_events {
        log.send(stream, "c", false);
    }
    assert_eq!(log.resume("s-1-1").unwrap_err(), Conflict::Outside);
}

#[test]
fn one_reader_at_a_time_has_the_notification_stream_and_the_next_gets_what_waited() {
    let log = log();
    log.send(NOTIFICATIONS, "early", false);
    let mut reader = log.read_notifications().unwrap();
    assert_eq!(log.read_notifications().unwrap_err(), Conflict::Busy);
    assert_eq!(log.resume("s-1-1").unwrap_err(), Conflict::Busy);
    assert_eq!(drain(&mut reader), ["early", "+"]);
    drop(reader);
    log.send(NOTIFICATIONS, "late", false);
    assert_eq!(drain(&mut log.read_notifications().unwrap()), ["late", "+"]);
}

#[test]
fn a_client_that_resumes_a_stream_takes_it_over() {
    let log = log();
    let stream = log.open();
    let mut first = log.read(stream);
    assert_eq!(drain(&mut first), ["+"]);
    let mut second = log.resume("s-1-1").unwrap();
    log.send(stream, "a", false);
    assert_eq!(drain(&mut first), ["lost"]);
    drop(first);
    assert_eq!(drain(&mut second), ["a"]);
}

#[test]
fn a_slow_reader_loses_notifications_and_never_a_result() {
    let log = log();
    let stream = log.open();
    for text in ["1", "2", "3", "4", "5", "6"] {
        log.send(stream, text, true);
    }
    log.send(stream, "result", false);
    assert_eq!(drain(&mut log.read(stream)), ["+", "1", "2", "3", "result"]);
}

#[test]
fn what_was_read_makes_room_first_and_the_newest_event_is_always_kept() {
    let log = log();
    let stream = log.open();
    log.send(stream, &"x".repeat(50), false);
    log.send(stream, &"y".repeat(50), false);
    let expected = ["+".to_owned(), "x".repeat(50), "y".repeat(50)];
    assert_eq!(drain(&mut log.read(stream)), expected, "nobody had read them yet");
    log.send(stream, &"z".repeat(50), false);
    assert_eq!(log.resume("s-1-1").unwrap_err(), Conflict::Outside);
    assert_eq!(drain(&mut log.resume("s-1-3").unwrap()), ["z".repeat(50)]);
    let stream = log.open();
    for text in ["a", "b", "c"] {
        log.send(stream, &text.repeat(1000), false);
    }
    assert_eq!(drain(&mut log.read(stream)), ["+", "lost"], "too much that nobody read");
    assert_eq!(drain(&mut log.resume("s-1-7").unwrap()), ["c".repeat(1000)]);
}

#[test]
fn all_sessions_together_keep_so_much_and_each_its_newest_event() {
    let all: Arc<Retained> = Arc::default();
    let window = McpLimits { retained_bytes: 100, ..limits() };
    let make = || Arc::new(EventLog::new("s-1".to_owned(), window.clone(), Arc::clone(&all)));
    let (one, other) = (make(), make());
    let stream = one.open();
    for text in ["x", "y", "z"] {
        one.send(stream, &text.repeat(50), false);
    }
    assert_eq!(drain(&mut one.read(stream)), ["+", "lost"]);
    assert_eq!(drain(&mut one.resume("s-1-3").unwrap()), ["z".repeat(50)]);
    let large = "z".repeat(500);
    let stream = other.open();
    other.send(stream, &large, false);
    assert_eq!(drain(&mut other.read(stream)), ["+".to_owned(), large]);
    drop((one, other));
    assert_eq!(all.0.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_reader_waits_for_what_comes_and_for_the_end() {
    let log = log();
    let stream = log.open();
    let mut reader = log.read(stream);
    let reading = tokio::spawn(async move {
        let mut found = Vec::new();
        while let Next::Event(event) = reader.next(BARE).await {
            found.push(event);
        }
        found.len()
    });
    tokio::task::yield_now().await;
    log.send(stream, "a", false);
    tokio::task::yield_now().await;
    log.end(stream);
    assert_eq!(reading.await.unwrap(), 2);
}

#[test]
fn a_number_to_go_on_from_is_written_as_the_client_can_take_it() {
    for (priming, expected) in [
        (Priming::Absent, None),
        (Priming::Bare, Some("id: s-1-1\nretry: 1000\n\n")),
        (Priming::Event, Some("id: s-1-1\nretry: 1000\nevent: prime\ndata: {}\n\n")),
    ] {
        let log = log();
        let mut reader = log.read(log.open());
        let found = reader.try_next(priming);
        assert_eq!(found, expected.map(|event| Next::Event(event.to_owned())));
        assert_eq!(reader.try_next(BARE), None);
    }
}

#[test]
fn when_all_keep_too_much_what_was_read_goes_then_what_nobody_waits_for() {
    let log = log();
    let (one, other, third) = (log.open(), log.open(), log.open());
    for (stream, text) in [(one, "a"), (other, "b"), (third, "c")] {
        log.send(stream, text, false);
    }
    assert_eq!(drain(&mut log.read(one)), ["+", "a"]);
    log.drop_messages(false);
    assert_eq!(log.resume("s-1-1").unwrap_err(), Conflict::Outside);
    let mut waiting = log.read(third);
    log.drop_messages(true);
    assert_eq!(drain(&mut log.read(other)), ["+", "lost"]);
    assert_eq!(drain(&mut waiting), ["+", "c"], "somebody waits for it");
}
