//! The answer as one page of HTML without scripts: the sentence, the figures, a picture of the
//! intervals, a map of the regions, and everything that was assumed.

use std::fmt::Write as _;

use weigh_model::numbers::{rough, size};
use weigh_report::page::document::{STYLE, escape, section, still};

use crate::answer::{Advice, Inputs, OptionShown, Standing};
use crate::criterion::Criterion;
use crate::regions::Regions;
use crate::text::{range, words};

/// The page. `regions` is the map, made from the same inputs.
pub fn page(advice: &Advice, inputs: &Inputs<'_>, regions: &Regions) -> String {
    let title = match advice.situation.name.as_str() {
        "" => "Which protocol?",
        name => name,
    };
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"lead\">{}</p></header>\n<main>\n",
        escape(title),
        escape(&advice.sentence)
    );
    body += &section("options", "Options", &(figures(advice) + &intervals(advice)));
    body += &section("regions", "Where the answer turns", &map(advice, inputs, regions));
    body += &section(
        "break-even",
        "Break-even values",
        &list(
            advice.break_even.iter().map(|own| own.sentence.as_str()),
            "No two options cross within the ranges that were looked at.",
        ),
    );
    body += &section("out", "What cannot do it, and what is not known", &reasons(advice));
    if let Some(deciding) = &advice.deciding {
        let plan =
            format!("<p>{}</p><pre>{}</pre>", escape(&deciding.sentence), escape(&deciding.plan));
        body += &section("deciding", "The run that would decide", &plan);
    }
    let origins =
        advice.cells.iter().map(|(family, origin)| format!("costs of {family}: {origin}"));
    let assumed: Vec<String> = advice.assumptions.iter().cloned().chain(origins).collect();
    body += &section("assumed", "Assumptions", &list(assumed.iter().map(String::as_str), "None."));
    let situation = format!("<pre>{}</pre>", escape(&advice.situation.to_toml()));
    body += &section("situation", "The situation", &situation);
    still(title, &(body + "</main>\n"), &format!("{STYLE}\n{OWN_STYLE}"))
}

/// Figures of all options that were predicted.
fn figures(advice: &Advice) -> String {
    let mut text = "<div class=\"wide\"><table><thead><tr><th>option</th>".to_owned();
    for (heading, _) in Criterion::ALL.iter().flat_map(|own| own.columns()) {
        let _ = write!(text, "<th>{heading}</th>");
    }
    text += "<th>cheapest with</th></tr></thead><tbody>";
    for option in predicted(advice) {
        let class = if option.standing == Standing::Advised { " class=\"advised\"" } else { "" };
        let _ = write!(text, "<tr{class}><td>{}</td>", escape(&option.name));
        for criterion in Criterion::ALL {
            for (_, factor) in criterion.columns() {
                let known = (option.figures.get(&criterion), option.missing.get(&criterion));
                let shown = match known {
                    (Some(figure), _) => escape(&range(criterion, &figure.times(*factor))),
                    (None, Some(missing)) => {
                        format!("<span title=\"{}\">?</span>", escape(&missing.why))
                    }
                    (None, None) => "?".to_owned(),
                };
                let _ = write!(text, "<td class=\"number\">{shown}</td>");
            }
        }
        let _ = write!(text, "<td class=\"number\">{:.0} %</td></tr>", option.best * 100.0);
    }
    text + "</tbody></table></div>\n<p>Marked options cannot be distinguished from the best.</p>\n"
}

/// The options that were predicted, the advised ones first.
fn predicted(advice: &Advice) -> Vec<&OptionShown> {
    let is_known = |own: &&OptionShown| {
        matches!(own.standing, Standing::Advised | Standing::Behind) && own.why.is_none()
    };
    let mut shown: Vec<&OptionShown> = advice.options.iter().filter(is_known).collect();
    let place = |own: &OptionShown| advice.advised.iter().position(|name| *name == own.name);
    let cost = |own: &OptionShown| own.ratio.map_or(f64::INFINITY, |own| own.value);
    shown.sort_by(|a, b| {
        let of = |own: &OptionShown| place(own).unwrap_or(usize::MAX);
        of(a).cmp(&of(b)).then(cost(a).total_cmp(&cost(b)))
    });
    shown
}

/// The first criterion of every option, on one logarithmic scale.
fn intervals(advice: &Advice) -> String {
    let criterion = advice.situation.matters[0];
    let shown: Vec<&OptionShown> = predicted(advice)
        .into_iter()
        .filter(|own| own.figures.get(&criterion).is_some_and(|own| own.low > 0.0))
        .collect();
    let ends = shown.iter().filter_map(|own| own.figures.get(&criterion));
    let (low, high) = ends
        .fold((f64::INFINITY, 0.0_f64), |(low, high), own| (low.min(own.low), high.max(own.high)));
    if shown.is_empty() || !high.is_finite() {
        return String::new();
    }
    let (from, to) = ((low * 0.9).ln(), (high * 1.1).ln());
    let x = |value: f64| LEFT + (value.max(low).ln() - from) / (to - from) * (WIDTH - LEFT - 70.0);
    let height = 30.0 + ROW * shown.len() as f64;
    let mut text = format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{} of every option with its interval\">",
        criterion.heading()
    );
    for (at, option) in shown.iter().enumerate() {
        let figure = &option.figures[&criterion];
        let y = 16.0 + ROW * at as f64;
        let class = if option.standing == Standing::Advised { "near" } else { "far" };
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <line class=\"{class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\"/>\
             <circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"5\"/>",
            LEFT - 12.0,
            y + 4.0,
            escape(&option.name),
            x(figure.low),
            x(figure.high),
            x(figure.value),
        );
    }
    for value in [low, (low * high).sqrt(), high] {
        let _ = write!(
            text,
            "<text class=\"axis\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(value),
            height - 4.0,
            escape(&words(criterion, value))
        );
    }
    text + &format!(
        "</svg><figcaption>95 % intervals of {}, logarithmic scale.</figcaption></figure>\n",
        criterion.heading()
    )
}

