//! The page of a study's run, on an outcome that is known: everything that came of it stands there
//! once, and every link leads to what the run leaves.

mod sample;

use std::collections::BTreeSet;

use weigh_study::Verdict;
use weigh_study::outcome::{Answer, Role};
use weigh_study::page::{page, pictures};

#[test]
fn every_claim_stands_once_with_verdict_figures_and_conditions() {
    let html = page(&sample::study(), &sample::outcome());
    for (claim, verdict) in sample::outcome().claims.iter().zip(Verdict::ALL) {
        let heading = format!("<h3 id=\"claim-{}\">", claim.id);
        assert_eq!(html.matches(&heading).count(), 1, "{}", claim.id);
        let own = html.split(&heading).nth(1).unwrap().split("</article>").next().unwrap();
        for wanted in [
            verdict.name(),
            "<b title=\"87\">87 %</b> Table 10: HTTP, average cpu, 50 clients",
            "printed 8700%, read as 87: decimal point lost (near certain)",
            "CPU by htop, HTTP over MQTT<br><code>http / mqtt &gt; 2</code>",
            "3.84",
            "3.60 to 4.09",
            "84.2 % (80.0 to 88.4), n = 3",
            "href=\"published-E1-http/report.html#overview\"",
        ] {
            assert!(own.contains(wanted), "{}: {wanted}\n{own}", claim.id);
        }
    }
    let counted =
        html.split("<ul class=\"verdicts\">").nth(1).unwrap().split("</ul>").next().unwrap();
    let lines: Vec<&str> = counted.split("<li>").skip(1).collect();
    assert_eq!(lines.len(), Verdict::ALL.len(), "{counted}");
    for (line, verdict) in lines.iter().zip(Verdict::ALL) {
        assert!(line.starts_with("<b>1 <span class=\"verdict"), "{line}");
        assert!(line.contains(&format!(">{verdict}</span>")), "{verdict}: {line}");
    }
}

#[test]
fn links_lead_to_places_on_the_page_or_to_reports_of_runs_that_were_made() {
    let html = page(&sample::study(), &sample::outcome());
    let links: BTreeSet<&str> =
        html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let made = ["published-E1-http/report.html", "published-E1-http/report.html#overview"];
    assert!(links.contains(made[0]) && links.contains(made[1]), "{links:?}");
    for link in links {
        match link.strip_prefix('#') {
            Some(id) => assert!(html.contains(&format!("id=\"{id}\"")), "{id}"),
            None => assert!(made.contains(&link), "{link}: a run that was not made, or a place"),
        }
    }
}

#[test]
fn nothing_that_a_study_says_becomes_markup() {
    let html = page(&sample::study(), &sample::outcome());
    assert!(html.contains("Is HTTP &amp; its kin &lt;heavier&gt; than MQTT?"));
    assert!(!html.contains("<heavier>") && !html.contains("<87>"));
}

#[test]
fn it_reads_from_the_question_to_how_to_repeat_it() {
    let html = page(&sample::study(), &sample::outcome());
    let mut last = 0;
    for wanted in [
        "<h1>Is HTTP",
        "4 claims",
        "8 conditions were answered, 8 of them by an interval of 95 % each",
        "Written beforehand, and not computed from this run",
        "The share of a processor follows",
        "Which of the two is lighter?",
        "message size",
        "64 B, because that is a reading",
        "What came of it: <a href=\"#claim-C01\">C01</a> <span class=\"verdict reproduced\">",
        "closed loop against a burst <abbr title=\"unequal messages in flight\">[L16]</abbr>",
        "data-picture=\"figure-table-10\"",
        "The figures in it",
        "Claims and verdicts",
        "at no stated rate",
        "Nothing about a network that loses packets",
        "mosquitto is not installed; apt-get install mosquitto",
        "repeat every side at least 5 times",
        "printed 4840%, read as 48.40",
        "weigh study run sample --scale quick",
    ] {
        let at = html[last..].find(wanted).unwrap_or_else(|| panic!("{wanted} after {last}"));
        last += at;
    }
}

