//! Findings that still stand. Entries are only deleted; each test says which ones are done.

/// Files that need each other in a ring.
#[rustfmt::skip]
pub const IN_RINGS: &[&str] = &[
    "crates/runner/src/case/background.rs",
    "crates/runner/src/case/known.rs",
    "crates/runner/src/case/mod.rs",
    "crates/runner/src/preflight/patience.rs",
    "crates/runner/src/probes/background.rs",
    "crates/runner/src/probes/crossing.rs",
    "crates/runner/src/probes/emulated.rs",
    "crates/runner/src/probes/hearing.rs",
    "crates/runner/src/probes/layers.rs",
    "crates/runner/src/probes/metering.rs",
    "crates/runner/src/probes/staged.rs",
    "crates/runner/src/probes/taken.rs",
    "crates/runner/src/probes/watched.rs",
    "crates/runner/src/run/experiment.rs",
    "crates/runner/src/run/sitting.rs",
    "crates/runner/src/search/second_generator.rs",
    "crates/runner/src/search/trials.rs",
    "crates/runner/src/study/parts.rs",
    "crates/runner/src/study/sitting.rs",
    "crates/runner/src/study/tool_parts.rs",
    "crates/runner/src/study/tools.rs",
    "crates/runner/src/study/tools/repetition.rs",
    "crates/runner/src/study/tried.rs",
    "crates/runner/src/targets/behind.rs",
    "crates/runner/src/targets/counters.rs",
    "crates/runner/src/targets/kept.rs",
    "crates/runner/src/targets/relayed.rs",
    "crates/runner/src/targets/running.rs",
    "crates/runner/src/targets/secured.rs",
    "crates/runner/src/targets/stage.rs",
    "crates/runner/src/targets/watching.rs",
    "crates/runner/src/trial/followed.rs",
    "crates/runner/src/trial/measure.rs",
    "crates/runner/src/trial/record.rs",
    "crates/runner/src/trial/unanswered.rs",
];

/// Functions with a parameter that is a tuple of more than two.
#[rustfmt::skip]
pub const TUPLES: &[(&str, &str)] = &[
    ("crates/engine/src/shard/polling.rs", "ask"),
    ("crates/runner/src/probes/hearing.rs", "begin"),
    ("crates/runner/src/trial/measure.rs", "job"),
    ("crates/runner/src/trial/measure.rs", "measure"),
    ("crates/runner/src/trial/record.rs", "count"),
    ("crates/runner/src/trial/record.rs", "put_together"),
];

/// Structs with more fields than the limit.
#[rustfmt::skip]
pub const WIDE_STRUCTS: &[(&str, &str)] = &[
    ("crates/model/src/load.rs", "Load"),
    ("crates/plan/src/load.rs", "LoadWords"),
];
