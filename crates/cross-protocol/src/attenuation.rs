//! Narrowing a scope to the one tool that is called.

use chio_core::capability::{ChioScope, ToolGrant};

/// The part of a scope that speaks of this tool, with wildcards made concrete. Grants keep their
/// order. Resources and prompts are left out.
pub fn attenuated(scope: &ChioScope, server_id: &str, tool_name: &str) -> ChioScope {
    let kept = scope.grants.iter().filter(|grant| grant.covers(server_id, tool_name));
    let grants = kept.map(|grant| ToolGrant {
        server_id: server_id.to_owned(),
        tool_name: tool_name.to_owned(),
        operations: grant.operations.clone(),
        constraints: grant.constraints.clone(),
        max_invocations: grant.max_invocations,
        max_cost_per_invocation: grant.max_cost_per_invocation.clone(),
        max_total_cost: grant.max_total_cost.clone(),
        dpop_required: grant.dpop_required,
    });
    ChioScope { grants: grants.collect(), ..ChioScope::default() }
}

#[cfg(test)]
mod tests {
    use chio_core::capability::{Constraint, Operation, PromptGrant, ResourceGrant};

    use super::*;
    use crate::request::tests::grant;

    fn scope(grants: &[(&str, &str)]) -> ChioScope {
        let grants = grants.iter().map(|(server, tool)| grant(server, tool)).collect();
        ChioScope { grants, ..ChioScope::default() }
    }

    // covers: CROSS-046
    #[test]
    fn grants_of_other_tools_go_and_wildcards_become_concrete() {
        let cases: [(&[(&str, &str)], usize); 5] = [
            (&[("srv", "read"), ("srv", "write")], 1),
            (&[("*", "*")], 1),
            (&[("srv", "*"), ("*", "read"), ("other", "*")], 2),
            (&[("other", "read")], 0),
            // A tool whose name begins alike is another tool.
            (&[("srv", "rea"), ("srv", "read2")], 0),
        ];
        for (grants, kept) in cases {
            let parent = scope(grants);
            let narrow = attenuated(&parent, "srv", "read");
            assert_eq!(narrow, scope(&vec![("srv", "read"); kept]), "{grants:?}");
            assert!(narrow.is_subset_of(&parent), "{grants:?}");
        }
    }

    #[test]
    fn limits_stay_and_resources_and_prompts_go() {
        let operations = vec![Operation::Read];
        let mut parent = scope(&[("srv", "read")]);
        parent.grants[0].max_invocations = Some(3);
        parent.grants[0].dpop_required = Some(true);
        parent.grants[0].constraints = vec![Constraint::MaxLength(9)];
        let grants = parent.grants.clone();
        let resource =
            ResourceGrant { uri_pattern: "*".to_owned(), operations: operations.clone() };
        parent.resource_grants = vec![resource];
        parent.prompt_grants = vec![PromptGrant { prompt_name: "*".to_owned(), operations }];
        let narrow = attenuated(&parent, "srv", "read");
        assert_eq!(narrow, ChioScope { grants, ..ChioScope::default() });
    }
}
