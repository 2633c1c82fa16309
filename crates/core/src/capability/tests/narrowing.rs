//! Steps that narrow a scope.

use super::*;

/// A change of a grant.
type Change = fn(&mut ToolGrant);

#[test]
fn each_step_narrows_the_grant_it_names_and_no_other() {
    let other = grant("write", &[Operation::Invoke]);
    let cases: [(Attenuation, Change); 11] = [
        (remove_operation(Operation::ReadResult), |g| g.operations = vec![Operation::Invoke]),
        (add_constraint(Constraint::MaxArgsSize(9)), |g| {
            g.constraints.push(Constraint::MaxArgsSize(9));
        }),
        (add_constraint(Constraint::MaxLength(64)), |_| {}),
        (reduce_budget(9), |g| g.max_invocations = Some(9)),
        (reduce_budget(10), |_| {}),
        (reduce_budget(0), |g| g.max_invocations = Some(0)),
        (reduce_cost(usd(99)), |g| g.max_cost_per_invocation = Some(usd(99))),
        (reduce_cost(usd(100)), |_| {}),
        (reduce_total(usd(0)), |g| g.max_total_cost = Some(usd(0))),
        (reduce_total(usd(1000)), |_| {}),
        (shorten(END - 1), |_| {}),
    ];
    for (step, change) in cases {
        let parent = scope(&[limited(), other.clone()]);
        let (child, ends) = parent.attenuate(END, std::slice::from_ref(&step)).unwrap();
        let mut expected = limited();
        change(&mut expected);
        assert_eq!(child, scope(&[expected, other.clone()]), "{step:?}");
        assert_eq!(ends, if step.kind() == "shorten_expiry" { END - 1 } else { END });
        assert!(child.is_subset_of(&parent), "{step:?}");
    }
    let parent = scope(&[limited(), other.clone(), limited()]);
    assert_eq!(parent.attenuate(END, &[remove_tool()]).unwrap(), (scope(&[other]), END));
}

#[test]
fn limits_are_set_where_there_were_none() {
    let parent = scope(&[grant("read", &[Operation::Invoke])]);
    let steps = [reduce_budget(u32::MAX), reduce_cost(usd(7)), reduce_total(usd(u64::MAX))];
    let (child, _) = parent.attenuate(END, &steps).unwrap();
    assert_eq!(child.grants[0].max_invocations, Some(u32::MAX));
    assert_eq!(child.grants[0].max_cost_per_invocation, Some(usd(7)));
    assert_eq!(child.grants[0].max_total_cost, Some(usd(u64::MAX)));
    assert!(child.is_subset_of(&parent));
}

#[test]
fn steps_are_taken_one_after_another() {
    let parent = scope(&[limited()]);
    let narrowing = [reduce_budget(5), reduce_budget(3), shorten(50), shorten(40)];
    let (child, ends) = parent.attenuate(100, &narrowing).unwrap();
    assert_eq!((child.grants[0].max_invocations, ends), (Some(3), 40));
    for (steps, kind) in [
        (vec![reduce_budget(3), reduce_budget(5)], "reduce_budget"),
        (vec![shorten(40), shorten(50)], "shorten_expiry"),
        (
            vec![remove_operation(Operation::Invoke), remove_operation(Operation::Invoke)],
            "remove_operation",
        ),
    ] {
        assert_eq!(parent.attenuate(100, &steps), Err(AttenuationError::Widens(kind)));
    }
    let (server_id, tool_name) = names();
    let gone = AttenuationError::NoGrant { server_id, tool_name };
    assert_eq!(parent.attenuate(100, &[remove_tool(), reduce_budget(1)]), Err(gone));
    assert_eq!(parent.attenuate(100, &[]), Ok((parent.clone(), 100)));
}

#[test]
fn a_step_that_would_give_more_is_refused() {
    for step in [
        remove_operation(Operation::Delegate),
        add_constraint(cumulative(1)),
        reduce_budget(11),
        reduce_cost(usd(101)),
        reduce_cost(MonetaryAmount::new(1, "EUR")),
        reduce_total(usd(1001)),
        reduce_total(MonetaryAmount::new(1, "usd")),
        shorten(END + 1),
    ] {
        let outcome = scope(&[limited()]).attenuate(END, std::slice::from_ref(&step));
        assert_eq!(outcome, Err(AttenuationError::Widens(step.kind())), "{step:?}");
    }
    // One of two grants of the tool would be widened.
    let tighter = ToolGrant { max_invocations: Some(2), ..limited() };
    let outcome = scope(&[limited(), tighter]).attenuate(END, &[reduce_budget(5)]);
    assert_eq!(outcome, Err(AttenuationError::Widens("reduce_budget")));
}

