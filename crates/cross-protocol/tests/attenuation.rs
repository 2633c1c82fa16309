//! Whatever scope comes in, what crosses a bridge is a part of it.
#![cfg(test)]

use chio_core::capability::{ChioScope, WILDCARD};
use chio_cross_protocol::attenuated;
use chio_testkit::generate::{cases, scope};
use proptest::prelude::*;
use proptest::sample::Index;

/// A name that the scope speaks of, or one that it does not.
fn picked(names: Vec<&str>, pick: Index) -> String {
    let mut names: Vec<&str> = names.into_iter().filter(|name| *name != WILDCARD).collect();
    names.push("nobody-knows");
    (*pick.get(&names)).to_owned()
}

fn target(scope: &ChioScope, picks: [Index; 2]) -> [String; 2] {
    let servers = scope.grants.iter().map(|grant| &*grant.server_id).collect();
    let tools = scope.grants.iter().map(|grant| &*grant.tool_name).collect();
    [picked(servers, picks[0]), picked(tools, picks[1])]
}

proptest! {
    #![proptest_config(cases(4000))]

    // covers: CROSS-049, CROSS-046
    #[test]
    fn an_attenuated_scope_is_within_the_inbound_one(
        inbound in scope(), picks in any::<[Index; 2]>(),
    ) {
        let [server, tool] = target(&inbound, picks);
        let narrow = attenuated(&inbound, &server, &tool);
        prop_assert!(narrow.is_subset_of(&inbound), "{narrow:?}");
        for grant in &narrow.grants {
            prop_assert_eq!((&grant.server_id, &grant.tool_name), (&server, &tool));
        }
        let covering = inbound.grants.iter().filter(|grant| grant.covers(&server, &tool)).count();
        prop_assert_eq!(narrow.grants.len(), covering, "nothing that the tool needs is lost");
        prop_assert!(narrow.resource_grants.is_empty() && narrow.prompt_grants.is_empty());
        prop_assert_eq!(&attenuated(&narrow, &server, &tool), &narrow, "once is enough");
    }
}
