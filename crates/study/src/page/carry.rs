//! How many units a server carries: the answer as a table, the pictures of what was measured, what
//! was put together and what is beyond, the costs with what they foretold, and the break-evens.

use std::fmt::Write as _;

use serde_json::{Value, json};
use weigh_report::figures::{bytes, count, three_digits, time};
use weigh_report::page::document::{escape, figure};
use weigh_report::pictures::{Kind, Picture, lean, scale};

use crate::carry::{Carried, CarryOutcome, FamilyShown, HeldOutShown, LanePoint, LaneShown, Reach};
use crate::outcome::{Link, Outcome};

/// The section; empty where the study does not ask.
pub(super) fn section(outcome: &Outcome, pictures: &[Picture]) -> String {
    outcome.carry.iter().map(|carry| of_one(carry, pictures)).collect()
}

/// A picture for the lanes without TLS, and one for those inside it.
pub(super) fn pictures(outcome: &Outcome) -> Vec<Picture> {
    let both = |carry| [false, true].map(|is_tls| picture(carry, is_tls));
    outcome.carry.iter().flat_map(both).flatten().collect()
}

fn of_one(carry: &CarryOutcome, pictures: &[Picture]) -> String {
    let mut html = format!("<p><b>{}</b></p>\n<p>{}</p>\n", escape(&carry.question), terms(carry));
    html += &answer(carry);
    for is_tls in [false, true] {
        let name = name(carry, is_tls);
        if let Some(own) = pictures.iter().find(|picture| picture.name == name) {
            html += &figure(&own.name, &own.title, &own.note);
        }
    }
    html.extend(carry.families.iter().map(costs));
    if !carry.break_even.is_empty() {
        let items =
            carry.break_even.iter().map(|pair| format!("<li>{}</li>", escape(&pair.sentence)));
        let _ = writeln!(
            html,
            "<h3>How many messages a connection must have</h3>\n<ul>{}</ul>",
            items.collect::<String>()
        );
    }
    if !carry.anchors.is_empty() {
        let items = carry.anchors.iter().map(|anchor| {
            let text = format!("{}: {} ({})", anchor.lane, anchor.sentence, anchor.source);
            format!("<li>{}</li>", escape(&text))
        });
        let _ = writeln!(
            html,
            "<h3>Beside figures of others</h3>\n<ul>{}</ul>",
            items.collect::<String>()
        );
    }
    for why in &carry.missing {
        let _ = writeln!(html, "<p class=\"note\">Missing: {}</p>", escape(why));
    }
    html
}

fn terms(carry: &CarryOutcome) -> String {
    format!(
        "A {} is {} devices, each with a message every {} s. The server has {} and {} of memory. \
         Carried means: nothing lost or late, and 99 % of the answers within \
         {} s; QoS 0 has no answer, so there only loss counts. What was measured is as many \
         devices as the plan had, in each lane its own number: it does not say that another lane \
         carries less. To the memory that the process shows the {} bytes are added that the kernel \
         keeps for a connection ({}).",
        escape(&carry.unit),
        carry.sensors,
        carry.interval_s,
        carry.cores_in_words(),
        bytes(carry.memory_bytes),
        carry.p99_limit_ns / 1e9,
        three_digits(carry.kernel_bytes_per_connection),
        escape(&carry.kernel_bytes_source),
    )
}

/// The table of the answer.
fn answer(carry: &CarryOutcome) -> String {
    let unit = escape(&carry.unit);
    let shares = carry.headrooms();
    let refused =
        if shares.is_empty() { "<th scope=\"col\">why there is no answer</th>" } else { "" };
    let heads: String = shares
        .iter()
        .map(|share| {
            let percent = share * 100.0;
            format!(
                "<th scope=\"col\">{unit}s at {percent:.0} % of the cores</th>\
                 <th scope=\"col\">ends at</th>"
            )
        })
        .collect();
    let notes = Notes::of(carry);
    let rows: String =
        carry.lanes.iter().map(|lane| row(lane, carry, shares.len(), &notes)).collect();
    let notes = notes.html();
    let turns = carry.of_turns().map_or(String::new(), |turns| format!(" {turns}"));
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{unit}s carried\">\
         <table>\n<thead><tr><th scope=\"col\">way</th><th scope=\"col\">measured</th>\
         {heads}{refused}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n{notes}\
         <p class=\"note\">Measured: one cell held so many devices. An estimate is the model's, \
         times what the cells that were foretold cost over what was foretold, in the middle. \
         Behind it stands its interval at 95 %, made of the resampled costs and of how far off \
         those cells were, and how it is known: measured; put together (as many connections and as \
         high a rate were measured, apart); or beyond (the model alone).{turns}</p>\n"
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

    fn html(&self) -> String {
        let note = |(nth, why): (usize, &&str)| {
            let letter = Notes::letter(nth);
            format!("<p class=\"note\"><sup>{letter}</sup> {}.</p>\n", escape(why))
        };
        self.0.iter().enumerate().map(note).collect()
    }
}

