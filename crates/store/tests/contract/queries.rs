//! Receipts by what they are about.

use chio_kernel::store::{ReceiptOutcome, ReceiptQuery, ReceiptRow, SharedStore};
use serde_json::{Value, json};

use crate::support::{append, on_each_store, receipt};

/// Sixty receipts: every column has its own rhythm.
fn receipts() -> Vec<Value> {
    (1..=60_u64).map(varied).collect()
}

fn varied(number: u64) -> Value {
    let mut body = receipt(number);
    body["capability_id"] = json!(format!("cap-{}", number % 3));
    body["tool_server"] = json!(format!("server-{}", number % 4));
    body["tool_name"] = json!(format!("tool-{}", number % 5));
    body["timestamp"] = json!(1000 + number / 10 + if number == 7 { 500 } else { 0 });
    let verdict =
        ["allow", "deny", "cancelled", "incomplete"][usize::try_from(number % 4).unwrap()];
    body["decision"] = json!({"verdict": verdict, "reason": "r", "guard": "g"});
    body["metadata"]["attribution"]["subject_key"] = json!(format!("{:02x}", number % 2));
    if number.is_multiple_of(5) {
        let name = if number.is_multiple_of(10) { "alice" } else { "bob" };
        body["metadata"]["principal"] = json!({"name": name});
    }
    if number.is_multiple_of(6) {
        let currency = if number.is_multiple_of(12) { "USD" } else { "EUR" };
        body["metadata"]["financial"] = json!({"cost_charged": number, "currency": currency});
    }
    if number.is_multiple_of(7) {
        // The same first digits: only the whole id tells them apart.
        let trace = format!("{:016x}{:016x}", 1, number % 2);
        body["metadata"]["chio"] = json!({"bridge": {"trace": {"traceId": trace}}});
    }
    body
}

/// Every row of a query, page by page.
async fn pages(store: &SharedStore, query: &ReceiptQuery) -> Vec<Vec<u8>> {
    let mut query = query.clone();
    let (mut bodies, mut before) = (Vec::new(), None);
    loop {
        let rows = store.query(&query).await.unwrap();
        assert!(rows.len() <= query.limit);
        let Some(last) = rows.last() else { return bodies };
        for row in &rows {
            let ordered = before.is_none_or(|before| {
                if query.newest_first { row.cursor < before } else { row.cursor > before }
            });
            assert!(ordered, "{before:?} {}", row.cursor);
            before = Some(row.cursor);
        }
        query.cursor = Some(last.cursor);
        bodies.extend(rows.into_iter().map(|row| row.body));
    }
}

type Matches = fn(&Value, u64) -> bool;

/// Queries, and which of the sixty they must find.
fn cases() -> Vec<(ReceiptQuery, Matches)> {
    let ask = ReceiptQuery::default;
    let text = |text: &str| Some(text.to_owned());
    let trace = |last| Some(format!("{:016x}{last:016x}", 1));
    vec![
        (ask(), |_, _| true),
        (ReceiptQuery { capability_id: text("cap-1"), ..ask() }, |_, n| n % 3 == 1),
        (ReceiptQuery { capability_id: text("cap-9"), ..ask() }, |_, _| false),
        (ReceiptQuery { subject: text("01"), ..ask() }, |_, n| n % 2 == 1),
        (ReceiptQuery { principal: text("alice"), ..ask() }, |_, n| n % 10 == 0),
        (ReceiptQuery { principal: text("carol"), ..ask() }, |_, _| false),
        (ReceiptQuery { tool_server: text("server-2"), ..ask() }, |_, n| n % 4 == 2),
        (ReceiptQuery { tool_name: text("tool-4"), ..ask() }, |_, n| n % 5 == 4),
        (ReceiptQuery { outcome: Some(ReceiptOutcome::Allow), ..ask() }, |_, n| n % 4 == 0),
        (ReceiptQuery { outcome: Some(ReceiptOutcome::Deny), ..ask() }, |_, n| n % 4 == 1),
        (ReceiptQuery { outcome: Some(ReceiptOutcome::Incomplete), ..ask() }, |_, n| n % 4 == 3),
        (ReceiptQuery { since: Some(1003), ..ask() }, |b, _| b["timestamp"].as_u64() >= Some(1003)),
        (ReceiptQuery { until: Some(1002), ..ask() }, |b, _| b["timestamp"].as_u64() <= Some(1002)),
        (ReceiptQuery { since: Some(1400), until: Some(1600), ..ask() }, |_, n| n == 7),
        (ReceiptQuery { since: Some(1003), until: Some(1003), ..ask() }, |_, n| n / 10 == 3),
        (ReceiptQuery { min_cost: Some(30), ..ask() }, |_, n| n % 6 == 0 && n >= 30),
        (ReceiptQuery { max_cost: Some(30), ..ask() }, |_, n| n % 6 == 0 && n <= 30),
        (ReceiptQuery { min_cost: Some(7), max_cost: Some(11), ..ask() }, |_, _| false),
        (ReceiptQuery { min_cost: Some(0), ..ask() }, |_, n| n % 6 == 0),
        (ReceiptQuery { currency: text("USD"), ..ask() }, |_, n| n % 12 == 0),
        (ReceiptQuery { trace_id: trace(0), ..ask() }, |_, n| n % 14 == 0),
        (ReceiptQuery { trace_id: trace(1), ..ask() }, |_, n| n % 14 == 7),
        (
            ReceiptQuery { currency: text("EUR"), min_cost: Some(10), max_cost: Some(40), ..ask() },
            |_, n| n % 12 == 6 && (10..=40).contains(&n),
        ),
        (
            ReceiptQuery {
                capability_id: text("cap-0"),
                tool_name: text("tool-0"),
                subject: text("00"),
                since: Some(1003),
                ..ask()
            },
            |_, n| n % 30 == 0 && n >= 30,
        ),
        (ReceiptQuery { until: Some(u64::MAX), max_cost: Some(u64::MAX), ..ask() }, |_, n| {
            n % 6 == 0
        }),
    ]
}

