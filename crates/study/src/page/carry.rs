//! How many units a server carries: the answer as a table, charts of what was measured, composed
//! and extrapolated, and behind folds the costs with what they predicted, and the break-evens.

use weigh_model::numbers::{percent, seconds, span};
use weigh_report::figures::{bytes, count, three_digits, time};
use weigh_report::page::document::escape;

use super::parts::{fold, list};
use super::{carry_charts, pictures};
use crate::carry::{Carried, CarryOutcome, FamilyShown, Floor, HeldOutShown, LaneShown, Reach};
use crate::outcome::{Link, Outcome};

/// The section; empty where the study does not ask.
pub(super) fn section(outcome: &Outcome) -> String {
    let mut number = pictures::numbered(outcome);
    let answers: String = outcome.carry.iter().map(|carry| of_one(carry, &mut number)).collect();
    match outcome.occasions.len() {
        0 | 1 => answers,
        _ if answers.is_empty() => answers,
        _ => {
            "<p class=\"note\">This section rests on the newest run alone.</p>\n".to_owned()
                + &answers
        }
    }
}

/// A question with its answer; its charts are numbered after `number`.
fn of_one(carry: &CarryOutcome, number: &mut usize) -> String {
    let mut html = format!("<p><b>{}</b></p>\n{}", escape(&carry.question), terms(carry));
    html += &answer(carry);
    let charts: String = carry_charts::of_one(carry)
        .into_iter()
        .map(|(name, chart)| {
            *number += 1;
            pictures::numbered_figure((*number, &name), &chart, carry_charts::CAPTION, "")
        })
        .collect();
    if !charts.is_empty() {
        html += &format!("<div class=\"figures\">\n{charts}</div>\n");
    }
    for family in &carry.families {
        let label = escape(&family.label);
        let title = format!("{label}: cost of each part, and how well it predicts");
        html += &fold(&title, &costs(family));
    }
    let pairs = carry.break_even.iter().map(|pair| escape(&pair.sentence));
    html += &fold("How many messages a connection must have", &list(pairs));
    let anchors = carry
        .anchors
        .iter()
        .map(|anchor| escape(&format!("{}: {} ({})", anchor.lane, anchor.sentence, anchor.source)));
    html += &fold("Compared with figures from elsewhere", &list(anchors));
    let missing = carry.missing.iter().map(|why| format!("Missing: {}", escape(why)));
    html + &list(missing)
}

/// Definition of a unit, of the server, and of carrying a load.
fn terms(carry: &CarryOutcome) -> String {
    format!(
        "<p class=\"note\">A {} is {} devices, each with a message every {}. The server has {} \
         and {} of memory. It carries a load if nothing is lost or late and 99 % of the answers \
         take at most {}; QoS 0 has no answer, so there only loss counts. Each lane was measured \
         with as many devices as its plan had: a smaller number does not mean that a lane carries \
         less. {} bytes for a connection are added to the memory of the process, which the kernel \
         keeps ({}).</p>",
        escape(&carry.unit),
        carry.sensors,
        seconds(carry.interval_s),
        carry.cores_in_words(),
        bytes(carry.memory_bytes),
        span(carry.p99_limit_ns),
        three_digits(carry.kernel_bytes_per_connection),
        escape(&carry.kernel_bytes_source),
    )
}

/// The table of the answer, a line a lane; marks stand for what is said once below it.
fn answer(carry: &CarryOutcome) -> String {
    let unit = escape(&carry.unit);
    let shares = carry.headrooms();
    let refused =
        if shares.is_empty() { "<th scope=\"col\">why there is no answer</th>" } else { "" };
    let heads: String = shares
        .iter()
        .map(|share| {
            let share = percent(share * 100.0);
            format!(
                "<th scope=\"col\">{unit}s at {share} of the cores (95 %)</th>\
                 <th scope=\"col\">ends at</th>"
            )
        })
        .collect();
    let notes = Notes::of(carry);
    let rows: String =
        carry.lanes.iter().map(|lane| lane_row(lane, carry, shares.len(), &notes)).collect();
    let notes = notes.html(carry);
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{unit}s carried\">\
         <table>\n<thead><tr><th scope=\"col\">way</th><th scope=\"col\">{unit}s, measured</th>\
         <th scope=\"col\">devices</th><th scope=\"col\">p99</th><th scope=\"col\">rate searched\
         , of {unit}s</th>{heads}{refused}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n<p class=\"note\">{notes}</p>\n"
    )
}

