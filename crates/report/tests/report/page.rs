//! The page and its pictures, as far as text shows it; `tests/page` looks at them in a browser.

use std::collections::BTreeSet;

use serde_json::Value;
use weigh_model::Warning;
use weigh_model::event::{AxisEnded, Event, TrialFinished};
use weigh_report::page::{Provenance, page};
use weigh_report::pictures::{Gallery, Kind};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, along, run, started, with_thresholds};

fn summary() -> Summary {
    Summary::from_events(&run()).unwrap()
}

/// The page without the library and the data that it carries.
fn own(text: &str) -> String {
    let mut own = text.to_owned();
    for id in ["run", "library"] {
        let start = format!("<script type=\"text/plain\" id=\"{id}\">");
        let (before, rest) = own.split_once(&start).expect("a packed part");
        let (_, behind) = rest.split_once("</script>").expect("its end");
        own = format!("{before}{behind}");
    }
    own
}

/// Every picture that is visible when the page opens is in it, and nothing of it is loaded.
#[test]
#[cfg(feature = "pictures")]
fn pictures_are_in_the_page_without_its_scripts() {
    let events = along_an_axis();
    let summary = Summary::from_events(&events).unwrap();
    let text = own(&page(&summary, &events, &Provenance::default()));
    let places: Vec<&str> = text.split(" data-picture=\"").skip(1).collect();
    assert!(places.len() >= 5, "{} pictures", places.len());
    for place in places {
        let (name, drawn) = place.split_once("\">").unwrap();
        assert!(drawn.starts_with("<svg width=\"1232\" "), "{name}");
    }
    assert!(text.contains("<th scope=\"col\">interval at 95 %</th>"), "one metric as a table");
    let clips: Vec<&str> =
        text.split("<clipPath id=\"").skip(1).map(|clip| clip.split('"').next().unwrap()).collect();
    assert_eq!(clips.iter().collect::<BTreeSet<_>>().len(), clips.len(), "names are unique");
}

#[test]
fn the_page_loads_nothing_and_forbids_it() {
    let text = page(&summary(), &run(), &Provenance::default());
    assert!(text.contains("default-src 'none'"));
    let own = own(&text);
    for forbidden in ["http:", "https:", "src=", "url(h", "url(/", "@import", "<link"] {
        assert!(!own.contains(forbidden), "{forbidden}");
    }
    assert!(own.matches("url(").count() == own.matches("url(#").count(), "only parts of the page");
    assert!(!own.contains("script-src 'unsafe-inline'") && own.contains("script-src 'nonce-"));
    let links = own.match_indices("href=").filter(|(at, _)| !own[*at..].starts_with("href=\"#"));
    assert_eq!(links.count(), 0, "links lead nowhere but to the page itself");
}

#[test]
fn what_is_shown_is_escaped() {
    let mut hostile = summary();
    hostile.cells[0].name = "<script>alert(1)</script>".to_owned();
    hostile.run.id = "\"><img>".to_owned();
    hostile.failures[0].error = "</script><b>".to_owned();
    let text = own(&page(&hostile, &run(), &Provenance::default()));
    assert!(!text.contains("<script>alert") && !text.contains("<img") && !text.contains("<b>\""));
    let scripts = |text: &str| text.matches("</script>").count();
    assert_eq!(scripts(&text), scripts(&own(&page(&summary(), &run(), &Provenance::default()))));
}

#[test]
fn the_first_screen_says_what_the_verdicts_say() {
    let text = own(&page(&summary(), &run(), &Provenance::default()));
    let shown = |start: &str, end: &str| {
        let (_, rest) = text.split_once(start).unwrap();
        rest.split_once(end).unwrap().0.to_owned()
    };
    let answer = shown("<ul class=\"answer\">", "</ul>");
    assert!((2..=6).contains(&answer.matches("<li>").count()), "{answer}");
    assert!(answer.contains("cases lost messages"), "{answer}");
    assert!(shown("<h1>", "</h1>").contains(" compared: "), "a title");
    assert!(answer.contains("The run is interrupted"));
    assert!(shown("id=\"short-title\"", "</section>").contains("<b>invalid</b>"));
    assert!(text.contains("1883 is in use"), "what could not be done");
}

