//! What each surface refuses and what it has to warn of.
//!
//! Where the overview of all surfaces and a surface's own criteria disagree, the stricter one is
//! in the table.

use super::{AcpCategory, Surface};

/// Something that may be so with a tool.
#[derive(Clone, Copy)]
pub(super) enum Condition {
    /// Its author does not want it shown.
    Withheld,
    /// Nothing here can answer in the protocol that it is called by.
    NoExecutor,
    /// An approver has to approve each call.
    Approval,
    /// A call changes something.
    SideEffects,
    /// Its output comes bit by bit.
    Streams,
    /// A part of its output is of use without the rest.
    PartialOutput,
    /// A call can be cancelled.
    Cancellation,
    /// It works on this kind of thing.
    Category(AcpCategory),
}

use Condition::{
    Approval, Cancellation, Category, NoExecutor, PartialOutput, SideEffects, Streams, Withheld,
};

/// What is said when all the conditions are met.
type Rule = (&'static [Condition], &'static str);

/// What one surface has to say.
pub(super) struct Table {
    /// In order; the first that fits is the reason.
    pub(super) refusals: &'static [Rule],
    /// All that fit are told.
    pub(super) caveats: &'static [Rule],
}

/// What every surface refuses, before its own.
pub(super) const EVERYWHERE: [Rule; 2] = [
    (&[Withheld], "its author does not want it published"),
    (&[NoExecutor], "no executor is registered for its target protocol"),
];

const COLLECTED: Rule = (&[Streams], "streamed output is collected into one final result");
const NO_PARTS: Rule = (&[PartialOutput], "partial output is held back until the call has ended");
const NO_CANCEL: Rule = (&[Cancellation], "a running call cannot be cancelled");

/// The kernel's own surface: nothing is translated.
const NATIVE: Table = Table { refusals: &[], caveats: &[] };

/// One request, one whole response.
const HTTP: Table = Table { refusals: &[], caveats: &[COLLECTED, NO_PARTS, NO_CANCEL] };

/// Cancellation is MCP's own; output comes in chunks only to clients that ask for them.
const MCP: Table = Table {
    refusals: &[],
    caveats: &[
        (
            &[Streams],
            "streamed output is collected into one final result unless the client takes chunks",
        ),
        (
            &[PartialOutput],
            "partial output is held back until the call has ended unless the client takes chunks",
        ),
    ],
};

/// A function's output is one string.
const OPEN_AI: Table = Table { refusals: &[], caveats: &[COLLECTED, NO_PARTS, NO_CANCEL] };

/// One operation, one response: an upstream API has no way to stream or to cancel.
const OPEN_API: Table = Table {
    refusals: &[
        (&[Streams], "an HTTP operation returns one whole response and cannot stream"),
        (&[Cancellation], "an HTTP operation cannot be cancelled"),
    ],
    caveats: &[(&[PartialOutput], "partial output is held back until the response is whole")],
};

const A2A: Table = Table {
    refusals: &[(&[Approval], "it needs an interactive approval, which A2A cannot ask for")],
    caveats: &[
        (&[SideEffects], "calls change things, which an A2A skill cannot declare"),
        (&[Streams], "streamed output becomes a deferred task with one final message"),
        (&[PartialOutput], "partial output is held back until the task has ended"),
        (
            &[Cancellation],
            "a task is cancelled by its name, which a client that waits finds only in its list of tasks",
        ),
        (&[Category(AcpCategory::Filesystem)], "A2A has no notion of a filesystem tool"),
        (&[Category(AcpCategory::Terminal)], "A2A has no notion of a terminal tool"),
        (&[Category(AcpCategory::Browser)], "A2A has no notion of a browser tool"),
    ],
};

const ACP: Table = Table {
    refusals: &[
        (&[Approval], "it needs an interactive approval, which the permission preview is not"),
        (&[Category(AcpCategory::Browser)], "ACP has no browser capabilities"),
        (
            &[Category(AcpCategory::Tool), SideEffects],
            "ACP cannot show what a generic tool would change",
        ),
    ],
    caveats: &[
        (&[SideEffects], "calls change things and need permission, which is only previewed"),
        (&[Streams], "streamed output is collected and returned when the task is resumed"),
        (&[PartialOutput], "partial output is held back until the task has ended"),
        (&[Cancellation], "only a deferred task that has not run yet can be cancelled"),
        (&[Category(AcpCategory::Tool)], "ACP knows it only as a generic tool"),
    ],
};

impl Surface {
    pub(super) const fn table(self) -> &'static Table {
        match self {
            Self::Native => &NATIVE,
            Self::Http => &HTTP,
            Self::Mcp => &MCP,
            Self::A2a => &A2A,
            Self::Acp => &ACP,
            Self::OpenAi => &OPEN_AI,
            Self::OpenApi => &OPEN_API,
        }
    }
}
