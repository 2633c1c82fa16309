//! Output guards: what may leave, what leaves in its place, and what is held back.

use std::sync::Arc;

use chio_core::canonical;
use chio_core::receipt::NO_OUTPUT_HASH;
use chio_core::registry::ErrorCode as Code;
use chio_kernel::{Outcome, Review, ReviewMode};
use serde_json::{Value, json};

use crate::support::guards::Scripted;
use crate::support::tokens::token;
use crate::support::world::{denial, metadata};
use crate::support::{Setup, World, grant, guard};

const MODES: [ReviewMode; 2] = [ReviewMode::EachChunk, ReviewMode::Whole];

/// Replaces `bad` by `clean`.
fn cleaner(mode: ReviewMode) -> Scripted {
    guard("cleaner").reviews(mode, |output| {
        let text = output.to_string();
        if !text.contains("bad") {
            return Ok(Review::Pass);
        }
        Ok(Review::Replace(serde_json::from_str(&text.replace("bad", "clean")).unwrap()))
    })
}

/// Blocks `evil`.
fn blocker(mode: ReviewMode) -> Scripted {
    guard("blocker").reviews(mode, |output| {
        let blocks = output.to_string().contains("evil");
        Ok(if blocks { Review::Block("evil words".to_owned()) } else { Review::Pass })
    })
}

/// Runs the stream tool and returns what came of it and what the caller got.
async fn stream(world: &World, arguments: Value) -> (crate::support::world::Ended, Vec<Value>) {
    let caller = Arc::new(world.caller());
    let token = token(&format!("cap-{}", world.kernel.new_request_id()), &[grant("*")]);
    let call = world.call(&token, "stream", arguments);
    let ended = world.run_for(call, Arc::<crate::support::TestCaller>::clone(&caller)).await;
    (ended, caller.chunks().into_iter().map(|(_, data)| data).collect())
}

#[tokio::test]
async fn what_leaves_in_place_of_a_value_is_what_is_hashed() {
    for mode in MODES {
        let world = Setup::default().guard(cleaner(mode)).start().await;
        let ended = world.run_tool("echo", json!({"text": "bad"})).await;
        assert_eq!(ended.outcome, Outcome::Value(json!({"text": "clean"})));
        let hash = canonical::hash(&json!({"text": "clean"})).unwrap();
        assert_eq!(ended.receipt.content_hash, hash);
        assert_eq!(*metadata(&ended, "post_invocation"), json!({"sanitized": ["cleaner"]}));
        let ended = world.run_tool("echo", json!({"text": "good"})).await;
        assert!(metadata(&ended, "post_invocation").is_null());
    }
}

#[tokio::test]
async fn what_is_blocked_does_not_leave_and_the_call_is_denied() {
    let failing = |mode| guard("blocker").reviews(mode, |_| Err("no model".to_owned()));
    let panicking = |mode| guard("blocker").reviews(mode, |_| panic!("bug"));
    for mode in MODES {
        for (bad, reason) in [
            (blocker(mode), "evil words"),
            (failing(mode), "the guard failed: no model"),
            (panicking(mode), "the guard panicked"),
        ] {
            let world = Setup::default().guard(bad).start().await;
            let ended = world.run_tool("effect", json!({"text": "evil"})).await;
            let denied = denial(&ended);
            assert_eq!((denied.code, &*denied.guard), (Code::GuardDenied, "blocker"));
            assert_eq!((&*denied.reason, world.runs("effect")), (reason, 1));
            assert_eq!(ended.receipt.content_hash, NO_OUTPUT_HASH);
        }
    }
}

#[tokio::test]
async fn reviewers_see_what_the_ones_before_left() {
    for (first, second, blocked) in [(true, false, false), (false, true, true)] {
        // A cleaner that makes `evil` of `bad`, before or after the blocker.
        let maker = || {
            guard("maker").reviews(ReviewMode::EachChunk, |output| {
                Ok(Review::Replace(json!(output.to_string().replace("bad", "evil"))))
            })
        };
        let mut setup = Setup::default();
        if second {
            setup = setup.guard(maker());
        }
        setup = setup.guard(blocker(ReviewMode::EachChunk));
        if first {
            setup = setup.guard(maker());
        }
        let ended = setup.start().await.run_tool("echo", json!("bad")).await;
        assert_eq!(matches!(ended.outcome, Outcome::Denied(_)), blocked);
    }
}

#[tokio::test]
async fn each_chunk_is_reviewed_before_it_leaves() {
    let world = Setup::default()
        .guard(cleaner(ReviewMode::EachChunk))
        .guard(blocker(ReviewMode::EachChunk))
        .start()
        .await;
    let (ended, got) = stream(&world, json!({"chunks": ["a", "bad", "c"]})).await;
    assert_eq!((ended.outcome.clone(), got.len()), (Outcome::Stream { chunks: 3 }, 3));
    assert_eq!(got, [json!("a"), json!("clean"), json!("c")]);
    let hashes: Vec<_> = got.iter().map(|chunk| canonical::hash(chunk).unwrap()).collect();
    assert_eq!(metadata(&ended, "stream")["chunk_hashes"], json!(hashes));
    assert_eq!(*metadata(&ended, "post_invocation"), json!({"sanitized": ["cleaner"]}));
    // What was given before the block is given and hashed; nothing after it.
    let (ended, got) = stream(&world, json!({"chunks": ["a", "evil", "c"]})).await;
    assert_eq!(denial(&ended).guard, "blocker");
    assert_eq!(got, [json!("a")]);
    assert_eq!(metadata(&ended, "stream")["chunks_received"], json!(1));
    let prefix = canonical::hash(&json!("a")).unwrap();
    assert_eq!(ended.receipt.content_hash, chio_core::hash::sha256_hex(prefix.as_bytes()));
}