#[test]
fn machine_plan_and_digest_stand_on_the_page() {
    let provenance = Provenance { journal_sha256: Some("abc123".to_owned()) };
    let text = own(&page(&summary(), &run(), &provenance));
    for wanted in ["abc123", "6.1.0", "[load]", "arrival = &quot;constant&quot;", "seed"] {
        assert!(text.contains(wanted), "{wanted}");
    }
}

#[test]
fn an_empty_run_makes_a_page_that_says_so() {
    let events = [started("closed")];
    let empty = Summary::from_events(&events).unwrap();
    let text = own(&page(&empty, &events, &Provenance::default()));
    assert!(text.contains("Nothing was measured") && text.contains("</html>"));
    assert!(Gallery::new(&empty, &events).pictures.is_empty());
}

fn along_an_axis() -> Vec<Event> {
    along(&["http1", "tcp"], &[10, 20, 40, 80])
}

#[test]
fn a_key_that_varies_is_an_axis_with_a_line_for_each_rest() {
    let events = along_an_axis();
    let summary = Summary::from_events(&events).unwrap();
    let gallery = Gallery::new(&summary, &events);
    let headline = gallery.headline(&summary).unwrap();
    assert_eq!(headline.kind, Kind::Axis);
    assert_eq!(headline.name, "axis-load.connections-response_time_ns.p99");
    let lines = &gallery.shared["axes"][0];
    assert_eq!((&lines[0][0], &lines[1][0]), (&"http1".into(), &"tcp".into()));
    let places: Vec<f64> =
        lines[0][1].as_array().unwrap().iter().filter_map(|place| place[0].as_f64()).collect();
    assert_eq!(places, [10.0, 20.0, 40.0, 80.0]);
    let text = own(&page(&summary, &events, &Provenance::default()));
    let answer = answer(&events);
    let said = "Fastest at p99 (response time): http1 at all 4 places (";
    assert!(answer.contains(said) && answer.contains(" less than tcp)."), "{answer}");
    assert!(text.contains(said), "the page has it");
}

/// The answer on the page.
fn answer(events: &[Event]) -> String {
    let summary = Summary::from_events(events).unwrap();
    answer_of(&summary, events)
}

fn answer_of(summary: &Summary, events: &[Event]) -> String {
    let text = own(&page(summary, events, &Provenance::default()));
    let (_, rest) = text.split_once("<ul class=\"answer\">").unwrap();
    rest.split_once("</ul>").unwrap().0.to_owned()
}

/// `summary.json`, the table, its Markdown and the page have the same lines.
#[test]
fn the_answer_is_the_same_everywhere() {
    let events = along_an_axis();
    let summary = Summary::from_events(&events).unwrap();
    let shown = [
        answer(&events),
        render(&summary, Style::plain(200)),
        render(&summary, Style::markdown()),
        weigh_report::exports::markdown::table(&summary, &[]),
        summary.to_json(),
    ];
    assert!(summary.answer.len() > 2);
    for line in &summary.answer {
        assert!(shown.iter().all(|text| text.contains(&line.text)), "{line:?}");
    }
    let [_, table, ..] = &shown;
    let title = weigh_report::answer::question(&summary);
    assert!(table.starts_with(&format!("{title}\n  {}\n", summary.answer[0].text)), "{table}");
}

fn each_trial(mut events: Vec<Event>, mut change: impl FnMut(&mut TrialFinished)) -> Vec<Event> {
    for event in &mut events {
        if let Event::TrialFinished(trial) = event {
            change(trial);
        }
    }
    events
}