/// The study's explanation is a fact only where every condition on its cause came out yes.
#[test]
fn a_cause_that_the_run_does_not_show_is_said_to_be_supposed() {
    let said = |change: fn(&mut weigh_study::outcome::Judged)| {
        let mut outcome = sample::outcome();
        let causes = outcome.claims[0].conditions.iter_mut().filter(|one| one.role == Role::Cause);
        causes.for_each(change);
        let html = page(&sample::study(), &outcome);
        let own = html.split("<h3 id=\"claim-C01\">").nth(1).unwrap();
        own.split("</article>").next().unwrap().to_owned()
    };
    let supposed = "The replay supposed (and this run does not show it):</span> A closed loop sets";
    assert!(said(|_| ()).contains("<p>A closed loop sets its own rate.</p>"));
    assert!(said(|one| one.answer = Answer::No).contains(supposed));
    assert!(said(|one| one.answer = Answer::Undecided).contains(supposed));
    // Nobody asked for a cause, so nothing shows one and nothing fails to.
    let argument = "The replay's remark:</span> A closed loop sets";
    assert!(said(|one| one.role = Role::Truth).contains(argument));
}

#[test]
fn a_run_that_was_cut_short_says_so() {
    let mut outcome = sample::outcome();
    outcome.state = "interrupted".to_owned();
    assert!(page(&sample::study(), &outcome).contains("The run of this study is interrupted"));
    assert!(!page(&sample::study(), &sample::outcome()).contains("The run of this study is"));
}

/// Theirs are hollow and dashed, ours solid with intervals, both in one colour; a trend line only
/// where they drew one.
#[test]
fn a_picture_has_theirs_and_ours_on_the_same_axes() {
    let pictures = pictures(&sample::outcome());
    let series = pictures[0].option["series"].as_array().unwrap();
    let named = |name: &str| series.iter().find(|one| one["name"] == name).unwrap();
    let (theirs, ours) = (named("HTTP (paper)"), named("HTTP, as published"));
    assert_eq!(
        (&theirs["symbol"], &theirs["hasIntervals"]),
        (&"emptyCircle".into(), &false.into())
    );
    assert_eq!((&ours["symbol"], &ours["hasIntervals"]), (&"circle".into(), &true.into()));
    assert_eq!(theirs["color"], ours["color"]);
    assert_ne!(theirs["color"], named("MQTT (paper)")["color"]);
    assert_eq!(ours["data"][0], serde_json::json!([5, 20.1, 17.1, 23.1]));
    assert_eq!(ours["data"][2]["symbol"], "pin", "a point that must not be used looks it");
    assert_eq!(pictures[0].option["yAxis"]["max"], 120, "the end of an interval, 102, is shown");
    let trend = named("HTTP (paper), trend");
    assert_eq!(trend["data"], serde_json::json!([[5, 19], [60, 96]]));
    // A straight line is none along a logarithmic axis: halfway between 5 and 60 lies 17.3.
    let mut outcome = sample::outcome();
    outcome.figures[0].x.is_log = true;
    let pictures = weigh_study::page::pictures(&outcome);
    let series = pictures[0].option["series"].as_array().unwrap();
    let bent = series.iter().find(|one| one["name"] == "HTTP (paper), trend").unwrap();
    let middle = &bent["data"][12];
    let (x, y) = (middle[0].as_f64().unwrap(), middle[1].as_f64().unwrap());
    assert!((x - 300f64.sqrt()).abs() < 0.01, "{middle}");
    assert!((y - (12.0 + 1.4 * x)).abs() < 0.1, "{middle}");
    let mut outcome = sample::outcome();
    outcome.figures[0].series.iter_mut().for_each(|one| one.trend = None);
    assert_eq!(
        weigh_study::page::pictures(&outcome)[0].option["series"].as_array().unwrap().len(),
        3
    );
}

/// What is not drawn is neither in the legend nor told how to be read.
#[test]
fn a_series_without_points_is_said_to_be_missing_and_no_more() {
    let mut outcome = sample::outcome();
    let ours = outcome.figures[0].series.iter_mut().find(|one| !one.is_theirs).unwrap();
    ours.points.clear();
    ours.missing = Some("one cell has no figure".to_owned());
    let picture = &pictures(&outcome)[0];
    assert_eq!(picture.option["legend"]["data"].as_array().unwrap().len(), 2);
    assert!(picture.note.contains("HTTP, as published: one cell has no figure."));
    assert!(!picture.note.contains("Solid"), "{}", picture.note);
}

/// Pictures of nothing are not drawn, and the page says why.
#[test]
fn a_figure_without_points_says_what_is_missing() {
    let mut outcome = sample::outcome();
    for series in &mut outcome.figures[0].series {
        series.points.clear();
        series.missing = Some("mosquitto was not there".to_owned());
    }
    let html = page(&sample::study(), &outcome);
    assert!(!html.contains("data-picture=\"figure-") && html.contains("mosquitto was not there"));
}
