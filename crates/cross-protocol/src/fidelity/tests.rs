//! The overview of all surfaces cell by cell, and every tool there can be on every surface.

use chio_core::fidelity::{BridgeFidelity, BridgeSemanticHints};
use serde_json::json;

use super::{AcpCategory, Facts, Surface, fidelity};
use crate::DiscoveryProtocol;

const SURFACES: [Surface; 7] = [
    Surface::Native,
    Surface::Http,
    Surface::Mcp,
    Surface::A2a,
    Surface::Acp,
    Surface::OpenAi,
    Surface::OpenApi,
];
const CATEGORIES: [AcpCategory; 4] =
    [AcpCategory::Filesystem, AcpCategory::Terminal, AcpCategory::Browser, AcpCategory::Tool];

/// A tool that nothing is special about, of a category that ACP knows.
const PLAIN: Facts = Facts {
    hints: BridgeSemanticHints {
        publish: true,
        approval_required: false,
        streams_output: false,
        supports_cancellation: false,
        partial_output: false,
    },
    has_side_effects: false,
    target_supported: true,
    category: AcpCategory::Tool,
};

fn with(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = PLAIN;
    change(&mut facts);
    facts
}

fn in_category(category: AcpCategory) -> Facts {
    with(|facts| facts.category = category)
}

/// The rating in a letter: lossless, adapted, unsupported.
fn letter(rating: &BridgeFidelity) -> char {
    match rating {
        BridgeFidelity::Lossless => 'L',
        BridgeFidelity::Adapted { .. } => 'A',
        BridgeFidelity::Unsupported { .. } => 'U',
    }
}

/// Every tool there can be.
fn every_tool() -> Vec<Facts> {
    let mut all = Vec::new();
    for bits in 0_u16..1 << 7 {
        let bit = |place: u16| bits & (1 << place) != 0;
        for category in CATEGORIES {
            let hints = BridgeSemanticHints {
                publish: bit(0),
                approval_required: bit(1),
                streams_output: bit(2),
                supports_cancellation: bit(3),
                partial_output: bit(4),
            };
            let (has_side_effects, target_supported) = (bit(5), bit(6));
            all.push(Facts { hints, has_side_effects, target_supported, category });
        }
    }
    all
}

#[test]
fn every_cell_of_the_matrix_holds() {
    use AcpCategory::{Browser, Filesystem, Terminal, Tool};
    let writes =
        |category| with(|facts| (facts.has_side_effects, facts.category) = (true, category));
    let asks =
        |category| with(|facts| (facts.hints.approval_required, facts.category) = (true, category));
    let streams =
        |category| with(|facts| (facts.hints.streams_output, facts.category) = (true, category));
    let cancels =
        with(|facts| (facts.hints.supports_cancellation, facts.category) = (true, Filesystem));
    let part = with(|facts| (facts.hints.partial_output, facts.category) = (true, Filesystem));
    // Surfaces in the order of `SURFACES`:
    // native, http, mcp, a2a, acp, open_ai, open_api.
    let cases = [
        ("generic", PLAIN, "LLLLALL"),
        ("filesystem", in_category(Filesystem), "LLLALLL"),
        ("terminal", in_category(Terminal), "LLLALLL"),
        ("browser", in_category(Browser), "LLLAULL"),
        ("generic with side effects", writes(Tool), "LLLAULL"),
        ("filesystem with side effects", writes(Filesystem), "LLLAALL"),
        ("terminal with side effects", writes(Terminal), "LLLAALL"),
        ("browser with side effects", writes(Browser), "LLLAULL"),
        ("generic with approval", asks(Tool), "LLLUULL"),
        ("filesystem with approval", asks(Filesystem), "LLLUULL"),
        ("generic stream", streams(Tool), "LAAAAAU"),
        ("filesystem stream", streams(Filesystem), "LAAAAAU"),
        ("cancellable", cancels, "LALAAAU"),
        ("partial output", part, "LAAAAAA"),
        ("withheld", with(|facts| facts.hints.publish = false), "UUUUUUU"),
        ("no executor", with(|facts| facts.target_supported = false), "UUUUUUU"),
    ];
    for (what, facts, expected) in cases {
        let found = SURFACES.map(|surface| letter(&fidelity(surface, &facts)));
        assert_eq!(found.iter().collect::<String>(), expected, "{what}");
    }
}

