//! The page of a study's run, on an outcome that is known: everything that came of it is there
//! once, in words, without a script, and every link leads to what the run leaves.

mod sample;

use std::collections::BTreeSet;

use weigh_study::Outcome;
use weigh_study::outcome::ClaimOutcome;
use weigh_study::page::{Entry, drawn, index, page};

fn sample_page() -> String {
    page(&sample::study(), &sample::outcome())
}

/// The page of the sample after a change to it.
fn changed(change: impl FnOnce(&mut Outcome)) -> String {
    let mut outcome = sample::outcome();
    change(&mut outcome);
    page(&sample::study(), &outcome)
}

/// What the page says of a claim.
fn of_claim<'p>(html: &'p str, id: &str) -> &'p str {
    let heading = format!("<h3 id=\"claim-{id}\">");
    assert_eq!(html.matches(&heading).count(), 1, "{id}");
    html.split(&heading).nth(1).unwrap().split("</article>").next().unwrap()
}

/// What is on the page before anything is unfolded.
fn unfolded(html: &str) -> String {
    let mut shown = String::new();
    for part in html.split("<details>") {
        shown += part.rsplit("</details>").next().unwrap();
    }
    shown
}

#[test]
fn every_claim_has_its_three_answers_in_words_and_its_evidence_behind_a_fold() {
    let html = sample_page();
    for claim in sample::outcome().claims {
        let own = of_claim(&html, &claim.id);
        for wanted in [
            format!(">{}</span>", claim.printed),
            format!(">{}</span>", claim.why),
            "Section 2, Table 10".to_owned(),
            "on the same software: EMQX 5.8".to_owned(),
            "Weighbridge's broker in place of EMQX".to_owned(),
            "Break-even: The answer changes at 310 B".to_owned(),
            "The server is not named.".to_owned(),
        ] {
            assert!(unfolded(own).contains(&wanted), "{}: {wanted}\n{own}", claim.id);
        }
        for evidence in [
            "Table 10: HTTP, average cpu: <b>87.00 % (50 clients)</b>",
            "printed 8700%, read as 87: decimal point lost (near certain)",
            "CPU by htop, HTTP over MQTT<br><code>http / mqtt &gt; 2</code>",
            "<td>3.60 to 4.09</td>",
            "84.2 % (80.0 to 88.4), n = 3",
            "href=\"published-E1-http/report.html#overview\"",
        ] {
            assert!(own.contains(evidence), "{}: {evidence}\n{own}", claim.id);
            assert!(!unfolded(own).contains(evidence), "{}: {evidence}", claim.id);
        }
    }
}

/// A stand-in yields at most "with a stand-in"; the software that the paper names is named.
#[test]
fn a_replay_on_a_stand_in_says_so() {
    let own = sample_page();
    assert!(of_claim(&own, "C01").contains(">reproduced with a stand-in</span>"));
    assert!(of_claim(&own, "C02").contains(">not reproduced with a stand-in</span>"));
    let html = changed(|outcome| {
        outcome.claims.iter_mut().for_each(|claim| claim.replays[0].is_same = true);
    });
    assert!(of_claim(&html, "C02").contains(">not reproduced</span> on the same software"));
    assert!(!html.contains("with a stand-in"));
}

#[test]
fn the_deciding_figure_stands_below_the_claim() {
    let html = sample_page();
    let said = [
        ("C01", "Here, CPU by htop, HTTP over MQTT, is 3.84 (3.60 to 4.09), more than 2."),
        (
            "C02",
            "As printed, CPU by htop, HTTP over MQTT, is 3.84 (3.60 to 4.09), not more than 2.",
        ),
        ("C02", "Here, CPU by htop, HTTP over MQTT, is 3.84 (3.60 to 4.09), not more than 2."),
        ("C03", "Undecided: 3 repetitions; an answer needs 5."),
        ("C04", "Not run: emqx is not installed."),
    ];
    for (id, wanted) in said {
        let own = unfolded(of_claim(&html, id)).replace("&gt;", ">");
        assert!(own.contains(wanted), "{id}: {wanted}\n{own}");
    }
}

/// Each run alone is told only where it says something else.
#[test]
fn agreement_of_the_runs_is_told_with_each_claim() {
    let html = sample_page();
    assert!(of_claim(&html, "C01").contains("The same answer in 2 of 2 runs"));
    assert!(!of_claim(&html, "C01").contains("Each run alone"));
    assert!(of_claim(&html, "C02").contains("The same answer in 1 of 2 runs"));
    assert!(of_claim(&html, "C02").contains("Each run alone"));
}

