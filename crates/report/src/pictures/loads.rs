//! Results by load: rates in and out, times, errors and the target's processor against the offered
//! load; of a search's trials, or of a load that was raised in steps and held.

use serde_json::{Value, json};
use weigh_limit::scalability::EXTRAPOLATION_MAX;
use weigh_model::numbers::{exact, rate};

use super::picture::{Kind, Picture, lean};
use super::scale;
use crate::summary::Limit;
use crate::summary::Summary;
use crate::summary::ladder::HoldShown;
use crate::summary::limit_curve::{PlateauShown, ScalabilityShown};

/// A picture for every lane of a search and for every load in steps, with two loads or more.
pub(crate) fn pictures(summary: &Summary) -> Vec<Picture> {
    let limits = summary.limits.iter().enumerate().map(|(lane, limit)| of_search(lane, limit));
    let ladders = summary.ladders.iter().enumerate().map(|(number, ladder)| {
        let said = match (&ladder.plateau, &ladder.no_plateau) {
            (Some(plateau), _) => plateau_words(plateau),
            (None, Some(why)) => format!("No plateau: {why}."),
            (None, None) => String::new(),
        };
        let drawn = Drawn {
            name: format!("steps-{}", number + 1),
            title: format!("{}: results of each step", ladder.cell),
            note: format!(
                "Every point is a step without its first fifth. A curve, not an average. {said}"
            ),
            x: "offered per second",
            holds: &ladder.holds,
            plateau: ladder.plateau.as_ref(),
            law: None,
        };
        drawn.picture()
    });
    limits.chain(ladders).flatten().collect()
}

fn of_search(lane: usize, limit: &Limit) -> Option<Picture> {
    let found = &limit.described;
    let mut note = "Every point is the mean of the trials at one load. ".to_owned();
    if let Some(plateau) = &found.plateau {
        note += &plateau_words(plateau);
    }
    if let Some(knee) = &found.knee {
        let (low, high) = knee.between;
        note += &format!(
            "The knee (Kneedle), where the curve is farthest from the line between its ends, is \
             at {} ({low} to {high}); with more loads it moves. ",
            knee.at
        );
    }
    if let Some(law) = &found.scalability {
        note += &law_words(law);
    }
    for why in &found.not_shown {
        note += &format!("Not shown: {why}. ");
    }
    let drawn = Drawn {
        name: format!("loads-{}", lane + 1),
        title: format!("{}: results by load", limit.title()),
        note: note.trim_end().to_owned(),
        x: limit.counted(),
        holds: &limit.curve,
        plateau: found.plateau.as_ref(),
        law: found.scalability.as_ref(),
    };
    drawn.picture()
}

fn plateau_words(plateau: &PlateauShown) -> String {
    let between = plateau
        .level_between
        .map_or(String::new(), |(low, high)| format!(" ({} to {})", exact(low), exact(high)));
    format!(
        "A plateau of {}{between} begins between {} and {}; it is not a capacity, because loss \
         and time are not considered. ",
        rate(plateau.level_per_s),
        exact(plateau.begins.0),
        exact(plateau.begins.1)
    )
}

fn law_words(law: &ScalabilityShown) -> String {
    format!(
        "The dashed line is the Universal Scalability Law: contention {:.4} ({:.4} to {:.4}), \
         coherency {:.2e} ({:.2e} to {:.2e}). It is a description, not a capacity, and ends at \
         {} connections, 1.5 times the largest number measured. ",
        law.best.1,
        law.sigma.0,
        law.sigma.1,
        law.best.2,
        law.kappa.0,
        law.kappa.1,
        law.largest * EXTRAPOLATION_MAX,
    )
}

struct Drawn<'d> {
    name: String,
    title: String,
    note: String,
    x: &'d str,
    holds: &'d [HoldShown],
    plateau: Option<&'d PlateauShown>,
    law: Option<&'d ScalabilityShown>,
}

