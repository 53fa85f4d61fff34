//! Whom an agent obeys and what it does for it. Every request may come twice.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use weigh_engine::rendezvous::Rendezvous;
use weigh_model::Nanos;

use super::part::PartRun;
use crate::bus::lock;
use crate::facts::AgentFacts;
use crate::messages::{Answer, Ask, Confirm, Fault, Hire, Start, Take, What, Whole};
use crate::monotonic;

/// The state of an agent.
pub struct Desk {
    version: String,
    facts: AgentFacts,
    is_private: bool,
    inner: Mutex<Inner>,
    /// Sentences about what happens.
    news: Sender<String>,
}

#[derive(Default)]
struct Inner {
    boss: Option<Boss>,
    part: Option<Arc<PartRun>>,
    /// True once a coordinator that gave it a part is gone.
    has_served: bool,
}

/// The coordinator that the agent obeys.
struct Boss {
    session: String,
    hire: Hire,
    heard_ns: i64,
    /// The last trial that it gave a part of.
    turn: u64,
}

/// What an agent does about a request, besides the answer.
pub enum Todo {
    /// Nothing.
    Nothing,
    /// To run this part.
    Run(Arc<PartRun>),
}

impl Desk {
    /// An agent that is free.
    pub fn new(
        version: String,
        facts: AgentFacts,
        is_private: bool,
        news: Sender<String>,
    ) -> Arc<Desk> {
        Arc::new(Desk { version, facts, is_private, inner: Mutex::default(), news })
    }

    /// Answers a request.
    pub fn answer(&self, ask: Ask) -> (Answer, Todo) {
        let mut inner = lock(&self.inner);
        let Ask { session, what } = ask;
        if let What::Hire(hire) = what {
            return (self.hire(&mut inner, session, hire), Todo::Nothing);
        }
        let Some(boss) = inner.boss.as_mut().filter(|boss| boss.session == session) else {
            return (Answer::Stranger, Todo::Nothing);
        };
        boss.heard_ns = monotonic::now_ns();
        let answer = match what {
            What::Take(take) => return self.take(&mut inner, *take),
            What::Name(start) => named(&inner, start),
            What::Confirm(confirm) => confirmed(&inner, confirm),
            What::End { turn } => ended(&mut inner, turn),
            What::Release => {
                self.say(format!("released by the coordinator on {}", boss.hire.host));
                let_go(&mut inner, false);
                Answer::Done
            }
            // Answered above.
            What::Hire(_) => Answer::Done,
        };
        (answer, Todo::Nothing)
    }

    fn hire(&self, inner: &mut Inner, session: String, hire: Hire) -> Answer {
        if hire.version != self.version {
            let (own, other) = (&self.version, &hire.version);
            return Answer::Refused(format!("it is of version {own}, the coordinator of {other}"));
        }
        match &mut inner.boss {
            Some(boss) if boss.session == session => boss.heard_ns = monotonic::now_ns(),
            Some(boss) => {
                let text =
                    format!("it is busy with a run of the coordinator on {}", boss.hire.host);
                return Answer::Refused(text);
            }
            None => {
                if let Some(part) = &inner.part {
                    return Answer::Refused(format!("it is busy: it finishes {}", part.name()));
                }
                self.say(format!(
                    "agent {} of the coordinator on {} (session {session})",
                    hire.rank, hire.host
                ));
                let heard_ns = monotonic::now_ns();
                inner.boss = Some(Boss { session, hire, heard_ns, turn: 0 });
            }
        }
        Answer::Hired(Box::new(self.facts.clone()))
    }

    fn take(&self, inner: &mut Inner, take: Take) -> (Answer, Todo) {
        let Inner { boss: Some(boss), part, .. } = inner else {
            return (Answer::Stranger, Todo::Nothing);
        };
        if take.turn <= boss.turn {
            let is_known = part.as_ref().is_some_and(|part| part.turn == take.turn);
            let answer = if is_known { Answer::Done } else { Answer::Refused(PAST.to_owned()) };
            return (answer, Todo::Nothing);
        }
        if let Some(part) = part.as_ref().filter(|part| !part.is_over()) {
            part.meeting.orders().give_up();
            return (Answer::Later, Todo::Nothing);
        }
        if take.part.secrets.is_some() && !self.is_private {
            let text = "secrets came over a bus that others can read; help: connect the agent with \
                        tls://";
            return (Answer::Refused(text.to_owned()), Todo::Nothing);
        }
        if let Some(before) = part.take() {
            before.forget();
        }
        boss.turn = take.turn;
        let silence = Nanos::from_millis(boss.hire.silence_ms);
        let run = PartRun::new(boss.session.clone(), take, silence);
        let shards = run.here();
        self.say(format!(
            "shards {} to {} of {}",
            shards.start,
            shards.end.saturating_sub(1),
            run.name()
        ));
        *part = Some(Arc::clone(&run));
        (Answer::Done, Todo::Run(run))
    }

