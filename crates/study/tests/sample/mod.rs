//! A small study and what came of it, written by hand: every answer, a stand-in and the named
//! software, a skipped run, a warning, a damaged figure, several runs, and names that a page must
//! escape.

use serde_json::json;
use weigh_study::audit::{Source, audit};
use weigh_study::outcome::{
    Agreement, Answer, AxisShown, BreakEvenShown, CellShown, Certainty, ClaimOutcome,
    ComparedShown, ExperimentOutcome, FigureOutcome, FlagShown, Judged, Line, Link, OccasionShown,
    PaperShown, PointShown, QuantityShown, Replay, Role, RunAnswers, RunOutcome, STUDY_SCHEMA,
    Series, WarningShown,
};
use weigh_study::published::Published;
use weigh_study::study::{Environment, Experiment, Flag, Paper, Study};
use weigh_study::tools::{ToolCompared, ToolFigure, ToolShown};
use weigh_study::{Outcome, Printed, Replayed, Scale, Way, Why};

/// The study.
pub fn study() -> Study {
    let published = "study,table,series,x,x_unit,y,y_unit\n\
        lab,Table 10,protocol=HTTP;payloads=10000;stat=average_cpu,50,clients,87,percent\n";
    let source = Source { name: "published.csv".to_owned(), text: published.to_owned() };
    Study {
        name: "sample".to_owned(),
        source: "lab".to_owned(),
        question: "Is HTTP & its kin <heavier> than MQTT?".to_owned(),
        finding: vec![
            "The share of a processor follows from how many clients ask at once.".to_owned(),
            "At equal rates the two differ by less than a factor of two.".to_owned(),
        ],
        limits: vec!["Nothing about a network that loses packets.".to_owned()],
        paper: Paper {
            title: Some("A comparison of two protocols".to_owned()),
            topic: "CPU of MQTT and HTTP".to_owned(),
            asked: "Which of the two is lighter?".to_owned(),
            did: "Two machines, a load tool each.".to_owned(),
            found: "MQTT is lighter.".to_owned(),
            ..Paper::default()
        },
        environment: Environment {
            stated: [("machine".to_owned(), "1 vCPU, 3.75 GB".to_owned())].into(),
            not_stated: vec!["message size".to_owned()],
            ours: vec!["64 B, because that is a reading".to_owned()],
        },
        experiments: vec![experiment("E1-http", true), experiment("E9", false)],
        claims: Vec::new(),
        figures: Vec::new(),
        carry: Vec::new(),
        flags: vec![Flag {
            table: "Table 14".to_owned(),
            series: "clients=20".to_owned(),
            x: "1000".to_owned(),
            printed: "4840%".to_owned(),
            used: "48.40".to_owned(),
            reason: "decimal point lost".to_owned(),
            confidence: "near certain".to_owned(),
        }],
        parameters: Vec::new(),
        hash: "0123456789abcdef".repeat(4),
        tools: Vec::new(),
        published: Published::default(),
        plans: Vec::new(),
        audit: audit(&[source], &[]).unwrap(),
        readme: String::new(),
    }
}

fn experiment(id: &str, is_run: bool) -> Experiment {
    Experiment {
        id: id.to_owned(),
        title: format!("CPU of {id}"),
        tables: vec!["Table 10".to_owned()],
        published: if is_run { vec![format!("published/{id}")] } else { Vec::new() },
        right: if is_run { vec!["right/cost".to_owned()] } else { Vec::new() },
        not_run: (!is_run).then(|| "it takes a modem".to_owned()),
        flaws: vec!["closed loop against a burst [L16]".to_owned()],
    }
}

/// What came of it.
pub fn outcome() -> Outcome {
    Outcome {
        schema: STUDY_SCHEMA.to_owned(),
        study: "sample".to_owned(),
        question: "Is HTTP & its kin <heavier> than MQTT?".to_owned(),
        scale: Scale::Quick,
        ways: Way::ALL.to_vec(),
        only: Vec::new(),
        data: None,
        runs: None,
        id: "2026-11-21T20-00-00-study-sample".to_owned(),
        started: "2026-11-21T20:00:00Z".to_owned(),
        version: "0.1.0".to_owned(),
        host: Some(json!({ "cpu": "A processor", "cores": 2, "memory_bytes": 4294967296u64 })),
        state: "done".to_owned(),
        experiments: experiments(),
        occasions: vec![occasion("2026-11-20", "a"), occasion("2026-11-21", "b")],
        paper: PaperShown {
            title: Some("A comparison of <two> protocols".to_owned()),
            authors: vec!["A. Author".to_owned(), "B. Author".to_owned()],
            link: Some("https://example.org/paper".to_owned()),
            ..PaperShown::default()
        },
        judged_hash: "0123456789abcdef".repeat(4),
        warnings: Vec::new(),
        claims: claims(),
        certainty: Certainty::of(&claims()),
        figures: vec![figure()],
        carry: Vec::new(),
        tools: vec![tool()],
    }
}