/// What cells do not show, said once with a letter, which stands where it is so.
struct Notes<'c>(Vec<&'c str>);

impl Notes<'_> {
    fn of(carry: &CarryOutcome) -> Notes<'_> {
        Notes(carry.reservations().into_iter().map(|(why, _)| why).collect())
    }

    fn letter(nth: usize) -> char {
        char::from(b'a' + (nth % 26) as u8)
    }

    fn marks(&self, reservations: &[String]) -> String {
        let place = |why: &String| self.0.iter().position(|known| *known == why.as_str());
        let mark = |nth: usize| format!("<sup>{}</sup>", Notes::letter(nth));
        reservations.iter().filter_map(place).map(mark).collect::<Vec<String>>().join(" ")
    }

    /// Meaning of the marks that are used.
    fn html(&self, carry: &CarryOutcome) -> String {
        let lanes = || carry.lanes.iter();
        let reaches = |reach| lanes().flat_map(|lane| &lane.carried).any(|one| one.reach == reach);
        let floors = || lanes().filter_map(|lane| Some((lane, lane.floor.as_ref()?)));
        let is_unreliable = lanes().any(|lane| !lane.carried.is_empty() && !carry.predicts(lane));
        let marks = [
            (true, MEASURED),
            (floors().any(|(lane, floor)| is_by_turns(lane, floor)), TURNS),
            (floors().any(|(_, floor)| floor.p99_has_lag), LAG),
            (reaches(Reach::Composed), COMPOSED),
            (reaches(Reach::Beyond), BEYOND),
            (is_unreliable, UNRELIABLE),
        ];
        let mut notes: Vec<String> = marks
            .into_iter()
            .filter(|(is_used, _)| *is_used)
            .map(|(_, text)| text.into())
            .collect();
        notes.extend(
            self.0
                .iter()
                .enumerate()
                .map(|(nth, why)| format!("<sup>{}</sup> {}.", Notes::letter(nth), escape(why))),
        );
        notes.extend(carry.of_turns().map(escape));
        notes.join(" ")
    }
}

fn is_by_turns(lane: &LaneShown, floor: &Floor) -> bool {
    lane.is_per_connection && floor.clients < floor.devices
}

fn lane_row(lane: &LaneShown, carry: &CarryOutcome, shares: usize, notes: &Notes<'_>) -> String {
    let floor =
        lane.floor.as_ref().map_or("<td>–</td><td>–</td><td>–</td>".to_owned(), |floor| {
            let units = link(&floor.link, &format!("at least {}", count(floor.units as u64)));
            let turns = if is_by_turns(lane, floor) { " ~" } else { "" };
            let p99 = match (floor.p99_ns, floor.p99_has_lag) {
                (None, _) => "–".to_owned(),
                (Some(p99), false) => time(p99, false),
                (Some(p99), true) => format!("≤ {}", time(p99, false)),
            };
            let devices = count(floor.devices as u64);
            let marks = notes.marks(&floor.reservations);
            format!("<td>{units}{turns}{marks}</td><td>{devices}</td><td>{p99}</td>")
        });
    let search = searched(lane, f64::from(carry.sensors));
    let predicts = carry.predicts(lane);
    let carried: String = lane.carried.iter().map(|own| carried(own, predicts)).collect();
    let refused = lane.refused.as_ref().map_or(String::new(), |why| match shares {
        // No line has an answer, and there are no columns for one.
        0 => format!("<td>{}</td>", escape(why)),
        _ => format!("<td colspan=\"{}\">{}</td>", 2 * shares, escape(why)),
    });
    let label = escape(&lane.label);
    format!("<tr><th scope=\"row\">{label}</th>{floor}<td>{search}</td>{carried}{refused}</tr>\n")
}

