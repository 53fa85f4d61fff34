//! Waits until there are as many agents as asked for, and makes them obey.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::choice::{Choice, choose, named};
use super::clock_watch::ClockWatch;
use super::discovery::{Found, discover};
use super::hand::{Hand, Line};
use super::options::FleetOptions;
use crate::bus::{Bus, Unanswered};
use crate::error::FleetError;
use crate::messages::{Answer, Hire, What};

/// What gathering needs of the fleet.
pub struct Gathering<'f> {
    /// The bus.
    pub bus: &'f Bus,
    /// Which agents.
    pub options: &'f FleetOptions,
    /// The coordinator's own name.
    pub session: &'f str,
    /// Name of its host.
    pub host: &'f str,
    /// True once the user does not want to wait any longer.
    pub is_stopped: &'f dyn Fn() -> bool,
}

/// What was said already, and who does not want.
#[derive(Default)]
struct Memory {
    said: BTreeSet<String>,
    /// Agents that did not want to be hired, since when, and why.
    busy: HashMap<String, (Instant, String)>,
}

impl Gathering<'_> {
    /// Makes agents obey, one for each of these ranks: all of them or none.
    ///
    /// # Errors
    /// [`FleetError::Agents`] if some are missing when the time is over, [`FleetError::Stopped`] if
    /// the user has ended it before.
    pub fn hands(&self, ranks: &[u32], say: &dyn Fn(&str)) -> Result<Vec<Hand>, FleetError> {
        let (until, mut memory) = (Instant::now() + self.options.wait, Memory::default());
        loop {
            let mut found = discover(self.bus);
            memory.busy.retain(|_, (since, _)| since.elapsed() < BUSY_FOR);
            found.retain(|agent| !memory.busy.contains_key(&agent.id));
            let choice = choose(&found, ranks, self.options.agents, &self.options.version);
            self.report(&choice, ranks, &mut memory, say);
            if choice.missing.is_empty()
                && let Some(hands) = self.hire(&choice.chosen, &mut memory, say)
            {
                return Ok(hands);
            }
            if (self.is_stopped)() {
                return Err(FleetError::Stopped);
            }
            if Instant::now() >= until {
                return Err(self.missing(&choice, ranks, &memory));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn report(&self, choice: &Choice, ranks: &[u32], memory: &mut Memory, say: &dyn Fn(&str)) {
        for refusal in &choice.refused {
            memory.say_once(&format!("refused: {refusal}"), say);
        }
        if !choice.missing.is_empty() {
            let (here, all) = (choice.chosen.len(), ranks.len());
            let missing = named(&choice.missing);
            memory
                .say_once(&format!("{here} of {all} agents are there; waiting for {missing}"), say);
        } else if choice.spare > 0 {
            memory.say_once(&format!("{} more agents are there and not used", choice.spare), say);
        }
    }

    fn missing(&self, choice: &Choice, ranks: &[u32], memory: &Memory) -> FleetError {
        let (here, all) = (choice.chosen.len(), ranks.len());
        let seconds = self.options.wait.as_secs_f64();
        let mut text = format!("{here} of {all} agents could be used within {seconds} s");
        if !choice.missing.is_empty() {
            text.push_str(&format!("; missing: {}", named(&choice.missing)));
        }
        let busy = memory.busy.values().map(|(_, reason)| reason);
        for refusal in choice.refused.iter().chain(busy) {
            text.push_str(&format!("; refused: {refusal}"));
        }
        let fleet = self.bus.fleet();
        text.push_str(&format!("; help: start them with weigh agent and the fleet's name {fleet}"));
        FleetError::Agents(text)
    }

    /// Makes all of them obey, or none: otherwise two coordinators could wait for each other.
    fn hire(
        &self,
        chosen: &BTreeMap<u32, Found>,
        memory: &mut Memory,
        say: &dyn Fn(&str),
    ) -> Option<Vec<Hand>> {
        let mut hands = Vec::new();
        for (rank, agent) in chosen {
            match self.hire_one(*rank, agent) {
                Ok(hand) => hands.push(hand),
                Err(reason) => memory.note_refusal(*rank, agent, &reason, say),
            }
        }
        await_clocks(&hands);
        for hand in hands.iter().filter(|hand| !hand.clock.is_ready()) {
            memory.note_refusal(hand.rank, &chosen[&hand.rank], "it does not answer", say);
        }
        if hands.len() == chosen.len() && hands.iter().all(|hand| hand.clock.is_ready()) {
            return Some(hands);
        }
        release(self.bus, &hands);
        None
    }

    fn hire_one(&self, rank: u32, agent: &Found) -> Result<Hand, String> {
        let line = Line::new(self.bus, &agent.id, self.session);
        let hire = What::Hire(Hire {
            version: self.options.version.clone(),
            host: self.host.to_owned(),
            rank,
            silence_ms: self.options.silence.as_millis() as u64,
        });
        match self.bus.wait(line.ask(hire, HIRE_PATIENCE)) {
            Ok(Answer::Hired(facts)) => {
                let clock = Arc::new(ClockWatch::start(self.bus, &agent.id, self.session));
                Ok(Hand { rank, facts: *facts, clock, line })
            }
            Ok(Answer::Refused(reason)) => Err(reason),
            Ok(_) => Err("its answer is not understood".to_owned()),
            Err(Unanswered::Absent | Unanswered::Silent) => Err("it does not answer".to_owned()),
        }
    }
}

impl Memory {
    fn note_refusal(&mut self, rank: u32, agent: &Found, reason: &str, say: &dyn Fn(&str)) {
        let refusal = format!("agent {} on {} (rank {rank}): {reason}", agent.id, agent.host);
        self.say_once(&format!("refused: {refusal}"), say);
        self.busy.insert(agent.id.clone(), (Instant::now(), refusal));
    }

    fn say_once(&mut self, text: &str, say: &dyn Fn(&str)) {
        if self.said.insert(text.to_owned()) {
            say(text);
        }
    }
}

/// Frees agents.
pub fn release(bus: &Bus, hands: &[Hand]) {
    let all = hands.iter().map(|hand| hand.line.ask(What::Release, RELEASE_PATIENCE));
    // An agent that does not hear it frees itself when nothing more comes.
    bus.wait(futures_util::future::join_all(all));
}

/// Waits for the first exchanges with all, for a while.
fn await_clocks(hands: &[Hand]) {
    let until = Instant::now() + CLOCK_PATIENCE;
    while Instant::now() < until && !hands.iter().all(|hand| hand.clock.is_ready()) {
        thread::sleep(Duration::from_millis(10));
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(300);
const HIRE_PATIENCE: Duration = Duration::from_secs(3);
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);
const CLOCK_PATIENCE: Duration = Duration::from_secs(5);
/// An agent that obeys another coordinator is asked again after this.
const BUSY_FOR: Duration = Duration::from_secs(2);