/// A real program, with one figure that stands beside one of Weighbridge.
fn tool() -> ToolShown {
    ToolShown {
        name: "tools/curl-post".to_owned(),
        about: "A start of curl for each message".to_owned(),
        experiments: vec!["E1-http".to_owned()],
        program: "curl".to_owned(),
        version: Some("7.88.1".to_owned()),
        target: String::new(),
        folder: Some("tools-curl-post".to_owned()),
        skipped: None,
        repetitions: 5,
        failures: Vec::new(),
        warnings: vec!["Other processes used 20 % of a core.".to_owned()],
        figures: vec![ToolFigure {
            name: "cpu_s_per_message".to_owned(),
            unit: "s".to_owned(),
            mean: 0.012,
            low: Some(0.011),
            high: Some(0.013),
            n: 5,
            compared_with: vec![ToolCompared {
                what: "Weighbridge's client".to_owned(),
                value: Some(0.002),
                low: None,
                high: None,
                difference: Some(0.010),
                difference_low: Some(0.009),
                difference_high: Some(0.011),
                reason: String::new(),
            }],
        }],
    }
}

fn occasion(day: &str, boot: &str) -> OccasionShown {
    OccasionShown {
        run: format!("{day}T20-00-00-study-sample"),
        started: format!("{day}T20:00:00Z"),
        version: "0.1.0".to_owned(),
        scale: Scale::Quick,
        host: Some(json!({ "cpu": "A processor", "cores": 2, "memory_bytes": 4294967296u64 })),
        state: "done".to_owned(),
        study_hash: Some("0123456789abcdef".repeat(4)),
        is_same_study: Some(true),
        boot: Some(boot.to_owned()),
        warnings: Vec::new(),
    }
}

fn experiments() -> Vec<ExperimentOutcome> {
    let warning = WarningShown {
        code: "L13".to_owned(),
        takes: String::new(),
        text: "3 repetitions".to_owned(),
        advice: "repeat every side at least 5 times".to_owned(),
        cells: vec!["http1 connections=50".to_owned()],
    };
    let made = RunOutcome {
        name: "published/E1-http".to_owned(),
        way: Way::Published,
        folder: Some("published-E1-http".to_owned()),
        id: Some("2026-11-21T20-00-01-E1-http".to_owned()),
        outcome: Some("done".to_owned()),
        cells: 3,
        invalid_cells: 0,
        skipped: None,
        warnings: vec![warning],
    };
    let skipped = RunOutcome {
        name: "right/cost".to_owned(),
        way: Way::Right,
        folder: None,
        id: None,
        outcome: None,
        cells: 0,
        invalid_cells: 0,
        skipped: Some("mosquitto is not installed; apt-get install mosquitto".to_owned()),
        warnings: Vec::new(),
    };
    let of = |id: &str, not_run: Option<&str>, runs| ExperimentOutcome {
        id: id.to_owned(),
        title: format!("CPU of {id}"),
        not_run: not_run.map(str::to_owned),
        runs,
    };
    vec![of("E1-http", None, vec![made, skipped]), of("E9", Some("it takes a modem"), Vec::new())]
}

/// A claim for each pair of answers; the last one is a finding of the audit.
fn claims() -> Vec<ClaimOutcome> {
    let answers = Printed::ALL.into_iter().zip(Replayed::ALL).zip(Why::ALL);
    answers
        .enumerate()
        .map(|(index, ((printed, own), why))| claim(index, printed, own, why))
        .collect()
}

fn claim(index: usize, printed: Printed, own: Replayed, why: Why) -> ClaimOutcome {
    let answer = match own {
        Replayed::Reproduced => Answer::Yes,
        Replayed::NotReproduced => Answer::No,
        _ => Answer::Undecided,
    };
    let by_paper = if printed == Printed::Consistent { Answer::Yes } else { Answer::No };
    let mut conditions = vec![judged(Role::Replayed, answer), judged(Role::Why, Answer::Yes)];
    if printed != Printed::NothingToCheck {
        conditions.push(judged(Role::Printed, by_paper));
    }
    ClaimOutcome {
        id: format!("C0{}", index + 1),
        says: format!("HTTP needs <87> % of it, {} times.", index + 1),
        section: "Section 2, Table 10".to_owned(),
        is_finding: index == 3,
        experiments: vec!["E1-http".to_owned()],
        cells: vec![cell()],
        printed,
        replays: vec![replay(own, false), replay(Replayed::NotRun, true)],
        why,
        is_contradicted: printed == Printed::Impossible,
        sentence: format!("The replay is {own}."),
        because: Some("A closed loop sets its own rate.".to_owned()),
        remark: Some("The server is not named.".to_owned()),
        conditions,
        compared: vec![compared()],
        break_even: vec![BreakEvenShown {
            what: "header".to_owned(),
            unit: "B".to_owned(),
            value: Some(310.0),
            low: Some(290.0),
            high: Some(330.0),
            sentence: "The answer changes at 310 B of header (95 % CI 290 to 330).".to_owned(),
        }],
        agreement: Some(Agreement {
            same: if index == 1 { 1 } else { 2 },
            of: 2,
            answers: ["2026-11-20", "2026-11-21"].map(|day| run_answers(day, own, why)).to_vec(),
        }),
        by_model: Vec::new(),
    }
}

