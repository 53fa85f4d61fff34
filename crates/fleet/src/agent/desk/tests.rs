//! An agent's answers, without a bus: every request may come twice, and from anyone.

use std::sync::mpsc::{Receiver, channel};

use weigh_model::{Load, Pattern, Trial};

use super::*;
use crate::order::{Order, Part, Secrets, Target};

struct Office {
    desk: Arc<Desk>,
    heard: Receiver<String>,
}

impl Office {
    fn new(is_private: bool) -> Office {
        let (news, heard) = channel();
        Office { desk: Desk::new("1".to_owned(), AgentFacts::default(), is_private, news), heard }
    }

    fn ask(&self, session: &str, what: What) -> Answer {
        self.desk.answer(Ask { session: session.to_owned(), what }).0
    }

    /// The part that is to run, if the answer is to run one.
    fn take(&self, session: &str, take: Take) -> (Answer, Option<Arc<PartRun>>) {
        let what = What::Take(Box::new(take));
        match self.desk.answer(Ask { session: session.to_owned(), what }) {
            (answer, Todo::Run(part)) => (answer, Some(part)),
            (answer, Todo::Nothing) => (answer, None),
        }
    }

    fn said(&self) -> String {
        self.heard.try_iter().collect::<Vec<_>>().join("\n")
    }
}

fn hire(silence_ms: u64) -> What {
    let (version, host) = ("1".to_owned(), "there".to_owned());
    What::Hire(Hire { version, host, rank: 0, silence_ms })
}

fn part(turn: u64) -> Take {
    let address = "127.0.0.1:1".parse().unwrap();
    let order = Order {
        run: "r".to_owned(),
        attempt: 1,
        trial: Trial {
            id: "t".to_owned(),
            point: Default::default(),
            repetition: 0,
            seed: 1,
            protocol: "tcp".to_owned(),
            target: "reference".to_owned(),
            endpoint: None,
            load: Load::closed(Pattern::Request, 1),
            settings: Default::default(),
        },
        target: Target {
            scheme: "tcp".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 1,
            path: String::new(),
            address,
        },
        shards: 2,
        every: None,
        unix_ns: 0,
        body: None,
        trace: None,
        keeps_messages: false,
        tls: None,
    };
    let part = Part { order, secrets: None, here: 0..1, rank: 0 };
    Take { turn, part, zero_ns: monotonic::now_ns() }
}

fn is_refused(answer: &Answer, text: &str) -> bool {
    matches!(answer, Answer::Refused(reason) if reason.contains(text))
}

#[test]
fn the_first_coordinator_is_obeyed_until_it_lets_go() {
    let office = Office::new(true);
    assert_eq!(office.ask("a", What::Release), Answer::Stranger);
    for _ in 0..2 {
        assert!(matches!(office.ask("a", hire(60_000)), Answer::Hired(_)));
    }
    assert!(is_refused(&office.ask("b", hire(60_000)), "busy with a run of the coordinator on"));
    assert_eq!(office.take("b", part(1)).0, Answer::Stranger);
    assert!(office.desk.hear_clock(b"a") && !office.desk.hear_clock(b"b"));
    assert_eq!(office.ask("a", What::Release), Answer::Done);
    assert!(matches!(office.ask("b", hire(60_000)), Answer::Hired(_)));
    assert!(!office.desk.has_served(), "there was no trial");
}

#[test]
fn other_versions_are_refused() {
    let hire = Hire { version: "2".to_owned(), host: String::new(), rank: 0, silence_ms: 1 };
    let answer = Office::new(true).ask("a", What::Hire(hire));
    assert!(is_refused(&answer, "it is of version 1, the coordinator of 2"));
}

#[test]
fn a_part_that_comes_twice_runs_once() {
    let office = Office::new(true);
    office.ask("a", hire(60_000));
    let (answer, first) = office.take("a", part(1));
    assert_eq!(answer, Answer::Done);
    let first = first.unwrap();
    let (answer, again) = office.take("a", part(1));
    assert!(answer == Answer::Done && again.is_none());
    // The next one waits for it, and ends it.
    let (answer, next) = office.take("a", part(2));
    assert!(answer == Answer::Later && next.is_none());
    assert!(first.meeting.orders().has_failed());
    first.fail_unstarted("nothing runs");
    assert!(office.take("a", part(2)).1.is_some());
    assert!(first.is_forgotten());
    assert!(is_refused(&office.take("a", part(1)).0, PAST));
}

fn start(turn: u64) -> Start {
    Start { turn, start_ns: 3_600_000_000_000 }
}

fn confirm(turn: u64) -> Confirm {
    Confirm { start: start(turn), clock: crate::stored_part::KnownClock::default() }
}

#[test]
fn a_start_is_kept_for_the_trial_it_is_of() {
    let office = Office::new(true);
    office.ask("a", hire(60_000));
    let run = office.take("a", part(1)).1.unwrap();
    assert!(is_refused(&office.ask("a", What::Name(start(2))), PAST));
    for _ in 0..2 {
        let answer = office.ask("a", What::Name(start(1)));
        assert!(matches!(answer, Answer::Slack { ns } if ns > 3_000_000_000_000), "{answer:?}");
        assert!(!run.meeting.has_start());
    }
    assert!(is_refused(&office.ask("a", What::Confirm(confirm(2))), PAST));
    for _ in 0..2 {
        assert_eq!(office.ask("a", What::Confirm(confirm(1))), Answer::Done);
    }
    assert!(run.meeting.has_start());
    assert_eq!(office.ask("a", What::End { turn: 7 }), Answer::Done, "an unknown one is over");
    assert_eq!(office.ask("a", What::End { turn: 1 }), Answer::Later);
    assert!(is_refused(&office.ask("a", What::Name(start(1))), "failed"));
    run.fail_unstarted("nothing runs");
    assert_eq!(office.ask("a", What::End { turn: 1 }), Answer::Done);
}

#[test]
fn secrets_are_refused_on_a_bus_that_is_not_private() {
    let with_secrets = || {
        let mut take = part(1);
        take.part.secrets = Some(Secrets { password: "p".to_owned(), ..Secrets::default() });
        take
    };
    let office = Office::new(false);
    office.ask("a", hire(60_000));
    assert!(is_refused(&office.take("a", with_secrets()).0, "tls://"));
    assert!(office.take("a", part(1)).1.is_some());
    let private = Office::new(true);
    private.ask("a", hire(60_000));
    assert!(private.take("a", with_secrets()).1.is_some());
}

#[test]
fn a_silent_coordinator_is_gone_and_its_part_is_ended() {
    let office = Office::new(true);
    office.ask("a", hire(60_000));
    office.desk.look_around();
    assert!(office.desk.hear_clock(b"a"));
    office.ask("a", What::Release);
    office.ask("a", hire(0));
    let run = office.take("a", part(1)).1.unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    office.desk.look_around();
    assert!(!office.desk.hear_clock(b"a") && run.meeting.is_alone());
    assert!(is_refused(&office.ask("b", hire(0)), "it finishes trial t of run r, attempt 1"));
    assert!(!office.desk.has_served());
    run.fail_unstarted("nothing runs");
    office.desk.look_around();
    assert!(office.desk.has_served());
    let said = office.said();
    assert!(said.contains("was silent") && said.ends_with("is over here; free"), "{said}");
    assert!(matches!(office.ask("b", hire(0)), Answer::Hired(_)));
}
