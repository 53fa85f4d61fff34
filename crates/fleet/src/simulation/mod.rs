//! The control of a trial with a thousand agents, on virtual time and in one thread.
//!
//! What decides is the code of coordinator and agents: [`Control`], [`Sums`](crate::sums::Sums),
//! [`Meeting`], the placement of shards, the agreement on a start, the offsets of clocks. What is
//! simulated is around it: a bus with delays, copies and cuts, clocks that are far apart and drift,
//! shards that only count.

mod agent;
mod bus;
mod item;
mod tests;

use std::rc::Rc;
use std::time::Duration;

use weigh_engine::job::Failure;
use weigh_model::Nanos;
use weigh_model::event::HostFacts;
use weigh_observe::clocks::pair::Exchange;

use crate::clock::{ClockBook, Estimate};
use crate::coordinator::control::{Control, Sighting};
use crate::coordinator::placement;
use crate::coordinator::trial_clocks::{Clocked, TrialClocks, skew_bound};
use crate::facts::AgentFacts;
use crate::messages::{Answer, Start, State, written};
use agent::Agent;
use bus::{Bus, Weather};
use item::Item;

/// A trial to simulate.
#[derive(Clone)]
struct Scenario {
    agents: u32,
    seed: u64,
    weather: Weather,
    /// The agent that dies, and when, nanoseconds after the begin of the trial.
    death: Option<(u32, u64)>,
    /// When the user asks to stop, likewise.
    stop: Option<u64>,
}

/// What the coordinator knows of an agent's clock.
struct Hand {
    rank: u32,
    book: ClockBook,
    heard: u64,
}

impl Clocked for Hand {
    fn clock_at(&self, own_ns: i64) -> Option<Estimate> {
        self.book.at(own_ns)
    }

    fn name(&self) -> String {
        format!("agent {} (h)", self.rank)
    }
}

/// What happened in a trial.
struct Played {
    result: Result<Vec<State>, Failure>,
    agents: Vec<Agent>,
    /// The start on the true clock, and the largest possible error of each agent's.
    start: Option<u64>,
    errors_ns: Vec<u64>,
    skew_bound_ns: u64,
    /// Offsets that were compared with the truth, and those that were further off than their bound.
    offsets: (u64, u64),
    /// Messages over the bus, a copy for each that gets it, and the time they took.
    messages: u64,
    lasted_ns: u64,
    /// Size of the largest state of all.
    whole_bytes: usize,
    /// Time from the confirmation of the start until the last agent knew it.
    round_ns: u64,
}

/// The trial, its coordinator and its agents.
struct World {
    now: u64,
    bus: Bus,
    hands: Vec<Hand>,
    agents: Vec<Agent>,
    control: Control,
    clocks: Option<TrialClocks>,
    epoch: u64,
    offsets: (u64, u64),
    whole_bytes: usize,
    confirmed: Option<u64>,
    errors_ns: Vec<u64>,
}

/// Plays a trial to its end.
fn play(scenario: &Scenario) -> Played {
    let facts: Vec<AgentFacts> = (0..scenario.agents).map(facts).collect();
    let shards = 2 * scenario.agents;
    let placed = placement::place(&facts.iter().collect::<Vec<_>>(), shards).unwrap();
    let mut bus = Bus::new(scenario.agents, scenario.seed, scenario.weather.clone());
    let ranks = || (0..).zip(&placed);
    let agents = ranks().map(|(rank, here)| Agent::new(rank, here.clone(), shards, &mut bus));
    let agents: Vec<Agent> = agents.collect();
    let hand = |rank| Hand { rank, book: ClockBook::default(), heard: 0 };
    let hands: Vec<Hand> = (0..scenario.agents).map(hand).collect();
    let names = hands.iter().map(Hand::name).collect();
    let mut world = World {
        now: 0,
        bus,
        hands,
        agents,
        control: Control::new(1, shards, SILENCE, names),
        clocks: None,
        epoch: 0,
        offsets: (0, 0),
        whole_bytes: 0,
        confirmed: None,
        errors_ns: Vec::new(),
    };
    (0..scenario.agents).for_each(|rank| world.bus.later(0, rank, Item::AskClock(0)));
    world.run_to(HIRED_NS);
    world.begin();
    while !world.control.is_over(true, world.trial_now()) {
        assert!(world.now < END_NS, "the trial does not end");
        world.run_to(world.now + TICK_NS);
        let since = world.now - world.epoch;
        if let Some((rank, _)) = scenario.death.filter(|(_, at)| since >= *at) {
            world.agents[rank as usize].is_dead = true;
        }
        world.control.stop(u8::from(scenario.stop.is_some_and(|at| since >= at)));
        world.look_around();
    }
    world.ended()
}

/// Hosts of different sizes.
fn facts(rank: u32) -> AgentFacts {
    let host = HostFacts { cores: 1 + rank % 4, ..HostFacts::default() };
    AgentFacts { host, descriptors: 1 << 20, ..AgentFacts::default() }
}

impl World {
    fn trial_now(&self) -> Nanos {
        Nanos(self.now - self.epoch)
    }

    /// Places the trial and hands out its parts.
    fn begin(&mut self) {
        self.epoch = self.now;
        let clocks = TrialClocks::place(&self.hands, self.now as i64, self.now as i64).unwrap();
        for (index, agent) in self.agents.iter_mut().enumerate() {
            agent.take(clocks.zero_ns(index), self.now);
            // Agents do not look at the same moment.
            let first = self.now + TICK_NS * index as u64 / self.hands.len() as u64;
            self.bus.later(first, agent.rank, Item::Look);
        }
        self.clocks = Some(clocks);
    }