fn run_answers(day: &str, own: Replayed, why: Why) -> RunAnswers {
    let run = format!("{day}T20-00-00-study-sample");
    RunAnswers { run, replays: vec![own, Replayed::NotRun], why }
}

fn replay(answer: Replayed, is_same: bool) -> Replay {
    let on = if is_same { "EMQX 5.8" } else { "Weighbridge's broker in place of EMQX" };
    let reasons = match answer {
        Replayed::Undecided => vec!["3 repetitions; an answer needs 5".to_owned()],
        Replayed::NotRun => vec!["emqx is not installed".to_owned()],
        _ => Vec::new(),
    };
    let host = if answer == Replayed::NotRun { "" } else { "2 cores, A processor" };
    Replay { answer, on: on.to_owned(), is_same, host: host.to_owned(), reasons }
}

fn compared() -> ComparedShown {
    ComparedShown {
        what: "CPU at 50 clients".to_owned(),
        unit: "percent".to_owned(),
        theirs: Some(87.0),
        theirs_printed: "87.00".to_owned(),
        here: Some(84.2),
        low: Some(80.0),
        high: Some(88.4),
        ratio: Some(0.968),
        ratio_low: Some(0.92),
        ratio_high: Some(1.016),
        links: Vec::new(),
        reason: String::new(),
    }
}

fn cell() -> CellShown {
    CellShown {
        table: "Table 10".to_owned(),
        series: "protocol=HTTP;stat=average_cpu".to_owned(),
        x: "50".to_owned(),
        x_unit: "clients".to_owned(),
        value: 87.0,
        printed: "87.00".to_owned(),
        unit: "percent".to_owned(),
        flags: vec![FlagShown {
            about: String::new(),
            printed: "8700%".to_owned(),
            used: "87".to_owned(),
            reason: "decimal point lost".to_owned(),
            confidence: "near certain".to_owned(),
        }],
    }
}

fn judged(role: Role, answer: Answer) -> Judged {
    let link = Link {
        run: "published/E1-http".to_owned(),
        folder: "published-E1-http".to_owned(),
        cell: "http1 connections=50".to_owned(),
        trials: vec!["t1".to_owned(), "t2".to_owned()],
    };
    Judged {
        role,
        lane: 0,
        is_without_runs: false,
        text: "http / mqtt > 2".to_owned(),
        words: "CPU by htop, HTTP over MQTT".to_owned(),
        estimate: Some(3.84),
        low: Some(3.60),
        high: Some(4.09),
        n: Some(3),
        shown: "3.84 (3.60 to 4.09)".to_owned(),
        answer,
        reasons: match answer {
            Answer::Undecided => vec!["3 repetitions; an answer needs 5".to_owned()],
            _ => Vec::new(),
        },
        quantities: vec![QuantityShown {
            name: "http".to_owned(),
            text: "mean CPU as htop would have shown it".to_owned(),
            value: Some(84.2),
            low: Some(80.0),
            high: Some(88.4),
            unit: "%".to_owned(),
            n: Some(3),
            links: vec![link],
        }],
    }
}

fn figure() -> FigureOutcome {
    let axis = |label: &str, unit: &str| AxisShown {
        label: label.to_owned(),
        unit: unit.to_owned(),
        is_log: false,
    };
    FigureOutcome {
        id: "table-10".to_owned(),
        title: "CPU against number of clients (Table 10)".to_owned(),
        caption: "CPU grows with the clients in both.".to_owned(),
        x: axis("clients", ""),
        y: axis("CPU", "%"),
        series: vec![
            series("HTTP (paper)", true, &[(5.0, 17.75), (30.0, 60.5), (60.0, 97.0)]),
            series("HTTP, as published", false, &[(5.0, 20.1), (30.0, 55.0), (60.0, 99.0)]),
            series("MQTT (paper)", true, &[(10.0, 17.51), (50.0, 22.63)]),
        ],
    }
}

fn series(label: &str, is_theirs: bool, points: &[(f64, f64)]) -> Series {
    let shown = |&(x, y): &(f64, f64)| PointShown {
        x,
        y,
        low: (!is_theirs).then_some(y - 3.0),
        high: (!is_theirs).then_some(y + 3.0),
        is_valid: x < 60.0 || is_theirs,
    };
    let run = if is_theirs { "" } else { "published/E1-http" };
    Series {
        label: label.to_owned(),
        is_theirs,
        points: points.iter().map(shown).collect(),
        trend: Some(Line { slope: 1.4, intercept: 12.0 }),
        missing: None,
        links: vec![Link {
            run: run.to_owned(),
            folder: run.replace('/', "-"),
            cell: "Table 10, protocol=HTTP".to_owned(),
            trials: Vec::new(),
        }],
    }
}