#[test]
fn the_first_screen_has_citation_abstract_and_table() {
    let html = sample_page();
    let first = html.split("<section id=\"paper\"").next().unwrap();
    for wanted in [
        "A. Author and B. Author",
        "<cite>A comparison of &lt;two&gt; protocols</cite>",
        "venue not stated",
        "<a href=\"https://example.org/paper\">",
        "2 runs on 2 boots, 2026-11-20 to 2026-11-21",
        "2 cores, A processor, 4.00 GiB",
        "Of its 4 claims",
        "<td>87.00 %</td><td>84.2 %</td><td>0.968</td><td>0.920 to 1.02</td>",
        ">contradicted</span>",
    ] {
        let wanted = wanted.to_owned();
        let is_cased = first.to_lowercase().contains(&wanted.to_lowercase());
        assert!(is_cased, "{wanted}\n{first}");
    }
    let own = first.split("<p class=\"abstract\">").nth(1).unwrap().split("</p>").next().unwrap();
    let plain: String = own.split('<').map(|part| part.split('>').next_back().unwrap()).collect();
    let sentences = plain.split(". ").count();
    assert_eq!(sentences, 6, "{plain}");
}

#[test]
fn what_weakens_everything_is_said_before_anything_else_and_once() {
    assert!(!sample_page().contains("class=\"banner\""));
    let html = changed(|outcome| {
        outcome.warnings =
            ["Other programs disturbed it.", "The clock jumped."].map(str::to_owned).into();
        outcome.occasions[1].warnings.push("The clock jumped.".to_owned());
        outcome.occasions[1].warnings.push("It was made in the dark.".to_owned());
    });
    let banner = html.split("<header>").next().unwrap();
    for wanted in ["Other programs disturbed it.", "The clock jumped.", "It was made in the dark."]
    {
        assert_eq!(banner.matches(wanted).count(), 1, "{wanted}\n{banner}");
    }
    let html = changed(|outcome| outcome.state = "interrupted".to_owned());
    assert!(
        html.split("<header>").next().unwrap().contains("The run of this study is interrupted")
    );
}

/// "Written before" needs the hash of every run.
#[test]
fn conditions_are_called_older_than_the_runs_only_if_hashes_prove_it() {
    let before = "were written before the runs: every run began with";
    assert!(sample_page().contains(before));
    let unknown = changed(|outcome| outcome.occasions[0].is_same_study = None);
    assert!(!unknown.contains(before) && unknown.contains("Nothing proves"));
    let younger = changed(|outcome| outcome.occasions[0].is_same_study = Some(false));
    assert!(!younger.contains(before) && !younger.contains("Nothing proves"));
}

#[test]
fn findings_of_the_audit_stand_apart_from_what_authors_claim() {
    let html = sample_page();
    let findings = html.find("<section id=\"findings\"").unwrap();
    for (id, is_finding) in [("C01", false), ("C03", false), ("C04", true)] {
        let at = html.find(&format!("<h3 id=\"claim-{id}\">")).unwrap();
        assert_eq!(at > findings, is_finding, "{id}");
    }
}

#[test]
fn links_lead_to_places_on_the_page_or_to_reports_of_runs_that_were_made() {
    let html = sample_page();
    let links: BTreeSet<&str> =
        html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let made = ["published-E1-http/report.html", "published-E1-http/report.html#overview"];
    assert!(links.contains(made[0]) && links.contains(made[1]), "{links:?}");
    for link in links {
        match link.strip_prefix('#') {
            Some(id) => assert!(html.contains(&format!("id=\"{id}\"")), "{id}"),
            None => assert!(
                made.contains(&link) || link == "https://example.org/paper",
                "{link}: a run that was not made, or a place"
            ),
        }
    }
}

#[test]
fn nothing_that_a_study_says_becomes_markup() {
    let html = sample_page();
    assert!(html.contains("Is HTTP &amp; its kin &lt;heavier&gt; than MQTT?"));
    assert!(!html.contains("<heavier>") && !html.contains("<87>") && !html.contains("<two>"));
}

/// All of it is there with scripts off, in print and in a screenshot, and nothing is loaded.
#[test]
fn it_needs_no_script_and_no_network() {
    for html in [sample_page(), index(&[Entry { outcome: &sample::outcome(), href: "a.html" }])] {
        assert!(!html.contains("<script") && !html.contains("<noscript"));
        assert!(!html.contains(" src=") && !html.contains("url("));
        assert!(html.contains("default-src 'none'"));
    }
}

#[test]
fn it_reads_from_the_question_to_how_to_repeat_it() {
    let html = sample_page();
    let mut last = 0;
    for wanted in [
        "<h1>Is HTTP",
        "Weighbridge replayed 1 of 2 experiments",
        "Which of the two is lighter?",
        "message size",
        "Not run: it takes a modem.",
        "64 B, because that is a reading",
        "which are not results",
        "The share of a processor follows",
        "<b>Figure 1.</b> CPU against number of clients",
        "Data of figure 1",
        "curl-post <span class=\"muted\">(curl 7.88.1)</span>",
        "processor time per message",
        "+10.0 ms (+9.00 ms to +11.0 ms)",
        "Other processes used 20 % of a core.",
        "<h2 id=\"claims-title\">",
        "without a stated rate",
        "Nothing about a network that loses packets",
        "Mosquitto is not installed; apt-get install mosquitto",
        "repeat every side at least 5 times",
        "printed 4840%, read as 48.40",
        "weigh study run sample --scale quick",
    ] {
        let at = html[last..].find(wanted).unwrap_or_else(|| panic!("{wanted} after {last}"));
        last += at;
    }
    assert!(
        html.contains("closed loop against a burst <abbr title=\"unequal messages in flight\">")
    );
}

