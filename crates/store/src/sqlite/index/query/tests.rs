//! The plans of queries: no question about one column reads more than it answers with.

use chio_kernel::store::{ReceiptOutcome, ReceiptQuery};
use rusqlite::Connection;

use super::super::super::tests::Scratch;
use super::super::schema;
use super::{Cursors, Plan};

/// Any index will do.
const CURSORS: Cursors = Cursors { generation: 1 };

fn index(scratch: &Scratch) -> Connection {
    std::fs::create_dir_all(&scratch.0).unwrap();
    let index = schema::open_writer(&scratch.0.join("index.db"), "store").unwrap();
    index.execute_batch("INSERT INTO names(text) VALUES ('known')").unwrap();
    index
}

/// How the database means to answer.
fn explained(index: &Connection, plan: &Plan) -> String {
    let sql = format!("EXPLAIN QUERY PLAN {}", plan.sql());
    let mut statement = index.prepare(&sql).unwrap();
    let values = rusqlite::params_from_iter(plan.values((1, 9)));
    let lines = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
    lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_question_about_one_column_walks_its_index_in_order() {
    let scratch = Scratch::new();
    let index = index(&scratch);
    let (ask, known) = (ReceiptQuery::default, Some("known".to_owned()));
    let cases = [
        (ReceiptQuery { capability_id: known.clone(), ..ask() }, "by_capability"),
        (ReceiptQuery { subject: known.clone(), ..ask() }, "by_subject"),
        (ReceiptQuery { principal: known.clone(), ..ask() }, "by_principal"),
        (ReceiptQuery { tool_server: known.clone(), ..ask() }, "by_server"),
        (ReceiptQuery { tool_name: known.clone(), ..ask() }, "by_tool"),
        (ReceiptQuery { currency: known.clone(), ..ask() }, "by_currency"),
        (ReceiptQuery { trace_id: known.clone(), ..ask() }, "by_trace"),
        (ReceiptQuery { outcome: Some(ReceiptOutcome::Deny), ..ask() }, "by_outcome"),
        (ReceiptQuery { since: Some(5), until: Some(9), ..ask() }, "INTEGER PRIMARY KEY"),
        (ask(), "INTEGER PRIMARY KEY"),
        (
            ReceiptQuery { trace_id: known.clone(), outcome: Some(ReceiptOutcome::Allow), ..ask() },
            "by_trace",
        ),
    ];
    for (query, expected) in cases {
        for newest_first in [false, true] {
            let cursor = CURSORS.of(5).ok();
            let query = ReceiptQuery { newest_first, cursor, ..query.clone() };
            let plan = Plan::new(&index, &query, CURSORS).unwrap().unwrap();
            let explained = explained(&index, &plan);
            assert!(explained.starts_with("SEARCH"), "{explained}");
            assert!(explained.contains(expected), "{explained}");
            assert!(!explained.contains("SCAN"), "{explained}");
            assert!(!explained.contains("TEMP B-TREE"), "{explained}");
        }
    }
}

#[test]
fn a_range_of_costs_is_sorted_only_when_few_receipts_are_in_it() {
    let scratch = Scratch::new();
    let index = index(&scratch);
    let fill = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10000)
                INSERT INTO receipts(n, entry, cost) SELECT n, n, n FROM c";
    index.execute_batch(fill).unwrap();
    let plan = |least| {
        let query = ReceiptQuery { min_cost: Some(least), ..ReceiptQuery::default() };
        Plan::new(&index, &query, CURSORS).unwrap().unwrap()
    };
    assert!(explained(&index, &plan(9000)).contains("by_cost"));
    let many = explained(&index, &plan(2));
    assert!(many.contains("INTEGER PRIMARY KEY"), "{many}");
    assert!(!many.contains("TEMP B-TREE"), "{many}");
}

#[test]
fn the_receipt_of_an_id_is_found_by_its_index() {
    let scratch = Scratch::new();
    let index = index(&scratch);
    let sql = "EXPLAIN QUERY PLAN SELECT n, entry FROM receipts WHERE rid = 1 ORDER BY n";
    let line: String = index.query_row(sql, [], |row| row.get(3)).unwrap();
    assert!(line.contains("SEARCH receipts USING INDEX by_rid"), "{line}");
}

#[test]
fn a_name_that_nobody_used_needs_no_search() {
    let scratch = Scratch::new();
    let index = index(&scratch);
    let unknown = Some("unknown".to_owned());
    let query = ReceiptQuery { tool_name: unknown, ..ReceiptQuery::default() };
    assert!(Plan::new(&index, &query, CURSORS).unwrap().is_none());
}