    /// Takes over the state of all agents, and notes that the coordinator is there.
    pub fn hear(&self, session: &str, whole: Whole) {
        let part = {
            let mut inner = lock(&self.inner);
            let boss = inner.boss.as_mut().filter(|boss| boss.session == session);
            let Some(boss) = boss else { return };
            boss.heard_ns = monotonic::now_ns();
            inner.part.clone()
        };
        if let Some(part) = part.filter(|part| part.turn == whole.turn) {
            part.meeting.hear(whole, part.now());
            part.meeting.note_change();
        }
    }

    /// Notes that a coordinator asked for the clock. True if it is the one that is obeyed.
    pub fn hear_clock(&self, session: &[u8]) -> bool {
        let mut inner = lock(&self.inner);
        let boss = inner.boss.as_mut().filter(|boss| boss.session.as_bytes() == session);
        boss.map(|boss| boss.heard_ns = monotonic::now_ns()).is_some()
    }

    /// Frees the agent if its coordinator has been silent for too long, and forgets a part that is
    /// over. Called several times a second.
    pub fn look_around(&self) {
        let mut inner = lock(&self.inner);
        if let Some(boss) = &inner.boss {
            let silent_ms = (monotonic::now_ns() - boss.heard_ns) / 1_000_000;
            if u64::try_from(silent_ms).is_ok_and(|silent| silent > boss.hire.silence_ms) {
                let host = &boss.hire.host;
                let seconds = boss.hire.silence_ms as f64 / 1e3;
                self.say(format!(
                    "the coordinator on {host} was silent for {seconds} s: it is gone"
                ));
                let_go(&mut inner, true);
            }
        }
        if inner.boss.is_some() {
            return;
        }
        let is_done = |part: &mut Arc<PartRun>| {
            part.meeting.check_peers(part.now());
            part.is_over() && part.meeting.is_let_go()
        };
        if let Some(part) = inner.part.take_if(is_done) {
            part.forget();
            self.say(format!("{} is over here; free", part.name()));
        }
    }

    /// Fails the part that runs, because the agent is to end. True once none runs.
    pub fn close(&self) -> bool {
        let inner = lock(&self.inner);
        let part = inner.part.as_ref().filter(|part| !part.is_over());
        part.inspect(|part| {
            let reason = "the agent was stopped".to_owned();
            part.meeting.fail(Fault::Lost { reason });
        });
        part.is_none()
    }

    /// True if a run is over, and no other one has begun.
    pub fn has_served(&self) -> bool {
        let inner = lock(&self.inner);
        inner.has_served && inner.boss.is_none() && inner.part.is_none()
    }

    fn say(&self, text: String) {
        // The agent listens for as long as it runs.
        let _ = self.news.send(text);
    }
}

/// The coordinator is gone. It released the agent, or it is silent: then a load that runs is
/// finished.
fn let_go(inner: &mut Inner, is_finished: bool) {
    inner.has_served |= inner.boss.as_ref().is_some_and(|boss| boss.turn > 0);
    inner.boss = None;
    if let Some(part) = &inner.part {
        match is_finished {
            true => part.end_alone(),
            false if !part.is_over() => part.meeting.orders().give_up(),
            false => {}
        }
        part.meeting.note_change();
    }
}

fn named(inner: &Inner, start: Start) -> Answer {
    match inner.part.as_ref().filter(|part| part.turn == start.turn) {
        Some(part) if !part.meeting.orders().has_failed() => {
            Answer::Slack { ns: part.meeting.name(start.start_ns, part.now()) }
        }
        Some(_) => Answer::Refused("its part has failed".to_owned()),
        None => Answer::Refused(PAST.to_owned()),
    }
}

fn confirmed(inner: &Inner, confirm: Confirm) -> Answer {
    let Some(part) = inner.part.as_ref().filter(|part| part.turn == confirm.start.turn) else {
        return Answer::Refused(PAST.to_owned());
    };
    part.confirm(confirm);
    match part.meeting.has_start() {
        true => Answer::Done,
        false => Answer::Refused("the confirmation of the start came too late".to_owned()),
    }
}

fn ended(inner: &mut Inner, turn: u64) -> Answer {
    let Some(part) = inner.part.as_ref().filter(|part| part.turn == turn) else {
        return Answer::Done;
    };
    if !part.is_over() {
        part.meeting.orders().give_up();
        part.meeting.note_change();
        return Answer::Later;
    }
    part.forget();
    inner.part = None;
    Answer::Done
}

const PAST: &str = "the trial is not the one that it knows";

#[cfg(test)]
mod tests;