/// Highest rate that met the goals in a search, as that of a number of units.
fn searched(lane: &LaneShown, per_unit: f64) -> String {
    let Some(search) = &lane.search else { return "not searched".to_owned() };
    let units = |devices: f64| count((devices / per_unit) as u64);
    let found = match (search.low_devices, search.high_devices) {
        (Some(low), Some(high)) => format!("{} to {}", units(low), units(high)),
        (Some(low), None) => format!("at least {}", units(low)),
        (None, Some(high)) => format!("below {}", units(high)),
        (None, None) => search.sentence.clone(),
    };
    let found = link(&search.link, &found);
    match &search.ended_by {
        Some(why) => format!("{found} ({})", escape(why)),
        None => found,
    }
}

/// An estimate with the marks of how it is known; one of a model that does not predict well too.
fn carried(carried: &Carried, predicts: bool) -> String {
    let reach = match carried.reach {
        Reach::Measured => "",
        Reach::Composed => " +",
        Reach::Beyond => " *",
    };
    let warning = if predicts { "" } else { " ?" };
    let units = |units: Option<f64>| units.map_or("no upper bound".to_owned(), three_digits);
    format!(
        "<td>{} ({} to {}){reach}{warning}</td><td>{}</td>",
        units(carried.units),
        units(carried.units_low),
        units(carried.units_high),
        escape(&carried.binds)
    )
}

const MEASURED: &str = "Measured: one cell held that many devices, and nothing was lost. Estimates \
    are the cost model's, multiplied by the median of measured over predicted cost; their \
    intervals are from resampled costs and prediction errors.";
const TURNS: &str = "~ The rate of that many devices, by fewer that took turns.";
const LAG: &str = "≤ The p99 includes the generator's own lag.";
const COMPOSED: &str = "+ That many connections and that rate were measured separately.";
const BEYOND: &str = "* Extrapolated: beyond what was measured, the model alone.";
const UNRELIABLE: &str = "? Not reliable: the model does not predict other cells well enough.";

fn link(link: &Link, text: &str) -> String {
    format!("<a href=\"{}/report.html\">{}</a>", escape(&link.folder), escape(text))
}

/// Cost of each part in a family, and how well it predicts.
fn costs(family: &FamilyShown) -> String {
    let label = escape(&family.label);
    if let Some(why) = &family.refused {
        return format!("<p>Not fitted: {}</p>\n", escape(why));
    }
    let rows: String = family
        .terms
        .iter()
        .map(|term| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{} to {}</td></tr>\n",
                escape(&term.name),
                three_digits(term.cpu_us),
                three_digits(term.low),
                three_digits(term.high)
            )
        })
        .collect();
    let error = |error: Option<f64>| {
        error.map_or("no prediction".to_owned(), |error| percent(error * 100.0))
    };
    let advice = match family.is_predictive {
        true => "so the model may be used",
        false => "<b>so do not rely on the model</b>",
    };
    let awake = family.awake_s.map_or_else(
        || "wake-ups could not be distinguished from messages".to_owned(),
        |awake_s| format!("the server stays awake for {} once woken", time(awake_s * 1e9, false)),
    );
    let correction = family.correction.map_or(String::new(), |factor| {
        format!(" The median cell cost {} times the prediction.", three_digits(factor))
    });
    let memory = family.memory.map_or(String::new(), |memory| {
        let tls = memory
            .tls_connection_bytes
            .map_or(String::new(), |each| format!(", {} inside TLS", bytes(each)));
        let each = bytes(memory.connection_bytes);
        format!(" The process takes {each} of memory for a connection{tls}.")
    });
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Costs of {label}\"><table>\n<thead><tr><th scope=\"col\"></th>\
         <th scope=\"col\">µs of processor time</th><th scope=\"col\">95 % interval</th></tr>\
         </thead>\n<tbody>\n{rows}</tbody></table></div>\n\
         <p class=\"note\">Non-negative least squares over {} runs of {} cells, condition number \
         {:.0}; {}. Each third of the cells was held out once and predicted: root mean square \
         error {}; cells of other runs: {}; up to {:.0} % is allowed, {advice}.{correction}\
         {memory}</p>\n\
         {}",
        family.runs,
        family.cells,
        family.condition.unwrap_or_default(),
        awake,
        error(family.held_out_error),
        error(family.checked_error),
        family.error_max * 100.0,
        cells(family),
    )
}