#[tokio::test]
async fn the_last_value_after_chunks_is_reviewed_as_well() {
    let world = Setup::default().guard(blocker(ReviewMode::EachChunk)).start().await;
    let (ended, got) = stream(&world, json!({"chunks": ["a"], "value": "evil"})).await;
    assert_eq!(denial(&ended).guard, "blocker");
    assert_eq!(got, [json!("a")]);
}

#[tokio::test]
async fn whoever_wants_all_of_a_stream_holds_it_back_until_it_ends() {
    let setup = Setup::default();
    let journal = setup.journal.clone();
    let all = guard("all").telling(&journal).reviews(ReviewMode::Whole, |output| {
        assert_eq!(*output, json!(["a", "b", "bad"]));
        Ok(Review::Replace(json!(["a", "b"])))
    });
    let world = setup.guard(all).start().await;
    let (ended, got) = stream(&world, json!({"chunks": ["a", "b"], "value": "bad"})).await;
    assert_eq!(ended.outcome, Outcome::Stream { chunks: 2 });
    assert_eq!(got, [json!("a"), json!("b")]);
    assert!(journal.position("review all") < journal.position("chunk 0"));
    assert!(journal.position("reserve") < journal.position("chunk 0"));
    assert_eq!(*metadata(&ended, "post_invocation"), json!({"sanitized": ["all"]}));
    assert_eq!(metadata(&ended, "stream")["chunks_received"], json!(2));
}

#[tokio::test]
async fn whoever_wants_all_of_a_stream_can_keep_all_of_it() {
    let world = Setup::default().guard(blocker(ReviewMode::Whole)).start().await;
    let (ended, got) = stream(&world, json!({"chunks": ["a", "b", "evil"]})).await;
    assert_eq!((&*denial(&ended).guard, got.len()), ("blocker", 0));
    assert_eq!(world.open_intents().await, 0);
}

// Facts §4.4: a denial that gave nothing away has no output, whatever the tool tried.
#[tokio::test]
async fn a_stream_of_which_nothing_left_has_no_content() {
    for mode in MODES {
        let world = Setup::default().guard(blocker(mode)).start().await;
        let (ended, got) = stream(&world, json!({"chunks": ["evil"]})).await;
        assert_eq!((&*denial(&ended).guard, got.len()), ("blocker", 0));
        assert_eq!(ended.receipt.content_hash, NO_OUTPUT_HASH, "{mode:?}");
    }
}

// `EachChunk` promises each chunk on its own, also where another guard wants the whole.
#[tokio::test]
async fn a_guard_of_single_chunks_sees_single_chunks_also_beside_one_of_the_whole() {
    let exact = guard("exact").reviews(ReviewMode::EachChunk, |output| {
        let blocks = *output == json!("evil");
        Ok(if blocks { Review::Block("evil word".to_owned()) } else { Review::Pass })
    });
    let all = guard("all").reviews(ReviewMode::Whole, |_| Ok(Review::Pass));
    let world = Setup::default().guard(exact).guard(all).start().await;
    let (ended, got) = stream(&world, json!({"chunks": ["a", "evil"]})).await;
    assert_eq!((&*denial(&ended).guard, got.len()), ("exact", 0));
}

#[tokio::test]
async fn what_a_guard_notes_is_in_the_receipt_once_and_changes_nothing() {
    let noting = guard("shadow").reviews(ReviewMode::EachChunk, |_| Ok(Review::Note("hm".into())));
    let world = Setup::default().guard(noting).start().await;
    let noted = json!({"notes": [{"guard": "shadow", "note": "hm"}]});
    let ended = world.run_tool("echo", json!({"text": "x"})).await;
    assert_eq!(ended.outcome, Outcome::Value(json!({"text": "x"})));
    assert_eq!(*metadata(&ended, "post_invocation"), noted);
    let (ended, chunks) = stream(&world, json!({"chunks": ["a", "b", "c"]})).await;
    assert!(chunks.len() > 1);
    assert_eq!(*metadata(&ended, "post_invocation"), noted);
}

#[tokio::test]
async fn a_tools_words_about_its_failure_pass_the_output_guards() {
    for mode in MODES {
        let world = Setup::default().guard(cleaner(mode)).guard(blocker(mode)).start().await;
        for (words, left) in [
            ("all good", "all good"),
            ("a bad thing", "a clean thing"),
            ("an evil thing", "its words were held back by blocker"),
        ] {
            let ended = world.run_tool("fail", json!({"detail": words})).await;
            let denied = denial(&ended);
            assert_eq!((denied.code, &*denied.reason), (Code::ToolServerError, left));
        }
    }
}