fn row(lane: &LaneShown, carry: &CarryOutcome, shares: usize, notes: &Notes<'_>) -> String {
    let unit = escape(&carry.unit);
    let floor = lane.floor.as_ref().map_or("–".to_owned(), |floor| {
        let link = link(&floor.link, &format!("at least {} {unit}s", count(floor.units as u64)));
        let p99 = floor.p99_in_words();
        let all = [floor.in_words(lane), "nothing lost".to_owned(), p99];
        let all: Vec<String> = all.into_iter().filter(|text| !text.is_empty()).collect();
        format!("{link} ({}){}", all.join(", "), notes.marks(&floor.reservations))
    });
    let search = searched(lane, f64::from(carry.sensors), &unit);
    let is_foretelling = carry.foretells(lane);
    let carried: String = lane.carried.iter().map(|own| carried(own, is_foretelling)).collect();
    let refused = lane.refused.as_ref().map_or(String::new(), |why| match shares {
        // No line has an answer, and there are no columns for one.
        0 => format!("<td>{}</td>", escape(why)),
        _ => format!("<td colspan=\"{}\">{}</td>", 2 * shares, escape(why)),
    });
    let label = escape(&lane.label);
    format!("<tr><th scope=\"row\">{label}</th><td>{floor}{search}</td>{carried}{refused}</tr>\n")
}

/// How high a rate was searched for, as that of so many units.
fn searched(lane: &LaneShown, per_unit: f64, unit: &str) -> String {
    let Some(search) = &lane.search else {
        return "<br>highest rate not searched for".to_owned();
    };
    let units = |devices: f64| format!("{} {unit}s", count((devices / per_unit) as u64));
    let found = match (search.low_devices, search.high_devices) {
        (Some(low), Some(high)) => {
            format!("the rate of {} met the goals, that of {} did not", units(low), units(high))
        }
        (Some(low), None) => {
            format!("the rate of {} met the goals, and no end was found", units(low))
        }
        (None, Some(high)) => format!("the rate of {} did not meet the goals", units(high)),
        (None, None) => escape(&search.sentence),
    };
    let ended = search.ended_by.as_ref().map_or(String::new(), |why| format!("; {}", escape(why)));
    format!("<br>{}: {found}{ended}", link(&search.link, "search"))
}

/// A figure that does not foretell is told as such where it stands.
fn carried(carried: &Carried, is_foretelling: bool) -> String {
    let doubt = if is_foretelling { "" } else { "not to be relied on: " };
    let known = match carried.reach {
        Reach::Measured => "measured",
        Reach::Composed => "put together",
        Reach::Beyond => "beyond",
    };
    let units = |units: Option<f64>| units.map_or("no upper bound".to_owned(), three_digits);
    format!(
        "<td>{doubt}{} ({} to {}), {known}</td><td>{}</td>",
        units(carried.units),
        units(carried.units_low),
        units(carried.units_high),
        escape(&carried.binds)
    )
}

fn link(link: &Link, text: &str) -> String {
    format!("<a href=\"{}/report.html\">{}</a>", escape(&link.folder), escape(text))
}

