//! The course of a cell second by second: rates, times, processors, the generator's own lag. The
//! warm-up, which is excluded from every figure, is shaded.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_stats::steady_state::State;

use super::picture::{Kind, Picture, lean, rounded};
use super::tcp_looks;
use super::tcp_looks::Look;
use crate::summary::course::TOO_SHORT;
use crate::summary::{Cell, Matrix};

/// A picture for every cell whose trials have intervals.
pub(crate) fn pictures(
    matrix: &Matrix,
    of_cells: &[Cell],
    trials: &[Vec<&TrialFinished>],
    events: &[Event],
) -> Vec<Picture> {
    let mut by_trial: BTreeMap<&str, Vec<Moment>> = BTreeMap::new();
    for event in events {
        if let Event::Interval(interval) = event {
            let moments = by_trial.entry(interval.trial.as_str()).or_default();
            let before_ns = moments.last().map_or(0, |moment| moment.at_ns);
            // A trial that was repeated after a crash starts over.
            if interval.at_ns <= before_ns {
                moments.clear();
            }
            let before_ns = moments.last().map_or(0, |moment| moment.at_ns);
            moments.extend(Moment::of(interval, before_ns));
        }
    }
    by_trial.values_mut().for_each(drop_short_end);
    let looks = tcp_looks::by_trial(events);
    for (trial, moments) in &mut by_trial {
        let looks = looks.get(trial).map_or(&[][..], Vec::as_slice);
        moments.iter_mut().for_each(|moment| moment.know(tcp_looks::at(looks, moment.at_ns)));
    }
    let cells: Vec<Vec<&Vec<Moment>>> = trials
        .iter()
        .map(|trials| trials.iter().filter_map(|t| by_trial.get(t.trial.as_str())).collect())
        .collect();
    let points: usize = cells.iter().flatten().map(|moments| moments.len()).sum();
    let detail = Detail::within(points, cells.iter().map(Vec::len).max().unwrap_or(0));
    let having = cells.iter().enumerate().filter(|(_, runs)| !runs.is_empty());
    let with_course = |(cell, runs): (usize, &Vec<&Vec<Moment>>)| {
        let mut picture = picture(cell, matrix, runs, detail);
        picture.note += &course(&of_cells[cell].steady_state);
        picture
    };
    having.map(with_course).collect()
}

/// One interval of a trial; values that were not measured are `None`.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    at_ns: u64,
    length_ns: u64,
    is_warmup: bool,
    is_draining: bool,
    values: [Option<f64>; PANELS_LINES],
}

impl Moment {
    /// The interval's counts as rates. An interval without length has none.
    fn of(interval: &Interval, before_ns: u64) -> Option<Moment> {
        let length_ns = interval.at_ns.checked_sub(before_ns).filter(|ns| *ns > 0)?;
        let seconds = length_ns as f64 / 1e9;
        let rate = |number: u64| Some(number as f64 / seconds);
        let times = Measured::of(interval);
        Some(Moment {
            at_ns: interval.at_ns,
            length_ns,
            is_warmup: interval.warmup,
            is_draining: interval.draining,
            values: [
                // After the load nothing is to be sent: 0 would look like a fall.
                rate(interval.sent).filter(|rate| !interval.draining || *rate > 0.0),
                rate(interval.acknowledged).filter(|rate| *rate > 0.0),
                rate(interval.delivered).filter(|rate| *rate > 0.0),
                rate(interval.errors).filter(|rate| *rate > 0.0),
                Some(interval.connections as f64),
                times.p50_ns,
                times.p99_ns,
                times.target_cpu_percent,
                times.generator_cpu_percent,
                times.send_lag_p99_ns,
                None,
                None,
                None,
            ],
        })
    }

    /// Adds what TCP knew of the path then.
    fn know(&mut self, look: Option<&Look>) {
        let Some(look) = look else { return };
        self.values[TCP] = Some(look.round_trip_ns());
        self.values[TCP + 1] = Some(look.window_segments());
        self.values[TCP + 2] = Some(look.retransmitted_segments());
    }
}