/// A cause is a fact only where the run shows it.
#[test]
fn a_cause_that_the_run_does_not_show_is_said_to_be_supposed() {
    let html = sample_page();
    let said = [
        ("C01", "<b>Cause.</b>"),
        ("C02", "<b>Supposed cause, which these runs do not show.</b>"),
        ("C03", "<b>Supposed cause, which these runs contradict.</b>"),
        ("C04", "<b>Remark.</b>"),
    ];
    for (id, wanted) in said {
        let own = of_claim(&html, id);
        assert!(own.contains(&format!("{wanted} A closed loop sets its own rate.")), "{own}");
    }
}

/// The paper's marks are hollow on dashed lines, those measured here filled with intervals, both in
/// one colour; what must not be used is a cross.
#[test]
fn a_figure_has_the_paper_and_the_replay_on_the_same_axes() {
    let html = sample_page();
    let svg = html.split("<svg").nth(1).unwrap().split("</svg>").next().unwrap();
    let groups: Vec<&str> = svg.split("<g class=\"c").skip(1).collect();
    let (paper, here, other) = (groups[0], groups[1], groups[2]);
    assert!(paper.starts_with('0') && here.starts_with('0') && other.starts_with('1'));
    assert_eq!(paper.matches("class=\"hollow\"").count(), 3, "{paper}");
    assert!(paper.contains("stroke-dasharray=\"5 3\""));
    assert_eq!(here.matches("fill=\"currentColor\"><title>").count(), 2, "{here}");
    assert!(here.contains("l7 7m0 -7l-7 7"), "the third point must not be used: {here}");
    assert!(here.contains("<title>HTTP, as published, 5 clients: 20.1 % (17.1 to 23.1)</title>"));
    assert!(svg.contains(">125</text>"), "the end of an interval, 102, is on the axis");
    for words in ["HTTP (paper)", "HTTP, as published", "MQTT (paper)", ">CPU (%)<", ">clients<"] {
        assert!(svg.contains(words), "{words}");
    }
    let lines = |html: &str| html.matches("stroke-width=\"0.9\"").count();
    assert_eq!(lines(&html), 3, "a fitted line for each series");
    let without = changed(|outcome| {
        outcome.figures[0].series.iter_mut().for_each(|one| one.trend = None);
    });
    assert_eq!(lines(&without), 0);
}

#[test]
fn a_series_without_points_is_said_to_be_missing_and_a_figure_without_any_is_not_drawn() {
    let html = changed(|outcome| {
        let ours = outcome.figures[0].series.iter_mut().find(|one| !one.is_theirs).unwrap();
        ours.points.clear();
        ours.missing = Some("one cell has no figure".to_owned());
    });
    assert!(html.contains("1 series is missing or incomplete."));
    assert!(html.contains("Missing here: HTTP, as published: one cell has no figure."));
    let html = changed(|outcome| {
        for series in &mut outcome.figures[0].series {
            series.points.clear();
            series.missing = Some("mosquitto was not there".to_owned());
        }
    });
    assert!(!html.contains("<svg") && html.contains("mosquitto was not there"));
    assert!(html.contains("Not drawn: CPU against number of clients"));
}

/// A file has its colours in it: nothing gives them to it.
#[test]
fn figures_as_files_need_no_style() {
    let files = drawn(&sample::outcome());
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].name, "figure-table-10");
    assert!(files[0].svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(files[0].svg.contains("color=\"#0072b2\"") && !files[0].svg.contains("class="));
}

/// The index has no count of words: every claim is a link below its answer.
#[test]
fn the_index_links_every_study_and_every_claim() {
    let outcome = sample::outcome();
    let html = index(&[
        Entry { outcome: &outcome, href: "one/report.html" },
        Entry { outcome: &outcome, href: "two/report.html" },
    ]);
    assert!(html.contains("2 published studies, replayed"));
    for study in ["one", "two"] {
        assert!(html.contains(&format!("<a href=\"{study}/report.html\">Is HTTP &amp; its kin")));
        let of = |claim: &ClaimOutcome| format!("href=\"{study}/report.html#claim-{}\"", claim.id);
        for claim in &outcome.claims {
            let lines = 3 + usize::from(claim.is_contradicted);
            assert_eq!(html.matches(&of(claim)).count(), lines, "once a line: {}", claim.id);
        }
    }
    for words in
        ["<b>not reproduced with a stand-in</b>", "<b>impossible</b>", "<b>cause shown</b>"]
    {
        assert!(html.contains(words), "{words}");
    }
}
