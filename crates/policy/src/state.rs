//! What guards remember from call to call. It outlives a policy: a document that is read anew does
//! not give anybody a new allowance.

/// What guards remember.
#[derive(Debug, Default)]
pub struct State {}