/// Leaves out a last interval that is shorter than the others: a moment of waiting for the last
/// answers would look as if the rate had fallen to 0. In journals without the end of the load, any
/// such interval is left out; in others only one after the load, since the rate of a shorter
/// interval within it is right.
fn drop_short_end(moments: &mut Vec<Moment>) {
    let longest = moments.iter().map(|moment| moment.length_ns).max().unwrap_or(0);
    let knows_end = moments.iter().any(|moment| moment.is_draining);
    let is_short = |last: &Moment| 10 * last.length_ns < 9 * longest;
    if moments.len() > 1
        && moments.last().is_some_and(|last| is_short(last) && last.is_draining == knows_end)
    {
        moments.pop();
    }
}

/// Optional values of intervals. The panel of a value that the journal does not have is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Measured {
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    target_cpu_percent: Option<f64>,
    generator_cpu_percent: Option<f64>,
    send_lag_p99_ns: Option<f64>,
}

impl Measured {
    fn of(interval: &Interval) -> Measured {
        let number = |value: Option<u64>| value.map(|value| value as f64);
        Measured {
            p50_ns: number(interval.response_time_ns_p50),
            p99_ns: number(interval.response_time_ns_p99),
            target_cpu_percent: interval.target_cpu_percent,
            generator_cpu_percent: interval.generator_cpu_percent,
            send_lag_p99_ns: number(interval.send_lag_ns_p99),
        }
    }
}

/// Level of detail: a large run is thinned so that the page stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Detail {
    has_repetitions: bool,
    points_max: usize,
}

impl Detail {
    /// Every repetition if there are few points; otherwise the means, of every interval or fewer.
    fn within(points: usize, repetitions: usize) -> Detail {
        let means = points / repetitions.max(1);
        let has_repetitions = points <= POINTS_MAX;
        let points_max = if means <= POINTS_MAX { usize::MAX } else { THINNED };
        Detail { has_repetitions, points_max }
    }
}

fn picture(cell: usize, matrix: &Matrix, runs: &[&Vec<Moment>], detail: Detail) -> Picture {
    let panels: Vec<&Panel> = PANELS.iter().filter(|panel| panel.is_filled(runs)).collect();
    let shades = shades(runs);
    let (mut grids, mut x, mut y, mut series) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let end = runs.iter().filter_map(|run| run.last()).map(|moment| moment.at_ns).max();
    for (index, panel) in panels.iter().enumerate() {
        let top = 24 + index as u32 * (PANEL + GAP);
        grids.push(json!({ "top": top, "left": 70, "right": 18, "height": PANEL }));
        x.push(json!({
            "type": "value", "gridIndex": index, "min": 0, "splitLine": { "show": false },
            "max": lean(end.unwrap_or(0) as f64 / 1e9), "axisLine": { "show": true },
            "axisLabel": { "formatter": "@seconds", "show": index + 1 == panels.len() },
        }));
        y.push(json!({
            "type": "value", "gridIndex": index, "min": 0, "splitNumber": 3, "name": panel.title,
            "nameTextStyle": { "align": "left", "padding": [0, 0, 0, -60] }, "nameGap": 10,
            "axisLabel": { "formatter": panel.marks },
        }));
        series.extend(panel.series(index, runs, detail, &shades));
    }
    let names: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel.lines.iter().filter(|line| line.is_filled(runs)))
        .map(|line| line.name)
        .collect();
    Picture {
        name: format!("over-time-{:03}", cell + 1),
        kind: Kind::OverTime,
        subject: cell.to_string(),
        part: String::new(),
        title: format!("{} over time", matrix.labels[cell]),
        note: note(runs, detail),
        height: 24 + panels.len() as u32 * (PANEL + GAP),
        about: json!({}),
        option: json!({
            "grid": grids, "legend": { "data": names },
            "axisPointer": { "link": [{ "xAxisIndex": "all" }] },
            "tooltip": { "trigger": "axis", "formatter": "@moment" },
            "xAxis": x, "yAxis": y, "series": series,
        }),
    }
}