/// Every cell: measured, fitted, predicted.
fn cells(family: &FamilyShown) -> String {
    let percent = |value: Option<f64>| {
        value.map_or("–".to_owned(), |percent| format!("{} %", three_digits(percent)))
    };
    let row = |cell: &HeldOutShown, fitted: Option<f64>| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            link(&cell.link, &cell.link.cell),
            percent(Some(cell.measured_percent)),
            percent(fitted),
            percent(cell.predicted_percent)
        )
    };
    let own = family.held_out.iter().zip(&family.residuals);
    let own = own.map(|(held, fitted)| row(held, fitted.predicted_percent));
    let rows: String = own.chain(family.checked.iter().map(|cell| row(cell, None))).collect();
    format!(
        "<details><summary>Every cell, measured and predicted</summary>\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Cells of {}\"><table>\n\
         <thead><tr><th scope=\"col\">cell</th><th scope=\"col\">measured</th>\
         <th scope=\"col\">fitted</th><th scope=\"col\">predicted without it</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div></details>\n",
        escape(&family.label)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Two ways on a server of two cores: one that is carried without end, measured by turns, and
    /// one that could not be fitted.
    fn carry(cores: f64) -> CarryOutcome {
        let point = |devices: f64| {
            json!({
                "devices": devices, "percent": 1.0, "low": 1.0, "high": 2.0, "reach": "beyond",
            })
        };
        let share = |headroom: f64| {
            json!({
                "headroom": headroom, "devices": null, "devices_low": 6e4, "devices_high": null,
                "units": null, "units_low": 1e3, "units_high": null, "binds": "nothing measured",
                "otherwise_devices": null, "reach": "beyond",
            })
        };
        let link = json!({ "run": "right/x", "folder": "right-x", "cell": "x", "trials": [] });
        let lane = |label: &str, rest: Value| {
            let mut lane = json!({
                "label": label, "family": "f", "is_tls": false, "is_per_connection": true,
                "floor": null, "carried": [], "rate_measured_max": 0.0,
                "connections_measured_max": 0.0, "points": [], "line": [],
            });
            rest.as_object().into_iter().flatten().for_each(|(key, value)| {
                lane[key] = value.clone();
            });
            lane
        };
        let floor = json!({
            "devices": 48_000.0, "units": 800.0, "rate_per_s": 800.0, "connections": 0.0,
            "clients": 300.0, "p99_ns": 4e6, "p99_has_lag": true,
            "reservations": ["measured for 500 ms"], "link": link,
        });
        let lines = [point(1e3), point(1e6)];
        let both = [
            lane(
                "by turns",
                json!({ "floor": floor, "carried": [share(0.5), share(1.0)], "line": lines }),
            ),
            lane("unknown", json!({ "refused": "its costs could not be fitted" })),
        ];
        let all = json!({
            "id": "farms", "question": "How many?", "unit": "farm", "sensors": 60,
            "interval_s": 60.0, "cores": cores, "memory_bytes": 4e9,
            "kernel_bytes_per_connection": 3900.0, "kernel_bytes_source": "slab",
            "p99_limit_ns": 1e9, "lanes": both, "families": [], "break_even": [], "anchors": [],
            "missing": [],
        });
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn a_line_says_what_its_floor_does_not_show() {
        let html = answer(&carry(2.0));
        for said in [
            ">at least 800</a> ~<sup>a</sup></td><td>48,000</td><td>≤ 4.00 ms</td>",
            "by fewer that took turns",
            "the generator's own lag",
            "<sup>a</sup> measured for 500 ms.",
            "<td>not searched</td>",
            "<td>no upper bound (1,000 to no upper bound) * ?</td>",
            "the model does not predict",
            "<td colspan=\"4\">its costs could not be fitted</td>",
            "ports",
        ] {
            assert!(html.contains(said), "{said}: {html}");
        }
        let mut none = carry(2.0);
        none.lanes.iter_mut().for_each(|lane| lane.carried.clear());
        assert!(answer(&none).contains("why there is no answer"));
    }

    #[test]
    fn the_words_follow_the_cores() {
        for (cores, words) in [(1.0, "has 1 core and"), (2.0, "has 2 cores and")] {
            let carry = carry(cores);
            assert!(terms(&carry).contains(words), "{}", terms(&carry));
        }
    }
}