#[test]
fn a_step_names_a_tool_that_is_granted_by_name() {
    let (server_id, tool_name) = names();
    let steps = [
        remove_tool(),
        remove_operation(Operation::Invoke),
        add_constraint(Constraint::MaxLength(1)),
        reduce_budget(1),
        reduce_cost(usd(1)),
        reduce_total(usd(1)),
    ];
    for step in steps {
        let absent = scope(&[grant("write", &[Operation::Invoke])]);
        let expected = AttenuationError::NoGrant {
            server_id: server_id.clone(),
            tool_name: tool_name.clone(),
        };
        let outcome = absent.attenuate(END, std::slice::from_ref(&step));
        assert_eq!(outcome, Err(expected), "{step:?}");
        for (server, tool) in [("*", "read"), ("srv", "*"), ("*", "*")] {
            let wild = ToolGrant { server_id: server.to_owned(), ..limited() };
            let wild = ToolGrant { tool_name: tool.to_owned(), ..wild };
            let expected = AttenuationError::Wildcard {
                server_id: server_id.clone(),
                tool_name: tool_name.clone(),
            };
            for parent in [scope(std::slice::from_ref(&wild)), scope(&[limited(), wild])] {
                let outcome = parent.attenuate(END, std::slice::from_ref(&step));
                assert_eq!(outcome, Err(expected.clone()), "{step:?}");
            }
        }
    }
    // A wildcard grant is narrowed by its own name.
    let wild = scope(&[ToolGrant { tool_name: "*".to_owned(), ..limited() }]);
    let all = Attenuation::ReduceBudget {
        server_id: "srv".to_owned(),
        tool_name: "*".to_owned(),
        max_invocations: 1,
    };
    let (child, _) = wild.attenuate(END, &[all]).unwrap();
    assert_eq!(child.grants[0].max_invocations, Some(1));
}

#[test]
fn steps_have_the_names_and_members_of_the_wire() {
    let tool = json!({"server_id": "srv", "tool_name": "read"});
    for (step, kind, member) in [
        (remove_tool(), "remove_tool", None),
        (remove_operation(Operation::Get), "remove_operation", Some(("operation", json!("get")))),
        (
            add_constraint(Constraint::MaxLength(1)),
            "add_constraint",
            Some(("constraint", json!({"type": "max_length", "value": 1}))),
        ),
        (reduce_budget(4), "reduce_budget", Some(("max_invocations", json!(4)))),
        (
            reduce_cost(usd(5)),
            "reduce_cost_per_invocation",
            Some(("max_cost_per_invocation", json!(usd(5)))),
        ),
        (reduce_total(usd(6)), "reduce_total_cost", Some(("max_total_cost", json!(usd(6))))),
    ] {
        let mut expected = tool.clone();
        expected["type"] = json!(kind);
        if let Some((name, value)) = member {
            expected[name] = value;
        }
        assert_eq!(serde_json::to_value(&step).unwrap(), expected);
        assert_eq!(read::<Attenuation>(&expected), step);
        assert_eq!(step.kind(), kind);
    }
    let expected = json!({"type": "shorten_expiry", "new_expires_at": 9});
    assert_eq!(serde_json::to_value(shorten(9)).unwrap(), expected);
    assert_eq!(shorten(9).kind(), "shorten_expiry");
}

#[test]
fn a_step_on_one_tool_is_shown_by_every_grant_that_reaches_it() {
    let parent_grant = ToolGrant {
        tool_name: WILDCARD.to_owned(),
        ..grant("any", &[Operation::Invoke, Operation::Delegate])
    };
    let parent = ChioScope { grants: vec![parent_grant.clone()], ..ChioScope::default() };
    let step = Attenuation::RemoveOperation {
        server_id: "srv".to_owned(),
        tool_name: "read".to_owned(),
        operation: Operation::Delegate,
    };
    let check = |operations: &[Operation]| {
        let child_grant = ToolGrant { operations: operations.to_vec(), ..parent_grant.clone() };
        let child = ChioScope { grants: vec![child_grant], ..ChioScope::default() };
        let (before, after) = (
            attenuation::Extent { scope: &parent, expires_at: END },
            attenuation::Extent { scope: &child, expires_at: END },
        );
        step.check(before, after)
    };
    assert_eq!(check(&[Operation::Invoke]), Ok(()));
    let kept = check(&[Operation::Invoke, Operation::Delegate]);
    assert_eq!(kept, Err(AttenuationError::NotReflected("remove_operation")));
}