/// The map: interval across, size down; the colour is the first option of the set.
fn map(advice: &Advice, inputs: &Inputs<'_>, regions: &Regions) -> String {
    let mut seen: Vec<usize> = Vec::new();
    for own in regions.best.iter().flatten().filter_map(|set| set.first()) {
        if !seen.contains(own) {
            seen.push(*own);
        }
    }
    if seen.is_empty() {
        return "<p>Nothing was measured anywhere near.</p>\n".to_owned();
    }
    let (columns, rows) = (regions.every_s.len() as f64, regions.sizes.len() as f64);
    let (wide, high) = ((WIDTH - 90.0) / columns, 38.0);
    let height = high * rows + 50.0;
    let mut text = format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Best option by \
         time between messages and size of a message\">"
    );
    for (row, sets) in regions.best.iter().enumerate() {
        let y = high * row as f64;
        let _ = write!(
            text,
            "<text x=\"76\" y=\"{}\" text-anchor=\"end\">{}</text>",
            y + 24.0,
            size(regions.sizes[row])
        );
        for (column, set) in sets.iter().enumerate() {
            let x = 84.0 + wide * column as f64;
            text += &cell(set, &seen, (x, y), (wide, high));
        }
    }
    for (column, every_s) in regions.every_s.iter().enumerate() {
        let x = 84.0 + wide * (column as f64 + 0.5);
        let _ = write!(
            text,
            "<text class=\"axis\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            high * rows + 18.0,
            rough(*every_s)
        );
    }
    let _ = write!(
        text,
        "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">time between two messages \
         of a device</text></svg>",
        WIDTH / 2.0,
        height - 6.0
    );
    text += "<ul class=\"legend\">";
    for (place, at) in seen.iter().enumerate() {
        let name = escape(&inputs.offers[*at].choice.name());
        let _ = write!(
            text,
            "<li><svg viewBox=\"0 0 12 12\" class=\"key\"><rect width=\"12\" height=\"12\" \
             class=\"r{}\"/></svg> {name}</li>",
            place % COLOURS
        );
    }
    let matters = advice.situation.matters[0].heading();
    text + &format!(
        "</ul><figcaption>The best option in {matters}. A number counts the options that cannot be \
         distinguished from it; an empty field was not measured, or nothing can do it.</figcaption>\
         </figure>\n"
    )
}

fn cell(set: &[usize], seen: &[usize], (x, y): (f64, f64), (wide, high): (f64, f64)) -> String {
    let place = set.first().and_then(|first| seen.iter().position(|own| own == first));
    let class = place.map_or("none".to_owned(), |place| format!("r{}", place % COLOURS));
    let mut text = format!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        wide - 1.0,
        high - 1.0
    );
    if set.len() > 1 {
        let _ = write!(
            text,
            "<text class=\"on\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x + wide / 2.0,
            y + high / 2.0 + 4.0,
            set.len()
        );
    }
    text
}

/// Options that are out or unknown, with the reasons.
fn reasons(advice: &Advice) -> String {
    let of = |own: &OptionShown| {
        let why = own.why.as_deref()?;
        let run = own.run.as_deref().map_or(String::new(), |run| format!(" Type: {run}"));
        Some(format!("{}: {why}.{run}", own.name))
    };
    let all: Vec<String> = advice.options.iter().filter_map(of).collect();
    list(all.iter().map(String::as_str), "Every option can do it, and was predicted.")
}

fn list<'l>(lines: impl Iterator<Item = &'l str>, none: &str) -> String {
    let items: String = lines.map(|line| format!("<li>{}</li>", escape(line))).collect();
    if items.is_empty() { format!("<p>{}</p>", escape(none)) } else { format!("<ul>{items}</ul>") }
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 270.0;
const ROW: f64 = 26.0;

/// Colours of the map.
const COLOURS: usize = 8;

const OWN_STYLE: &str = "\
body { max-width: 64rem; margin: 0 auto; padding: 1rem 1.5rem 3rem; }
main section { margin-top: 2rem; }
.lead { font-size: 1.15rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid #8884; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.advised td { font-weight: 600; background: #0a7d3318; }
svg { width: 100%; height: auto; font: 13px sans-serif; fill: currentColor; }
svg .axis { font-size: 11px; opacity: .8; }
line { stroke-width: 3; } line.near { stroke: #0a7d33; } line.far { stroke: #888; }
circle.near { fill: #0a7d33; } circle.far { fill: #888; }
rect.none { fill: #8882; } text.on { fill: #fff; font-weight: 600; }
rect.r0 { fill: #1f6fb4; } rect.r1 { fill: #c4530b; } rect.r2 { fill: #2c7d33; }
rect.r3 { fill: #8250a8; } rect.r4 { fill: #a3394f; } rect.r5 { fill: #00747c; }
rect.r6 { fill: #7a5c00; } rect.r7 { fill: #5b5f66; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
.legend svg.key { width: 12px; height: 12px; }
pre { overflow-x: auto; padding: .8rem; background: #8881; }
";