#[test]
fn what_must_not_be_shown_is_never_published() {
    for facts in every_tool() {
        for surface in SURFACES {
            let edge = matches!(surface, Surface::A2a | Surface::Acp);
            let mutates = facts.has_side_effects && facts.category == AcpCategory::Tool;
            let acp = facts.category == AcpCategory::Browser || mutates;
            let upstream = facts.hints.streams_output || facts.hints.supports_cancellation;
            let hidden = !facts.hints.publish
                || !facts.target_supported
                || (edge && facts.hints.approval_required)
                || (surface == Surface::Acp && acp)
                || (surface == Surface::OpenApi && upstream);
            let rating = fidelity(surface, &facts);
            assert_eq!(rating.is_published(), !hidden, "{surface:?} {facts:?}");
        }
    }
}

/// How many things a surface has to warn of, counted by its published criteria.
fn warnings(surface: Surface, facts: &Facts) -> usize {
    let hints = &facts.hints;
    let (streams, partial) = (hints.streams_output, hints.partial_output);
    let (cancels, writes) = (hints.supports_cancellation, facts.has_side_effects);
    let generic = facts.category == AcpCategory::Tool;
    let flags: &[bool] = match surface {
        Surface::Native => &[],
        Surface::Mcp => &[streams, partial],
        Surface::OpenApi => &[partial],
        Surface::Http | Surface::OpenAi => &[streams, partial, cancels],
        Surface::A2a => &[streams, partial, cancels, writes, !generic],
        Surface::Acp => &[streams, partial, cancels, writes, generic],
    };
    flags.iter().filter(|flag| **flag).count()
}

#[test]
fn a_tool_is_lossless_only_without_a_caveat_and_each_caveat_is_told_once() {
    for facts in every_tool() {
        for surface in SURFACES {
            let told = match fidelity(surface, &facts) {
                BridgeFidelity::Unsupported { reason } => {
                    assert!(!reason.is_empty());
                    continue;
                }
                BridgeFidelity::Lossless => 0,
                BridgeFidelity::Adapted { mut caveats } => {
                    let told = caveats.len();
                    assert_ne!(told, 0, "{surface:?} {facts:?}");
                    caveats.sort();
                    caveats.dedup();
                    assert_eq!(caveats.len(), told, "{surface:?} {facts:?}");
                    told
                }
            };
            assert_eq!(told, warnings(surface, &facts), "{surface:?} {facts:?}");
        }
    }
}

#[test]
fn the_first_refusal_that_fits_is_the_reason() {
    let reason = |surface, facts: &Facts| match fidelity(surface, facts) {
        BridgeFidelity::Unsupported { reason } => reason,
        other => panic!("{other:?}"),
    };
    let mut facts = in_category(AcpCategory::Browser);
    facts.has_side_effects = true;
    assert!(reason(Surface::Acp, &facts).contains("browser"));
    assert!(reason(Surface::Acp, &with(|f| f.has_side_effects = true)).contains("generic"));
    facts.hints.approval_required = true;
    assert!(reason(Surface::Acp, &facts).contains("approval"));
    assert!(reason(Surface::A2a, &facts).contains("approval"));
    facts.target_supported = false;
    assert!(reason(Surface::Acp, &facts).contains("executor"));
    facts.hints.publish = false;
    assert!(reason(Surface::Acp, &facts).contains("author"));
}

#[test]
fn facts_come_from_the_tool() {
    let tool = serde_json::from_value(json!({
        "name": "Run_Shell", "description": "", "has_side_effects": true, "latency_hint": "slow",
        "input_schema": {"x-chio-publish": false},
    }))
    .unwrap();
    let facts = Facts::of(&tool, false, AcpCategory::Tool);
    assert_eq!(facts.category, AcpCategory::Terminal);
    assert!(facts.has_side_effects && !facts.target_supported);
    assert!(!facts.hints.publish && facts.hints.supports_cancellation);
    assert!(Facts::of(&tool, true, AcpCategory::Tool).target_supported);
}

#[test]
fn each_protocol_has_its_own_surface() {
    let surfaces = DiscoveryProtocol::ALL.map(Surface::from);
    assert_eq!(surfaces[..], SURFACES[..6]);
}