/// Shaded parts, from and to, seconds: the warm-up, and the time after the load.
fn shades(runs: &[&Vec<Moment>]) -> Vec<(f64, f64)> {
    let moments = || runs.iter().flat_map(|run| run.iter());
    let end = |of: &dyn Fn(&&Moment) -> bool| {
        moments().filter(of).map(|moment| moment.at_ns).max().map(|ns| ns as f64 / 1e9)
    };
    let warmup = end(&|moment| moment.is_warmup).map(|warm_s| (0.0, warm_s));
    let load = end(&|moment| !moment.is_draining).unwrap_or(0.0);
    let draining = end(&|moment| moment.is_draining).map(|end_s| (load, end_s));
    warmup.into_iter().chain(draining).collect()
}

fn note(runs: &[&Vec<Moment>], detail: Detail) -> String {
    let mut text = match (runs.len(), detail.has_repetitions) {
        (1, _) => "One repetition.".to_owned(),
        (n, true) => format!("Bold: the mean of {n} repetitions; thin: each of them."),
        (n, false) => format!("The mean of {n} repetitions; thinned, each is in the journal."),
    };
    if runs.iter().any(|run| run.len() > detail.points_max) {
        text += " Neighbouring intervals are put together.";
    }
    let has = |of: &dyn Fn(&Moment) -> bool| runs.iter().any(|run| run.iter().any(of));
    match (has(&|moment| moment.is_warmup), has(&|moment| moment.is_draining)) {
        (true, true) => {
            text += " Shaded: warm-up, excluded from every figure, and the time after the load, \
                     in which only answers and deliveries were awaited.";
        }
        (true, false) => text += " Shaded: warm-up, excluded from every figure.",
        (false, true) => {
            text += " Shaded: after the load, in which only answers and deliveries were awaited.";
        }
        (false, false) => {}
    }
    text
}

/// The course of the rate within the window, by number of repetitions.
fn course(counts: &BTreeMap<String, u32>) -> String {
    let said = counts.iter().enumerate().map(|(at, (name, number))| {
        let name = match name.as_str() {
            flat if flat == State::Flat.name() => "yes",
            TOO_SHORT => "the window is too short to tell",
            name => name,
        };
        let repetitions = match (at, number) {
            (0, 1) => " repetition",
            (0, _) => " repetitions",
            _ => "",
        };
        format!("{name} ({number}{repetitions})")
    });
    let said: Vec<String> = said.collect();
    match said.len() {
        0 => String::new(),
        _ => format!(" Was the rate steady? {}.", said.join(", ")),
    }
}

/// One scale with its lines.
struct Panel {
    title: &'static str,
    marks: &'static str,
    unit: &'static str,
    lines: &'static [Line],
}

/// One line: which value of a moment.
struct Line {
    name: &'static str,
    value: usize,
    colour: &'static str,
}

impl Line {
    fn is_filled(&self, runs: &[&Vec<Moment>]) -> bool {
        runs.iter().any(|run| run.iter().any(|moment| moment.values[self.value].is_some()))
    }
}

impl Panel {
    fn is_filled(&self, runs: &[&Vec<Moment>]) -> bool {
        self.lines.iter().any(|line| line.is_filled(runs))
    }