/// What costs what in a family, and what that foretold.
fn costs(family: &FamilyShown) -> String {
    let label = escape(&family.label);
    if let Some(why) = &family.refused {
        return format!("<h3>{label}: what costs what</h3>\n<p>Not fitted: {}</p>\n", escape(why));
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
        error.map_or("none could be".to_owned(), |error| format!("{:.1} %", error * 100.0))
    };
    let verdict = match family.is_foretelling {
        true => "so the model may be used",
        false => "<b>so do not rely on the model</b>",
    };
    let awake = family.awake_s.map_or_else(
        || "wake-ups could not be told from messages".to_owned(),
        |awake_s| {
            format!(
                "once woken the server is taken to stay awake for {}",
                time(awake_s * 1e9, false)
            )
        },
    );
    let correction = family.correction.map_or(String::new(), |factor| {
        format!(" In the middle cells cost {factor:.2} times what was foretold.")
    });
    let memory = family.memory.map_or(String::new(), |memory| {
        let tls = memory
            .tls_connection_bytes
            .map_or(String::new(), |each| format!(", {} inside TLS", bytes(each)));
        let each = bytes(memory.connection_bytes);
        format!(" The process takes {each} of memory for a connection{tls}.")
    });
    format!(
        "<h3>{label}: what costs what</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Costs of {label}\"><table>\n<thead><tr><th scope=\"col\"></th>\
         <th scope=\"col\">µs of processor time</th><th scope=\"col\">95 % interval</th></tr>\
         </thead>\n<tbody>\n{rows}</tbody></table></div>\n\
         <p class=\"note\">Non-negative least squares over {} runs of {} cells, condition number \
         {:.0}; {}. Each third of the cells was held out once and foretold: root mean square error \
         {}; cells of other runs: {}; up to {:.0} % was asked, {verdict}.{correction}{memory}</p>\n\
         {}",
        family.runs,
        family.cells,
        family.condition.unwrap_or_default(),
        awake,
        error(family.held_out_error),
        error(family.checked_error),
        family.error_max * 100.0,
        foretold(family),
    )
}

/// Every cell: measured, fitted, foretold.
fn foretold(family: &FamilyShown) -> String {
    let percent = |value: Option<f64>| {
        value.map_or("–".to_owned(), |percent| format!("{} %", three_digits(percent)))
    };
    let row = |cell: &HeldOutShown, fitted: Option<f64>| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            link(&cell.link, &cell.link.cell),
            percent(Some(cell.measured_percent)),
            percent(fitted),
            percent(cell.foretold_percent)
        )
    };
    let own = family.held_out.iter().zip(&family.residuals);
    let own = own.map(|(held, fitted)| row(held, fitted.foretold_percent));
    let rows: String = own.chain(family.checked.iter().map(|cell| row(cell, None))).collect();
    format!(
        "<details class=\"paper\"><summary>Every cell, measured and foretold</summary>\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Cells of {}\"><table>\n\
         <thead><tr><th scope=\"col\">cell</th><th scope=\"col\">measured</th>\
         <th scope=\"col\">fitted</th><th scope=\"col\">foretold without it</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div></details>\n",
        escape(&family.label)
    )
}

fn name(carry: &CarryOutcome, is_tls: bool) -> String {
    format!("carry-{}-{}", carry.id, if is_tls { "tls" } else { "plain" })
}

/// Processor time against units: points, the model's line and its band, and what was measured on
/// another ground than what lies beyond.
fn picture(carry: &CarryOutcome, is_tls: bool) -> Option<Picture> {
    let lanes: Vec<&LaneShown> =
        carry.lanes.iter().filter(|lane| lane.is_tls == is_tls && !lane.line.is_empty()).collect();
    let per_unit = f64::from(carry.sensors);
    let all = || lanes.iter().flat_map(|lane| &lane.line).map(|point| point.devices / per_unit);
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let mut x = scale::logarithmic(low, high);
    x["name"] = json!(format!("{}s of {} devices", carry.unit, carry.sensors));
    x["nameLocation"] = json!("middle");
    x["nameGap"] = json!(30);
    x["axisLabel"]["formatter"] = json!("@xmark");
    let mut series: Vec<Value> = Vec::new();
    for (nth, lane) in lanes.iter().enumerate() {
        series.extend(drawn(lane, nth, per_unit));
    }
    let floors = lanes.iter().filter_map(|lane| lane.floor.as_ref());
    let measured = floors.map(|floor| floor.devices.min(floor.clients));
    let measured = measured.filter(|devices| *devices > low * per_unit);
    if let (Some(first), Some(most)) = (series.first_mut(), measured.reduce(f64::max)) {
        first["markArea"] = json!({
            "silent": true, "itemStyle": { "color": "rgba(128, 128, 128, 0.14)" },
            "data": [[{ "xAxis": lean(low) }, { "xAxis": lean(most / per_unit) }]],
        });
    }
    let names: Vec<&str> = lanes.iter().map(|lane| lane.label.as_str()).collect();
    let inside = if is_tls { "inside TLS" } else { "without TLS" };
    Some(Picture {
        name: name(carry, is_tls),
        kind: Kind::Beside,
        subject: carry.id.clone(),
        part: inside.to_owned(),
        title: format!("Processor time against {}s, {inside}", carry.unit),
        note: NOTE.to_owned(),
        height: 372,
        about: json!({ "unit": "%", "x": format!("{}s", carry.unit), "x_unit": "" }),
        option: json!({
            "grid": { "top": 58, "left": 74, "right": 22, "height": 260 },
            "legend": { "data": names },
            "tooltip": { "trigger": "item", "formatter": "@beside" },
            "xAxis": x,
            "yAxis": {
                "type": "value", "name": "percent of a core", "min": 0,
                "max": lean(120.0 * carry.cores),
                "axisLabel": { "formatter": "@mark" },
                "nameTextStyle": { "align": "left", "padding": [0, 0, 0, -62] }, "nameGap": 12,
            },
            "series": series,
        }),
    })
}

