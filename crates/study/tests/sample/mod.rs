//! A small study and what came of it, written by hand: every verdict, a skipped run, a doubt, a
//! damaged figure, and names that a page must escape.

use serde_json::json;
use weigh_audit::{Source, audit};
use weigh_study::outcome::{
    Answer, AxisShown, CellShown, Certainty, ClaimOutcome, DoubtShown, ExperimentOutcome,
    FigureOutcome, FlagShown, Judged, Line, Link, PointShown, QuantityShown, Role, RunOutcome,
    STUDY_SCHEMA, Series,
};
use weigh_study::published::Published;
use weigh_study::study::{Environment, Experiment, Flag, Paper, Study};
use weigh_study::{Outcome, Scale, Verdict, Way};

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
        claims: claims(),
        certainty: Certainty::of(&claims()),
        figures: vec![figure()],
        carry: Vec::new(),
    }
}

fn experiments() -> Vec<ExperimentOutcome> {
    let doubt = DoubtShown {
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
        doubts: vec![doubt],
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
        doubts: Vec::new(),
    };
    let of = |id: &str, not_run: Option<&str>, runs| ExperimentOutcome {
        id: id.to_owned(),
        title: format!("CPU of {id}"),
        not_run: not_run.map(str::to_owned),
        runs,
    };
    vec![of("E1-http", None, vec![made, skipped]), of("E9", Some("it takes a modem"), Vec::new())]
}

fn claims() -> Vec<ClaimOutcome> {
    let verdicts = Verdict::ALL.into_iter().enumerate();
    verdicts
        .map(|(index, verdict)| ClaimOutcome {
            id: format!("C0{}", index + 1),
            source: "Table 10".to_owned(),
            says: format!("HTTP needs <87> % of it, {} times.", index + 1),
            experiments: vec!["E1-http".to_owned()],
            cells: vec![cell()],
            verdict,
            sentence: format!("Ours is 3.84 (3.60 to 4.09), so it is {verdict}."),
            because: Some("A closed loop sets its own rate.".to_owned()),
            conditions: vec![judged(Role::Picture), judged(Role::Cause)],
            by_paper: Vec::new(),
            by_model: Vec::new(),
        })
        .collect()
}

fn cell() -> CellShown {
    CellShown {
        table: "Table 10".to_owned(),
        series: "protocol=HTTP;stat=average_cpu".to_owned(),
        x: "50".to_owned(),
        x_unit: "clients".to_owned(),
        value: 87.0,
        printed: "87".to_owned(),
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

fn judged(role: Role) -> Judged {
    let link = Link {
        run: "published/E1-http".to_owned(),
        folder: "published-E1-http".to_owned(),
        cell: "http1 connections=50".to_owned(),
        trials: vec!["t1".to_owned(), "t2".to_owned()],
    };
    Judged {
        role,
        text: "http / mqtt > 2".to_owned(),
        words: "CPU by htop, HTTP over MQTT".to_owned(),
        estimate: Some(3.84),
        low: Some(3.60),
        high: Some(4.09),
        n: Some(3),
        shown: "3.84 (3.60 to 4.09)".to_owned(),
        answer: Answer::Yes,
        reasons: Vec::new(),
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