    fn run_to(&mut self, until: u64) {
        while let Some((at, rank, item)) = self.bus.next(until) {
            self.now = at;
            self.happen(rank, item);
        }
        self.now = until;
    }

    fn happen(&mut self, rank: u32, item: Item) {
        let (now, trial_now) = (self.now, self.trial_now());
        let agent = &mut self.agents[rank as usize];
        let bus = &mut self.bus;
        match item {
            Item::AskClock(number) => {
                bus.send(now, rank, Item::ClockAsked(now as i64));
                let apart = if number < 16 { 25_000_000 } else { 200_000_000 };
                bus.later(now + apart, rank, Item::AskClock(number + 1));
            }
            Item::ClockAsked(sent) if !agent.is_dead => {
                let (reached, answered) = (agent.clock(now), agent.clock(now + 40_000));
                let exchange = Exchange { sent, reached, answered, received: 0 };
                bus.send(now + 40_000, rank, Item::ClockAnswered(exchange));
            }
            Item::ClockAnswered(exchange) => {
                let hand = &mut self.hands[rank as usize];
                hand.heard = now;
                hand.book.note(Exchange { received: now as i64, ..exchange });
            }
            Item::Look if !agent.is_dead => {
                if let Some(state) = agent.look(now) {
                    bus.send(now, rank, Item::State(Box::new(state)));
                }
                bus.later(now + TICK_NS, rank, Item::Look);
            }
            Item::Whole(whole) if !agent.is_dead => agent.hear(&whole, now),
            Item::Named(start) if !agent.is_dead => {
                let answer = Answer::Slack { ns: agent.name(start, now) };
                bus.send(now, rank, Item::NameAnswered(Ok(answer)));
            }
            Item::Confirmed(start) if !agent.is_dead => {
                agent.confirm(start, now);
                bus.send(now, rank, Item::ConfirmAnswered(Ok(Answer::Done)));
            }
            Item::State(state) => self.control.hear(*state),
            Item::NameAnswered(answer) => {
                if let Some(start) = self.control.take_named(rank, answer, trial_now) {
                    self.confirm(start);
                }
            }
            Item::ConfirmAnswered(answer) => self.control.take_confirmed(rank, answer, trial_now),
            // The agent is dead.
            Item::Look
            | Item::ClockAsked(_)
            | Item::Whole(_)
            | Item::Named(_)
            | Item::Confirmed(_) => {}
        }
    }

    fn confirm(&mut self, start: Start) {
        self.confirmed.get_or_insert(self.now);
        for rank in 0..self.hands.len() as u32 {
            self.bus.send(self.now, rank, Item::Confirmed(start));
        }
    }

    /// What the coordinator does every 10 ms.
    fn look_around(&mut self) {
        let now = self.trial_now();
        self.compare_offsets();
        let sighting = |hand: &Hand| Sighting {
            rank: hand.rank,
            silent: Nanos(self.now - hand.heard),
            is_disowned: false,
        };
        self.control.see_failures(self.hands.iter().map(sighting), now);
        if !self.control.is_ending() {
            if self.control.sums.start_ns.is_some() {
                self.control.let_go();
            }
            let trip = |hand: &Hand| Some(hand.book.at(self.now as i64)?.round_trip_ns);
            let longest = || Nanos(self.hands.iter().filter_map(trip).max().unwrap_or(0));
            if let Some(start) = self.control.name_start(longest, now) {
                for rank in 0..self.hands.len() as u32 {
                    self.bus.send(self.now, rank, Item::Named(start));
                    let silent = Item::NameAnswered(Err("it did not answer".to_owned()));
                    let patience = self.control.patience().as_nanos() as u64;
                    self.bus.later(self.now + patience, rank, silent);
                }
            }
        }
        if let Some(whole) = self.control.publish(now) {
            self.whole_bytes = self.whole_bytes.max(written(&whole).len());
            let whole = Rc::new(whole);
            for rank in 0..self.hands.len() as u32 {
                self.bus.send(self.now, rank, Item::Whole(Rc::clone(&whole)));
            }
        }
    }

    /// Compares what is known of some clocks with the truth.
    fn compare_offsets(&mut self) {
        let step = (self.now / TICK_NS) as usize;
        for hand in self.hands.iter().skip(step % 50).step_by(50) {
            let known = hand.book.at(self.now as i64).unwrap();
            let truth = self.agents[hand.rank as usize].clock(self.now) - self.now as i64;
            let is_within = known.offset_ns.abs_diff(truth) <= known.bound_ns;
            self.offsets.0 += 1;
            self.offsets.1 += u64::from(!is_within);
        }
    }

    fn ended(mut self) -> Played {
        // What was sent last arrives.
        self.run_to(self.now + 100 * TICK_NS);
        let start = self.control.sums.start_ns;
        if let (Some(start), Some(clocks)) = (start, &mut self.clocks) {
            self.errors_ns = clocks.errors_at(&self.hands, Nanos(start));
        }
        let heard = self.agents.iter().filter_map(|agent| agent.confirmed).max();
        Played {
            result: self.control.ended().0,
            start: start.map(|start| self.epoch + start),
            skew_bound_ns: skew_bound(&self.errors_ns),
            errors_ns: self.errors_ns,
            offsets: self.offsets,
            messages: self.bus.sent,
            lasted_ns: self.now - self.epoch,
            whole_bytes: self.whole_bytes,
            round_ns: heard.zip(self.confirmed).map_or(0, |(heard, sent)| heard - sent),
            agents: self.agents,
        }
    }
}

const TICK_NS: u64 = 10_000_000;
const HIRED_NS: u64 = 1_500_000_000;
const END_NS: u64 = 120_000_000_000;
const SILENCE: Duration = Duration::from_secs(10);