/// At 20 connections the second lane is four times as slow, at 40 twice as fast.
#[test]
fn page_and_terminal_tell_of_the_places_where_the_other_side_won() {
    let events = each_trial(along(&["http1", "tcp"], &[20, 40]), |trial| {
        let is_tcp = trial.point["protocol"] == "tcp";
        let factor = match (is_tcp, trial.point["load.connections"].as_u64()) {
            (false, _) => 1.0,
            (true, Some(20)) => 4.0,
            (true, _) => 0.5,
        };
        let value = (100.0 + f64::from(trial.repetition)) * factor * 1e4;
        trial.metrics.insert("response_time_ns.p99".into(), value);
    });
    let told = "http1 was 4.00 ± 0.09 times faster than tcp at 1 of 2 places, \
                tcp was 2.00 ± 0.05 times faster than http1 at 1";
    let summary = Summary::from_events(&events).unwrap();
    let terminal = render(&summary, Style::plain(200));
    let said = "http1 at 1 of 2 places, tcp at 1";
    assert!(answer(&events).contains(said), "{}", answer(&events));
    assert!(terminal.contains(told), "{terminal}");
}

#[test]
fn a_verdict_that_does_not_stand_names_no_case() {
    let events = along(&["http1", "tcp"], &[20]);
    let mut summary = Summary::from_events(&events).unwrap();
    assert!(answer_of(&summary, &events).contains("p99 (response time): http1 ("), "it stands");
    summary.comparisons.iter_mut().for_each(|comparison| comparison.stands = false);
    let said = answer_of(&summary, &events);
    assert!(said.contains("p99 (response time): too close to call between http1"), "{said}");
}

/// A hundred messages bear a p50 and no p99.
#[test]
fn the_answer_is_about_a_metric_that_can_be_compared() {
    let events = each_trial(along(&["http1", "tcp"], &[20]), |trial| {
        let p99 = trial.metrics["response_time_ns.p99"];
        trial.metrics.insert("response_time_ns.p50".into(), p99 / 2.0);
        trial.samples.insert("response_time_ns".into(), 100);
    });
    let said = "Fastest at the median (response time): http1 (";
    assert!(answer(&events).contains(said), "{}", answer(&events));
    let nothing = each_trial(events, |trial| {
        trial.metrics.remove("response_time_ns.p50");
    });
    let answer = answer(&nothing);
    assert!(answer.contains("Not compared: percentiles of too few messages"), "{answer}");
}

/// The first message is lost at 40 connections: the answer says so.
#[test]
fn a_plan_with_a_stop_rule_is_answered_by_the_end_of_its_axis() {
    let mut events = along(&["http1"], &[20, 40]);
    let Event::RunStarted(started) = &mut events[0] else { panic!("the first event") };
    let rules = vec!["first loss".parse().unwrap()];
    started.plan.stop.insert("load.connections".to_owned(), rules);
    let whole = answer(&events);
    let said = "<li>Along connections: http1 goes up to 40, and no stop rule held.</li>";
    assert!(whole.contains(said), "{whole}");
    let mut lane = Told::new("http1", None, "reference").point();
    lane.remove("load.connections");
    events.push(Event::AxisEnded(Box::new(AxisEnded {
        lane,
        axis: "load.connections".to_owned(),
        at: 40.into(),
        condition: "first loss".to_owned(),
        figure: 10_600.0,
        not_weighed: vec![80.into(), 160.into()],
    })));
    let said = answer(&events);
    let end = "<li>Along connections: http1 ends between 20 and 40, first loss (10,600 lost).</li>";
    assert!(said.contains(end), "{said}");
}