    fn series(
        &self,
        index: usize,
        runs: &[&Vec<Moment>],
        detail: Detail,
        shades: &[(f64, f64)],
    ) -> Vec<Value> {
        let mut all = Vec::new();
        let filled = self.lines.iter().filter(|line| line.is_filled(runs));
        for (look, line) in filled.enumerate() {
            if detail.has_repetitions && runs.len() > 1 {
                all.extend(runs.iter().enumerate().map(|(number, run)| {
                    let moments = run.iter().map(|m| (m.at_ns as f64, m.values[line.value]));
                    let id = format!("{}|{}|{number}", self.unit, line.name);
                    let data = points(&moments.collect::<Vec<_>>(), detail);
                    self.one(index, (line, look), &id, data, THIN)
                }));
            }
            let id = format!("{}|{}|mean", self.unit, line.name);
            let mut mean =
                self.one(index, (line, look), &id, points(&means(runs, line.value), detail), 2.0);
            if !shades.is_empty() && all.iter().all(|own| own["markArea"].is_null()) {
                let at = |seconds: f64| json!({ "xAxis": lean(seconds) });
                let area = |(from, to): &(f64, f64)| json!([at(*from), at(*to)]);
                let areas: Vec<Value> = shades.iter().map(area).collect();
                mean["markArea"] = json!({
                    "silent": true, "itemStyle": { "color": "$shade" }, "data": areas,
                });
            }
            all.push(mean);
        }
        all
    }

    fn one(
        &self,
        index: usize,
        (line, look): (&Line, usize),
        id: &str,
        data: Value,
        width: f64,
    ) -> Value {
        let is_mean = id.ends_with("|mean");
        let mut one = json!({
            "type": "line", "id": id, "name": line.name, "color": line.colour,
            "xAxisIndex": index, "yAxisIndex": index, "showSymbol": false, "look": look,
            "data": data, "lineStyle": { "width": width },
        });
        if !is_mean {
            one["lineStyle"]["opacity"] = json!(0.3);
            one["silent"] = json!(true);
            one["tooltip"] = json!({ "show": false });
        }
        one
    }
}

/// The mean over the repetitions, interval by interval.
fn means(runs: &[&Vec<Moment>], value: usize) -> Vec<(f64, Option<f64>)> {
    let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0);
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    (0..longest)
        .map(|index| {
            let moments = || runs.iter().filter_map(|run| run.get(index));
            let at = mean(moments().map(|moment| moment.at_ns as f64).collect());
            (at.unwrap_or(0.0), mean(moments().filter_map(|m| m.values[value]).collect()))
        })
        .collect()
}

/// Seconds and values, neighbours joined if there are too many. If they are evenly spaced, as
/// nearly always, only the step is written.
fn points(moments: &[(f64, Option<f64>)], detail: Detail) -> Value {
    let together = moments.len().div_ceil(detail.points_max).max(1);
    let chunks = moments.chunks(together).filter(|chunk| !chunk.is_empty());
    let point = |chunk: &[(f64, Option<f64>)]| {
        let values: Vec<f64> = chunk.iter().filter_map(|(_, value)| *value).collect();
        let at_s = chunk.last().map_or(0.0, |(at_ns, _)| at_ns / 1e9);
        (at_s, rounded(values.iter().sum::<f64>() / values.len() as f64, DIGITS))
    };
    let points: Vec<(f64, Value)> = chunks.map(point).collect();
    let step = points.first().map_or(1.0, |point| point.0);
    let is_even = |(index, (at_s, _)): (usize, &(f64, Value))| {
        (at_s - step * (index + 1) as f64).abs() < step / 20.0
    };
    if points.iter().enumerate().all(is_even) {
        let values: Vec<Value> = points.into_iter().map(|(_, value)| value).collect();
        return json!({ "$steps": [lean(step), values] });
    }
    points.into_iter().map(|(at_s, value)| json!([lean(at_s), value])).collect()
}

/// Significant digits of a value: those that a reader sees.
const DIGITS: i32 = 3;