/// A lane: its line in two pieces, the ends of its band, and its points.
fn drawn(lane: &LaneShown, nth: usize, per_unit: f64) -> Vec<Value> {
    let colour = format!("$c{}", nth % COLOURS);
    let at = |point: &LanePoint, y: f64| json!([lean(point.devices / per_unit), lean(y)]);
    let is_near = |point: &&LanePoint| point.reach != Reach::Beyond;
    let near = lane.line.iter().filter(is_near).count();
    // The pieces share a point, so that the line has no gap.
    let far = &lane.line[near.saturating_sub(1)..];
    let line = |points: &[LanePoint], y: &dyn Fn(&LanePoint) -> f64, kind: &str, width: f64| {
        let data: Vec<Value> = points.iter().map(|point| at(point, y(point))).collect();
        let opacity = if width < 1.0 { 0.6 } else { 1.0 };
        json!({
            "type": "line", "name": lane.label, "data": data, "color": colour, "symbol": "none",
            "lineStyle": { "type": kind, "width": width, "opacity": opacity },
        })
    };
    let points: Vec<Value> = lane
        .points
        .iter()
        .map(|point| {
            let shown = json!([
                lean(point.devices / per_unit),
                lean(point.percent),
                lean(point.low),
                lean(point.high)
            ]);
            match point.reach {
                Reach::Measured => json!({ "value": shown, "symbol": "circle" }),
                _ => json!({ "value": shown, "symbol": "emptyCircle" }),
            }
        })
        .collect();
    vec![
        line(&lane.line[..near], &|point| point.percent, "solid", 2.0),
        line(far, &|point| point.percent, "dashed", 1.5),
        line(&lane.line, &|point| point.low, "dotted", 0.8),
        line(&lane.line, &|point| point.high, "dotted", 0.8),
        json!({
            "type": "line", "name": lane.label, "data": points, "color": colour,
            "symbolSize": 8, "hasIntervals": true, "lineStyle": { "width": 0 },
            "encode": { "x": 0, "y": 1 },
        }),
    ]
}

const NOTE: &str = "Grey: where one cell held so many devices. Full circles: cells that did; empty \
    ones: cells with the rate of so many devices on fewer connections, or by fewer that took \
    turns. Lines: the cost model, solid where connections and rate were measured apart, dashed \
    beyond; dotted: its 95 % band.";

/// Colours before they begin again.
const COLOURS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_report::pictures::Gallery;

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
            "the rate of 48,000 devices, by 300 that took turns",
            "p99 at most 4.00 ms (with the generator's own lag in it)",
            "lag in it))<sup>a</sup><br>",
            "<sup>a</sup> measured for 500 ms.",
            "not to be relied on: no upper bound",
            "highest rate not searched for",
            "no upper bound (1,000 to no upper bound), beyond",
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
    fn an_idle_cell_has_no_point_on_the_logarithmic_axis() {
        let mut carry = carry(1.0);
        let idle = json!({
            "devices": 0.0, "percent": 0.1, "low": 0.0, "high": 0.2, "reach": "measured",
        });
        let one = json!({
            "devices": 6e4, "percent": 9.0, "low": 8.0, "high": 10.0, "reach": "measured",
        });
        carry.lanes[0].points = serde_json::from_value(json!([idle, one])).unwrap();
        let drawn = Gallery::of(Value::Null, picture(&carry, false).into_iter().collect());
        let series = drawn.pictures[0].option["series"].as_array().unwrap();
        let points = series.last().unwrap()["data"].as_array().unwrap();
        assert_eq!((points.len(), &points[0]["value"][0]), (1, &json!(1000)));
    }

    #[test]
    fn the_picture_and_the_words_follow_the_cores() {
        for (cores, words, max) in [(1.0, "has 1 core and", 120.0), (2.0, "has 2 cores and", 240.0)]
        {
            let carry = carry(cores);
            assert!(terms(&carry).contains(words), "{}", terms(&carry));
            let drawn = picture(&carry, false).unwrap();
            assert_eq!(drawn.option["yAxis"]["max"].as_f64(), Some(max));
        }
    }
}