#[test]
fn a_case_with_two_warnings_of_a_code_is_one_case() {
    let mut summary = Summary::from_events(&along(&["http1", "tcp"], &[20])).unwrap();
    for cell in &mut summary.cells {
        cell.warnings =
            [91.0, 99.0].map(|percent| Warning::generator_limited(percent).record()).into();
    }
    summary.cells[1].warnings.clear();
    let text = own(&page(&summary, &[], &Provenance::default()));
    let (_, rest) = text.split_once("id=\"short-title\"").unwrap();
    let (short, _) = rest.split_once("</section>").unwrap();
    let name = &summary.cells[0].name;
    assert!(
        short.contains("used 91 to 99 % of its core")
            && short.contains(&format!(" <span>{name}</span>")),
        "{short}"
    );
    let table = render(&summary, Style::plain(200));
    assert_eq!(table.matches("generator-limited").count(), 1, "one line of the terminal: {table}");
}

/// The mean of p50 over five repetitions of the story is 200 µs: what pictures and tables show
/// comes from the summary, to five digits.
#[test]
fn pictures_share_the_figures_of_the_summary() {
    let gallery = Gallery::new(&summary(), &run());
    let rows = gallery.shared["metrics"]["response_time_ns.p50"]["rows"].as_array().unwrap();
    let http = rows.iter().find(|row| row[1] == 200_000).expect("http1 on reference");
    assert_eq!(http[4], Value::from(vec![200_000, 202_000, 198_000, 201_000, 199_000]));
    // 200,000 ± 2.776445 (Student's t, 4 degrees of freedom, 95 %) × 1,581.14 / √5.
    assert_eq!((&http[2], &http[3]), (&Value::from(198_040), &Value::from(201_960)));
}

/// How each figure was made stands beside its row, in the same order.
#[test]
fn every_figure_says_how_it_was_made_or_why_it_has_no_interval() {
    let gallery = Gallery::new(&summary(), &run());
    let metric = &gallery.shared["metrics"]["response_time_ns.p50"];
    let (rows, how) = (metric["rows"].as_array().unwrap(), metric["how"].as_array().unwrap());
    assert_eq!(rows.len(), how.len());
    for (row, how) in rows.iter().zip(how) {
        let words = &gallery.shared["hows"][how[0].as_u64().unwrap() as usize];
        let expected = match row[4].as_array().unwrap().len() {
            5 => "Student's t over the repetitions, corrected for skewness",
            _ => "at least 3 repetitions are needed, 1 given: repeat more often",
        };
        assert_eq!(words, expected);
    }
    let text = own(&page(&summary(), &run(), &Provenance::default()));
    let method = "Student's t over the repetitions, corrected for skewness";
    assert!(text.contains(&format!("Interval for 2 cases: {method}.")), "{text}");
    assert!(text.contains(&format!("<li>{method}: each repetition gives one value")), "{text}");
    assert!(text.contains("No interval for 2 cases: at least 3 repetitions are needed"), "{text}");
}

#[test]
fn thresholds_stand_on_the_first_screen() {
    let events = with_thresholds(run(), &["loss == 0", "response_time med < 1s"]);
    let judged = Summary::from_events(&events).unwrap();
    let text = own(&page(&judged, &events, &Provenance::default()));
    let (first, _) = text.split_once("<main").unwrap();
    let said = "1 of 2 thresholds failed, 1 of 2 thresholds could not be decided";
    assert!(first.contains(said) && first.contains("<b>✗</b> loss == 0;"));
    assert!(first.contains("<b>?</b> response_time med"));
    assert!(!own(&page(&summary(), &run(), &Provenance::default())).contains("✗"));
}

#[test]
fn every_kind_of_picture_is_there_and_has_its_own_name() {
    let events = along_an_axis();
    let summary = Summary::from_events(&events).unwrap();
    let gallery = Gallery::new(&summary, &events);
    let names: BTreeSet<&str> = gallery.pictures.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), gallery.pictures.len(), "names are files");
    assert!(names.iter().all(|name| !name.contains(['/', ' '])), "{names:?}");
    let kinds: BTreeSet<Kind> = gallery.pictures.iter().map(|picture| picture.kind).collect();
    for kind in [Kind::Dots, Kind::Axis, Kind::Curve, Kind::Flow, Kind::Histogram, Kind::OverTime] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}
