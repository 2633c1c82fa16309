//! What guards remember, and what the hash of a policy is over.

use chio_policy::judge::Decision;

use crate::{document_of, fresh, read};

#[tokio::test]
async fn limits_of_two_windows_count_apart() {
    let cases = read(
        "policy:
  hushspec: \"0.1.0\"
  chio:
    velocity:
      limits:
        - {tools: [send], calls: 4, window: 1m}
        - {tools: [send], calls: 6, window: 1h}
cases: [{tool: send, expect: allow}]",
        "two windows",
    );
    let document = document_of(&cases, "its own");
    let policy = fresh(&document);
    let mut call = cases.cases[0].call.clone();
    let mut allowed = Vec::new();
    for minute in 0..4 {
        for _ in 0..4 {
            let judged = policy.judge(&call).await;
            allowed.push((minute, judged.decision == Decision::Allow));
        }
        call.now += 60;
    }
    let count = |minute| allowed.iter().filter(|it| **it == (minute, true)).count();
    // Four in the first minute; then the hour has room for two, and for a little that flows back.
    assert_eq!((count(0), count(1), count(2), count(3)), (4, 2, 0, 0));
}

#[test]
fn the_hash_tells_rules_of_one_name_apart() {
    let folder = std::env::temp_dir().join(format!("chio-policy-hash-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("p.yaml"), "hushspec: \"0.1.0\"\nchio: {rules: {file: engine}}\n")
        .unwrap();
    let hash = |tool: &str| {
        let rule = format!("forbid(principal, action, resource == Tool::\"example/{tool}\");");
        std::fs::write(folder.join("engine"), rule).unwrap();
        let policy = chio_policy::Policy::load("./p.yaml", &folder, &std::sync::Arc::default());
        policy.unwrap().hash().to_owned()
    };
    assert_ne!(hash("a"), hash("b"));
    assert_eq!(hash("a"), hash("a"));
    std::fs::remove_dir_all(folder).unwrap();
}
