//! A resolved plan is a plan, and resolves to itself.

use proptest::prelude::*;
use proptest::sample::subsequence;
use weigh_plan::Resolved;

use crate::world::{resolve, resolved};

fn again(first: &Resolved) -> Resolved {
    let text = toml::to_string(&first.plan).unwrap();
    resolved(&text)
}

#[test]
fn the_examples_come_back_as_they_were() {
    for text in EXAMPLES {
        let first = resolved(text);
        assert_eq!(again(&first), first);
    }
}

/// Lines of a plan that may stand in `[load]` or, as lists, below `[vary]`; not all of them go
/// together, and what does not is refused.
fn axes() -> impl Strategy<Value = Vec<(&'static str, Vec<&'static str>)>> {
    let all: Vec<(&'static str, Vec<&'static str>)> = vec![
        ("protocol", vec!["\"mqtt\"", "\"http\"", "\"tcp\""]),
        ("target", vec!["\"reference\"", "\"mosquitto\"", "\"nginx\""]),
        ("load.pattern", vec!["\"publish\"", "\"deliver\"", "\"session\"", "\"hold\""]),
        ("load.connections", vec!["1", "2", "20"]),
        ("load.subscribers", vec!["0", "1", "2"]),
        ("load.topology", vec!["\"fan-in\"", "\"fan-out\"", "\"shared\"", "\"pairs\""]),
        ("load.messages", vec!["10", "5000"]),
        ("load.duration", vec!["\"1s\"", "\"1500ms\"", "\"2m\""]),
        ("load.rate", vec!["\"10/s\"", "\"0.1/s/client\"", "\"5k/s\""]),
        (
            "load.arrival",
            vec!["\"closed\"", "\"poisson\"", "\"burst\"", "\"ramp:2s\"", "\"steps:5/s@2s\""],
        ),
        ("load.window", vec!["1", "16"]),
        ("load.think", vec!["\"0s\"", "\"5ms\""]),
        ("load.warmup", vec!["\"0s\"", "\"300ms\""]),
        ("load.split", vec!["\"exact\"", "\"ceil\""]),
        ("load.writes", vec!["\"coalesced\"", "\"single\""]),
        ("load.size", vec!["\"64B\"", "\"1KiB\"", "\"1KB\""]),
        ("load.body", vec!["\"readings\"", "\"template:{seq}\"", "\"filler\""]),
        ("load.timeout", vec!["\"1s\"", "\"2s\""]),
        ("mqtt.qos", vec!["0", "1", "2"]),
        ("mqtt.version", vec!["5", "\"3.1.1\""]),
        ("mqtt.keep_alive", vec!["\"60s\"", "\"1m 5s\""]),
        ("http.keep_alive", vec!["true", "false"]),
        ("http1.path", vec!["\"/a\"", "\"/7\""]),
        ("target.overload", vec!["\"unlimited\"", "\"drop-newest:9\""]),
    ];
    let count = all.len();
    subsequence(all, 1..=count.min(6)).prop_flat_map(|axes| {
        axes.into_iter()
            .map(|(key, values)| {
                let most = values.len();
                (Just(key), subsequence(values, 1..=most.min(3)))
            })
            .collect::<Vec<_>>()
    })
}

fn plan(axes: &[(&str, Vec<&str>)], as_cases: bool) -> String {
    let mut fixed = String::new();
    let mut varied = String::new();
    for (key, values) in axes {
        // `target = ...` and `target.overload = ...` are one table to TOML.
        let key = if *key == "target" { "target.name" } else { key };
        match values.as_slice() {
            [value] => fixed += &format!("{key} = {value}\n"),
            values if as_cases => {
                for value in values {
                    varied += &format!("[[case]]\n{key} = {value}\n");
                }
            }
            values => varied += &format!("{key} = [{}]\n", values.join(", ")),
        }
    }
    if !axes.iter().any(|(key, _)| *key == "protocol") {
        fixed += "protocol = \"mqtt\"\n";
    }
    match (varied.is_empty(), as_cases) {
        (true, _) => fixed,
        (false, true) => format!("{fixed}{varied}"),
        (false, false) => format!("{fixed}[vary]\n{varied}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_resolves_resolves_to_itself(axes in axes(), as_cases: bool) {
        let text = plan(&axes, as_cases);
        if let Ok(first) = resolve(&text) {
            prop_assert!(!first.plan.cases.is_empty());
            prop_assert_eq!(again(&first), first, "{}", text);
        }
    }

    /// A plan with pieces of it, or of others, at other places.
    #[test]
    fn no_slip_brings_it_down(
        example in 0..EXAMPLES.len(),
        slips in proptest::collection::vec((0..2_000_usize, 0..40_usize, 0..PIECES.len()), 1..4),
    ) {
        let mut text: Vec<char> = EXAMPLES[example].chars().collect();
        for (at, length, piece) in slips {
            let at = at % text.len();
            let end = (at + length).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        let text: String = text.into_iter().collect();
        match resolve(&text) {
            Ok(first) => prop_assert_eq!(again(&first), first),
            Err(problems) => {
                let shown = problems.render("plan.toml", &text, false);
                prop_assert!(shown.contains("error: "), "{}", shown);
            }
        }
    }
}

const EXAMPLES: [&str; 6] = [
    include_str!("../../../../examples/mqtt-or-http.toml"),
    include_str!("../../../../examples/until-it-breaks.toml"),
    include_str!("../../../../examples/must-hold.toml"),
    include_str!("../../../../examples/precise-enough.toml"),
    include_str!("../../../../examples/cases-one-by-one.toml"),
    include_str!("../../../../examples/reference-or-mosquitto.toml"),
];

/// The result of a typing mistake in a plan.
const PIECES: [&str; 24] = [
    "",
    "=",
    "\"",
    "[",
    "]",
    "[[",
    "\n",
    ".",
    ", ",
    "{",
    "}",
    "\u{e9}",
    "-1",
    "0",
    "1e400",
    "true",
    "99999999999999999999",
    "\"5..60 step 7\"",
    "\"1..9 times 2\"",
    "[1, \"a\", []]",
    "load.",
    "2026-11-21",
    "\nload = 1\n",
    "\n[[case]]\n",
];