/// The panels, from top to bottom.
const PANELS: [Panel; 8] = [
    Panel {
        title: "messages/s",
        marks: "@plain",
        unit: "1/s",
        lines: &[
            Line { name: "sent", value: 0, colour: "$c0" },
            Line { name: "confirmed", value: 1, colour: "$c3" },
            Line { name: "delivered", value: 2, colour: "$c2" },
            Line { name: "error answers", value: 3, colour: "$c1" },
        ],
    },
    Panel {
        title: "response or delivery time",
        marks: "@nanoseconds",
        unit: "ns",
        lines: &[
            Line { name: "p50", value: 5, colour: "$c5" },
            Line { name: "p99", value: 6, colour: "$c0" },
        ],
    },
    Panel {
        title: "processor, % of a core",
        marks: "@plain",
        unit: "%",
        lines: &[
            Line { name: "target CPU", value: 7, colour: "$c6" },
            Line { name: "generator CPU", value: 8, colour: "$c7" },
        ],
    },
    Panel {
        title: "send lag p99",
        marks: "@nanoseconds",
        unit: "ns",
        lines: &[Line { name: "send lag p99", value: 9, colour: "$c4" }],
    },
    Panel {
        title: "connections",
        marks: "@plain",
        unit: "count",
        lines: &[Line { name: "open", value: 4, colour: "$c7" }],
    },
    Panel {
        title: "round trip, by TCP",
        marks: "@nanoseconds",
        unit: "ns",
        lines: &[Line { name: "round trip by TCP", value: TCP, colour: "$c5" }],
    },
    Panel {
        title: "congestion window, segments",
        marks: "@plain",
        unit: "count",
        lines: &[Line { name: "congestion window", value: TCP + 1, colour: "$c2" }],
    },
    Panel {
        title: "segments retransmitted, so far",
        marks: "@plain",
        unit: "count",
        lines: &[Line { name: "retransmitted", value: TCP + 2, colour: "$c1" }],
    },
];

/// Number of values of a moment.
const PANELS_LINES: usize = 13;

/// The first value from TCP: round trip, window, retransmitted segments.
const TCP: usize = 10;

/// Numbers of intervals of a whole run up to which every repetition, or every interval, is drawn.
const POINTS_MAX: usize = 6_000;

const THIN: f64 = 0.8;

/// Points of a line in a large run.
const THINNED: usize = 60;

const PANEL: u32 = 110;

const GAP: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lengths_ms: &[(u64, bool)]) -> Vec<Moment> {
        let mut at_ns = 0;
        let moment = |&(length_ms, draining): &(u64, bool)| {
            let before_ns = at_ns;
            at_ns += length_ms * 1_000_000;
            let sent = if draining { 0 } else { length_ms };
            let interval = Interval { at_ns, sent, draining, ..Interval::default() };
            Moment::of(&interval, before_ns).unwrap()
        };
        lengths_ms.iter().map(moment).collect()
    }

    fn shown(lengths_ms: &[(u64, bool)]) -> Vec<f64> {
        let mut moments = run(lengths_ms);
        drop_short_end(&mut moments);
        moments.iter().filter_map(|moment| moment.values[0]).collect()
    }

    /// 1,000 messages a second in intervals of 100 ms; the last answers are awaited for a moment.
    #[test]
    fn the_end_of_the_load_does_not_look_like_a_fall() {
        let even = [(100, false), (100, false)];
        assert_eq!(shown(&[even[0], even[1], (40, true)]), [1_000.0, 1_000.0]);
        let shorter = [even[0], even[1], (60, false), (40, true)];
        assert_eq!(shown(&shorter), [1_000.0; 3], "a shorter interval of the load is scaled");
        let old = [even[0], even[1], (60, false)];
        assert_eq!(shown(&old), [1_000.0; 2], "nobody knows whether the load went on to its end");
        let long = [even[0], even[1], (100, true), (100, true)];
        assert_eq!(shown(&long), [1_000.0; 2], "after the load nothing was to be sent");
        assert_eq!(run(&long).len(), 4, "a backlog is shown");
        assert_eq!(shades(&[&run(&long)]), [(0.2, 0.4)]);
        assert_eq!(shown(&even), [1_000.0; 2]);
    }
}