#[tokio::test]
async fn a_receipt_is_found_by_the_beginning_of_its_id_however_old_it_is() {
    on_each_store(async |world| {
        let (store, ledger) = (world.shared(), world.ledger().await);
        let id = |first: u64| format!("{first:016x}{:048x}", 7);
        let ids: Vec<String> = [0x0123_4567_89ab_cdef, 0x0123_4567_0000_0000, u64::MAX, 1 << 63]
            .into_iter()
            .map(id)
            .collect();
        for id in &ids {
            let body = json!({"id": id, "timestamp": 1000});
            append(ledger.as_ref(), &body).await;
        }
        let found = async |digits: &str, limit| -> Vec<String> {
            let rows = store.find_beginning(digits, limit).await.unwrap();
            let read = |row: &ReceiptRow| serde_json::from_slice::<Value>(&row.body).unwrap();
            let mut found: Vec<String> =
                rows.iter().map(|row| read(row)["id"].as_str().unwrap().to_owned()).collect();
            found.sort();
            found
        };
        for id in &ids {
            for length in [9, 16, 17, 64] {
                let beginning = id.get(..length).unwrap();
                assert_eq!(found(beginning, 9).await, std::slice::from_ref(id), "{length} of {id}");
            }
        }
        assert_eq!(found("01234567", 9).await, [ids[1].clone(), ids[0].clone()]);
        assert_eq!(found("01234567", 1).await.len(), 1);
        assert!(found("0123456789abcdef1", 9).await.is_empty());
        assert!(found("child-rcpt-", 9).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn every_column_can_be_asked_for_page_by_page_in_both_directions() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let all = receipts();
        for body in &all {
            append(ledger.as_ref(), body).await;
        }
        let store = world.shared();
        for (query, matches) in cases() {
            let fits = |(n, body): &(u64, &Value)| matches(body, *n);
            let mut expected: Vec<Vec<u8>> = (1..)
                .zip(&all)
                .filter(fits)
                .map(|(_, body)| body.to_string().into_bytes())
                .collect();
            for newest_first in [false, true] {
                for limit in [1, 4, 100] {
                    let query = ReceiptQuery { newest_first, limit, ..query.clone() };
                    assert_eq!(pages(&store, &query).await, expected, "{query:?}");
                }
                expected.reverse();
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_has_all_that_was_durable_when_it_was_asked_for() {
    on_each_store(async |world| {
        let (store, ledger) = (world.shared(), world.ledger().await);
        let query = ReceiptQuery { limit: 1000, ..ReceiptQuery::default() };
        for number in 1..=20 {
            append(ledger.as_ref(), &receipt(number)).await;
            let found = store.query(&query).await.unwrap().len();
            assert_eq!(u64::try_from(found).unwrap(), number);
            assert!(store.find(&format!("{number:064x}")).await.unwrap().is_some());
        }
    })
    .await;
}

#[tokio::test]
async fn a_row_names_its_log_and_its_place() {
    on_each_store(async |world| {
        let slots = [
            world.store.take_slot(None).await.unwrap(),
            world.store.take_slot(None).await.unwrap(),
        ];
        for number in 0..6_u64 {
            let slot = &slots[usize::try_from(number % 2).unwrap()];
            append(slot.ledger.as_ref(), &receipt(number)).await;
        }
        let store = world.shared();
        let row = store.find(&format!("{:064x}", 3)).await.unwrap().unwrap();
        assert_eq!((row.log_id.as_str(), row.seq), (slots[1].certificate.log_id.as_str(), 2));
        assert_eq!(row.body, receipt(3).to_string().into_bytes());
        // The same first digits are not the same id.
        assert_eq!(store.find(&format!("{:063x}", 0)).await.unwrap(), None);
        assert_eq!(store.find("").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_child_receipt_is_found_by_what_it_has() {
    on_each_store(async |world| {
        let (store, ledger) = (world.shared(), world.ledger().await);
        let child = json!({
            "id": "child-rcpt-0190", "timestamp": 5, "terminal_state": {"state": "cancelled"},
            "metadata": {"traceId": "t"},
        });
        append(ledger.as_ref(), &child).await;
        append(ledger.as_ref(), &json!("no receipt at all")).await;
        let body = child.to_string().into_bytes();
        assert_eq!(store.find("child-rcpt-0190").await.unwrap().unwrap().body, body);
        let of_trace = ReceiptQuery {
            trace_id: Some("t".to_owned()),
            outcome: Some(ReceiptOutcome::Cancelled),
            limit: 9,
            ..ReceiptQuery::default()
        };
        assert_eq!(store.query(&of_trace).await.unwrap().len(), 1);
        let all = ReceiptQuery { limit: 9, ..ReceiptQuery::default() };
        assert_eq!(store.query(&all).await.unwrap().len(), 2);
    })
    .await;
}