/// One panel: its title, the form of its marks, and its lines by name, colour and figure.
type Panel = (&'static str, &'static str, &'static [Line]);

/// A line by name, colour and figure.
type Line = (&'static str, &'static str, fn(&HoldShown) -> Option<f64>);

const PANELS: [Panel; 3] = [
    (
        "messages per second",
        "@count",
        &[("in", "$quiet", |hold| hold.input_per_s), ("out", "$c1", |hold| hold.output_per_s)],
    ),
    ("p99", "@nanoseconds", &[("p99 of times", "$c2", |hold| hold.time_ns_p99)]),
    (
        "percent",
        "@plain",
        &[
            ("target's processor", "$c3", |hold| hold.target_cpu_percent),
            ("errors", "$c4", |hold| hold.errors_ratio.map(|share| 100.0 * share)),
        ],
    ),
];

impl Drawn<'_> {
    fn picture(&self) -> Option<Picture> {
        let is_filled = |panel: &&Panel| {
            panel.2.iter().any(|(_, _, of)| self.holds.iter().any(|hold| of(hold).is_some()))
        };
        let panels: Vec<&Panel> = PANELS.iter().filter(is_filled).collect();
        if self.holds.len() < 2 || panels.is_empty() {
            return None;
        }
        let (mut grids, mut x, mut y, mut series) = (vec![], vec![], vec![], vec![]);
        for (index, (title, marks, lines)) in panels.iter().enumerate() {
            let top = 24 + index as u32 * (PANEL + GAP);
            grids.push(json!({ "top": top, "left": 74, "right": 22, "height": PANEL }));
            x.push(self.x_axis(index, index + 1 == panels.len()));
            y.push(json!({
                "type": "value", "gridIndex": index, "min": 0, "splitNumber": 3, "name": title,
                "nameTextStyle": { "align": "left", "padding": [0, 0, 0, -60] }, "nameGap": 10,
                "axisLabel": { "formatter": marks },
            }));
            let lines = lines.iter().enumerate();
            series.extend(lines.map(|(look, line)| self.line(index, look, line)));
        }
        series.extend(self.law.map(|law| self.law_line(law)));
        Some(Picture {
            name: self.name.clone(),
            kind: Kind::Loads,
            subject: self.title.clone(),
            part: String::new(),
            title: self.title.clone(),
            note: self.note.clone(),
            height: 24 + panels.len() as u32 * (PANEL + GAP) + 24,
            about: json!({ "unit": "1", "x": self.x }),
            option: json!({
                "grid": grids, "legend": {}, "tooltip": { "trigger": "axis", "formatter": "@axis" },
                "xAxis": x, "yAxis": y, "series": series,
            }),
        })
    }

    fn x_axis(&self, index: usize, is_last: bool) -> Value {
        let (low, high) = (self.holds[0].offered, self.holds[self.holds.len() - 1].offered);
        let mut axis = match self.law {
            Some(law) => scale::axis(low, high.max(law.largest * EXTRAPOLATION_MAX), high),
            None => scale::axis(low, high, high),
        };
        axis["gridIndex"] = json!(index);
        axis["splitLine"] = json!({ "show": false });
        axis["axisLabel"]["formatter"] = json!("@count");
        axis["axisLabel"]["show"] = json!(is_last);
        if is_last {
            axis["name"] = json!(self.x);
            axis["nameLocation"] = json!("middle");
            axis["nameGap"] = json!(26);
        }
        axis
    }

    fn line(&self, panel: usize, look: usize, (name, colour, of): &Line) -> Value {
        let points = self
            .holds
            .iter()
            .filter_map(|hold| Some(json!([lean(hold.offered), lean(of(hold)?), null, null])));
        let mut line = json!({
            "type": "line", "name": name, "color": colour, "look": look, "symbolSize": 6,
            "showSymbol": true, "lineStyle": { "width": 1.5 }, "xAxisIndex": panel,
            "yAxisIndex": panel, "data": points.collect::<Vec<_>>(),
        });
        if let (0, "out", Some(plateau)) = (panel, *name, self.plateau) {
            let end = self.holds[self.holds.len() - 1].offered;
            let (from, level) = (lean(plateau.begins.1), lean(plateau.level_per_s));
            line["markLine"] = json!({
                "symbol": "none", "silent": true, "lineStyle": { "type": "dashed" },
                "label": { "show": false },
                "data": [[{ "coord": [from, level] }, { "coord": [lean(end), level] }]],
            });
        }
        line
    }

    /// The law within its range.
    fn law_line(&self, law: &ScalabilityShown) -> Value {
        let (lambda, sigma, kappa) = law.best;
        let end = law.largest * EXTRAPOLATION_MAX;
        let at = |clients: f64| {
            let pairs = clients * (clients - 1.0);
            lambda * clients / (1.0 + sigma * (clients - 1.0) + kappa * pairs)
        };
        let points = (0..=LAW_POINTS).map(|number| {
            let clients = (end.ln() * f64::from(number) / f64::from(LAW_POINTS)).exp();
            json!([lean(clients), lean(at(clients)), null, null])
        });
        json!({
            "type": "line", "name": "scalability law", "color": "$c5", "symbol": "none",
            "lineStyle": { "width": 1.5, "type": "dashed" }, "xAxisIndex": 0, "yAxisIndex": 0,
            "data": points.collect::<Vec<_>>(),
        })
    }
}

const LAW_POINTS: u32 = 60;

/// Heights in CSS pixels.
const PANEL: u32 = 120;

const GAP: u32 = 34;
