//! Whole trials in the simulated world, with servers of all manners. Every trial is also held to
//! few steps: a shard that asks for a moment that has passed spins, and would show here.

mod bodies;
mod bus;
mod due_times;
mod fleet;
mod joining;
mod late;
mod opening;
mod overload;
mod parcel;
mod repeating;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use weigh_model::body::{Composer, widest_mark};
use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::message::{LossCause, MessageState};
use weigh_model::protocol::{Dial, Lifetime, Transport};
use weigh_model::units::Bytes;
use weigh_model::{Load, Topology, Trial, Warning, Writes};

use super::*;
use crate::generator::{Generator, TrialObserver};
use crate::io::sim::{Link as Way, Party, SimIo, World};
use crate::link::Link;
use crate::message_log::{Heard, MessageLog};
use crate::message_rows::MessageRows;
use crate::outcome::Outcome;
use crate::rendezvous::Rendezvous;
use crate::rendezvous::one_process::OneProcess;
use crate::serving::{Serving, SimulatedServing};
use parcel::{Manner, Parcels};

/// A trial to be: what the server is like, what is asked of it.
struct Scene {
    load: Load,
    manner: Manner,
    lifetime: Lifetime,
    confirms: bool,
    shards: u32,
    refused_seat: Option<u32>,
    way: Way,
    /// Connects are refused from the one moment to the other.
    refuse: Option<(Nanos, Nanos)>,
    /// Times at which the trial is asked to stop.
    stops: Vec<Nanos>,
    is_metered: bool,
    may_be_cut_off: bool,
    times_its_handshake: bool,
}

/// Result of a trial.
struct Played {
    outcome: Result<Outcome, Failure>,
    steps: u64,
    ended: Nanos,
    connections: u64,
    is_over: bool,
    heard: Receiver<Heard>,
    intervals: Vec<ShardInterval>,
    /// See [`Player::waiting_max`], of the first shard.
    waiting_max: (usize, usize),
}

fn scene(manner: Manner) -> Scene {
    Scene {
        load: Load {
            messages: Some(200),
            size: Some(Bytes(64)),
            timeout: Nanos::from_secs(1),
            ..Load::closed(Pattern::Request, 4)
        },
        manner,
        lifetime: Lifetime::Kept,
        confirms: true,
        shards: 1,
        refused_seat: None,
        way: Way { delay: Nanos::from_micros(50), ..Way::default() },
        refuse: None,
        stops: Vec::new(),
        is_metered: false,
        may_be_cut_off: false,
        times_its_handshake: false,
    }
}

impl Scene {
    fn job(&self, address: SocketAddr, messages: Option<Arc<MessageLog>>) -> Arc<Job> {
        self.job_of(address, messages, Arc::new(OneProcess::new(self.shards)))
    }

    fn job_of(
        &self,
        address: SocketAddr,
        messages: Option<Arc<MessageLog>>,
        rendezvous: Arc<dyn Rendezvous>,
    ) -> Arc<Job> {
        let (confirms, refused_seat) = (self.confirms, self.refused_seat);
        let times_its_handshake = self.times_its_handshake;
        let largest = widest_mark(self.load.connections, 1_000_000);
        let size = self.load.size;
        Arc::new(Job {
            trial: Trial {
                id: String::new(),
                point: Default::default(),
                repetition: 0,
                seed: 77,
                protocol: "parcel".to_owned(),
                target: "reference".to_owned(),
                endpoint: None,
                load: self.load.clone(),
                settings: Default::default(),
            },
            dial: Dial {
                transport: Transport::Stream,
                lifetime: self.lifetime,
                confirms,
                is_answered: false,
                producer_of: None,
                make: Box::new(move |seat| {
                    let own = Parcels::new(seat, confirms, refused_seat);
                    Box::new(Parcels { times_its_handshake, ..own })
                }),
            },
            composer: Composer::new(&self.load.body, b"", size, &largest, 0).unwrap(),
            object: None,
            address,
            sources: Vec::new(),
            consumers: None,
            trace: Vec::new(),
            shards: self.shards,
            every: Nanos::from_millis(100),
            messages,
            is_metered: self.is_metered,
            may_be_cut_off: self.may_be_cut_off,
            rendezvous,
        })
    }

    /// Plays it in the simulated world, for a minute at most.
    fn play(&self) -> Played {
        let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut world = World::new(3);
        world.link(on, self.way);
        let server = SimulatedServing::start(&parcel::host(self.manner), on, world.party());
        let mut server = server.unwrap();
        if let Some((from, until)) = self.refuse {
            world.refuse(on, from, until);
        }
        let (log, heard) = MessageLog::new();
        let job = self.job(on, Some(Arc::new(log)));
        let mut players: Vec<Player> = (0..self.shards)
            .map(|index| Player::new(&job, index, world.party(), self.stops.clone()))
            .collect();
        let mut parties: Vec<&mut dyn Party> = vec![&mut server];
        parties.extend(players.iter_mut().map(|player| player as &mut dyn Party));
        world.run(&mut parties, Nanos::from_secs(60));
        let waiting_max = players[0].waiting_max;
        let steps = players.iter().map(|player| player.steps).sum();
        let is_over = players.iter().all(|player| player.shard.phase() == Phase::Done);
        let told = players.iter().flat_map(|player| player.told.try_iter());
        let intervals = told.collect();
        let shards: Vec<_> = players.into_iter().map(|player| player.shard.outcome()).collect();
        let outcome = match shards.iter().find_map(|shard| shard.failure.clone()) {
            Some(failure) => Err(failure),
            None => Ok(Outcome::merge(shards, &self.load, self.confirms, true)),
        };
        let connections = server.report().server.connections;
        let ended = world.now();
        Played { outcome, steps, ended, connections, is_over, heard, intervals, waiting_max }
    }

    /// Plays it to its end and checks what must hold in every case.
    fn played(&self) -> (Outcome, Played) {
        let mut played = self.play();
        assert!(played.is_over, "not over at {}", played.ended);
        let outcome = std::mem::replace(&mut played.outcome, Err(Failure::Ourselves("".into())));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ledger.contradiction(), None);
        self.check_rows(&outcome, &played);
        let told: u64 = played.intervals.iter().map(|told| told.interval.sent).sum();
        let warmups = outcome.shards.accounts.producers.iter().map(|account| account.warmup_sent);
        assert_eq!(told, outcome.shards.recorder.lags.all.count() + warmups.sum::<u64>());
        (outcome, played)
    }
}

impl Scene {
    /// Checks that the record of single messages, put together, equals the ledger.
    fn check_rows(&self, outcome: &Outcome, played: &Played) {
        let mut rows = Vec::new();
        let mut making = MessageRows::new(&self.load, self.confirms);
        while let Ok(Heard::Events(events)) = played.heard.try_recv() {
            events.into_iter().for_each(|event| making.hear(event, &mut |row| rows.push(*row)));
        }
        let unsettled = making.finish(&outcome.shards.accounts, &mut |row| rows.push(*row));
        let count = |state| rows.iter().filter(|row| row.state == state).count() as u64;
        let ledger = &outcome.ledger;
        assert_eq!((unsettled, rows.len() as u64), (0, ledger.scheduled));
        assert_eq!(count(MessageState::NotSent), ledger.not_sent);
        if let (Some(delivered), Some(lost)) = (ledger.delivered, ledger.lost) {
            assert_eq!((count(MessageState::Delivered), count(MessageState::Sent)), (delivered, 0));
            assert_eq!(count(MessageState::Late), ledger.late);
            assert_eq!(count(MessageState::Lost) + count(MessageState::Error), lost);
        } else {
            assert_eq!(count(MessageState::Sent), ledger.sent);
        }
        let mut causes = std::collections::BTreeMap::new();
        for row in &rows {
            if let Some(LossCause::Lost(cause)) = row.cause {
                *causes.entry(cause).or_default() += 1;
            }
            assert!(row.sent_ns >= row.due_ns, "{row:?}");
            assert!(row.delivered_ns.is_none_or(|at| Some(at) >= row.sent_ns), "{row:?}");
            assert!(row.confirmed_ns.is_none_or(|at| Some(at) >= row.sent_ns), "{row:?}");
        }
        assert_eq!(causes, ledger.causes);
    }
}

/// A shard in the world.
struct Player {
    shard: Shard,
    io: SimIo,
    job: Arc<Job>,
    stops: Vec<Nanos>,
    steps: u64,
    told: Receiver<ShardInterval>,
    /// Messages that waited in memory at once at most, and by how many a step let them grow.
    waiting_max: (usize, usize),
}

impl Player {
    fn new(job: &Arc<Job>, index: u32, io: SimIo, stops: Vec<Nanos>) -> Player {
        let (observer, told) = channel();
        let progress = move |progress| {
            if let Progress::Interval(interval) = progress {
                observer.send(*interval).unwrap();
            }
        };
        let shard = Shard::new(Arc::clone(job), index, Box::new(progress));
        Player { shard, io, job: Arc::clone(job), stops, steps: 0, told, waiting_max: (0, 0) }
    }
}

impl Party for Player {
    fn step(&mut self) -> bool {
        self.steps += 1;
        while self.stops.first().is_some_and(|at| *at <= self.io.now()) {
            self.stops.remove(0);
            self.job.rendezvous.orders().stop();
        }
        let before = overload::waiting(&self.shard);
        let goes_on = self.shard.step(&mut self.io);
        let after = overload::waiting(&self.shard);
        let (most, growth) = self.waiting_max;
        self.waiting_max = (most.max(after), growth.max(after.saturating_sub(before)));
        goes_on
    }
}

#[test]
fn a_closed_loop_by_count_sends_exactly_its_count() {
    for (in_pieces, shards, size) in [(false, 1, 64), (true, 1, 5_000), (false, 3, 64)] {
        let mut scene = scene(Manner::Answers);
        scene.way.in_pieces = in_pieces;
        scene.shards = shards;
        scene.load.size = Some(Bytes(size));
        let (outcome, played) = scene.played();
        assert_eq!((outcome.ledger.sent, outcome.ledger.delivered), (200, Some(200)));
        assert_eq!(
            (outcome.shards.lost_links, outcome.shards.opened, outcome.shards.held),
            (0, 4, 4)
        );
        assert!(in_pieces || played.steps < 1_500, "{} steps", played.steps);
    }
}

#[test]
fn announced_closes_cost_no_message() {
    let (outcome, played) = scene(Manner::ClosesEvery(7)).played();
    assert_eq!((outcome.ledger.delivered, outcome.shards.lost_links), (Some(200), 0));
    assert!(outcome.shards.opened >= 200 / 7, "{}", outcome.shards.opened);
    assert!(played.steps < 3_000, "{} steps", played.steps);
}

#[test]
fn a_window_does_not_outlive_an_announced_close() {
    let mut scene = scene(Manner::ClosesEvery(7));
    scene.load.window = Some(4);
    let (outcome, _) = scene.played();
    let ledger = &outcome.ledger;
    assert_eq!(ledger.sent, 200);
    let closed = ledger.causes.get(&Cause::ConnectionClosed).copied();
    assert_eq!(ledger.delivered.unwrap() + closed.unwrap_or(0), 200);
}

#[test]
fn one_connection_for_each_message() {
    for manner in [Manner::Answers, Manner::AnswersByClosing, Manner::ClosesEvery(1)] {
        let mut scene = scene(manner);
        scene.lifetime = Lifetime::PerMessage;
        scene.load.pattern = Pattern::Session;
        let (outcome, played) = scene.played();
        assert_eq!(outcome.ledger.delivered, Some(200), "{manner:?}");
        assert_eq!((played.connections, outcome.shards.lost_links), (200, 0), "{manner:?}");
        assert!(played.steps < 5_000, "{} steps", played.steps);
    }
}

/// One client without pauses, on a path of 100 ms: three sessions take three response times, the
/// opening of the first included, so their rate is the inverse of one.
#[test]
fn the_rate_of_sessions_counts_the_opening_of_the_first() {
    let mut scene = scene(Manner::Answers);
    scene.lifetime = Lifetime::PerMessage;
    scene.load.pattern = Pattern::Session;
    (scene.load.connections, scene.load.messages) = (1, Some(3));
    scene.way.delay = Nanos::from_millis(50);
    let (outcome, _) = scene.played();
    let response_s = outcome.shards.recorder.response.max().unwrap() as f64 / 1e9;
    let rate = outcome.metrics(&scene.load)["throughput_in_per_s"] * response_s;
    assert!(response_s > 0.1 && (0.9..=1.01).contains(&rate), "{rate} of {response_s} s");
}

#[test]
fn unconfirmed_messages_fill_small_buffers_and_all_arrive() {
    for lifetime in [Lifetime::Kept, Lifetime::PerMessage] {
        let mut scene = scene(Manner::Answers);
        scene.confirms = false;
        scene.lifetime = lifetime;
        scene.load.pattern = Pattern::Publish;
        scene.load.size = Some(Bytes(3_000));
        scene.way.buffer_bytes = 1_000;
        let (outcome, _) = scene.played();
        assert_eq!((outcome.ledger.sent, outcome.ledger.not_sent), (200, 0));
        assert_eq!(outcome.shards.lost_links, 0);
    }
}

#[test]
fn resets_are_booked_and_the_count_is_reached() {
    let (outcome, played) = scene(Manner::ResetsAfter(5)).played();
    let ledger = &outcome.ledger;
    assert_eq!(ledger.sent, 200);
    let closed = ledger.causes[&Cause::ConnectionClosed];
    assert_eq!(ledger.delivered.unwrap() + closed, 200);
    assert_eq!((closed, outcome.shards.lost_links), (40, 40));
    assert!(played.steps < 5_000, "{} steps", played.steps);
}

#[test]
fn error_answers_end_their_messages() {
    let (outcome, _) = scene(Manner::Refuses).played();
    assert_eq!(outcome.ledger.causes[&Cause::ErrorAnswer], 200);
    assert_eq!(outcome.shards.first_error, Some(500));
}

#[test]
fn a_server_that_stands_still_does_not_keep_a_count_for_ever() {
    // With full windows connections are given up and made again, which it still greets.
    for window in [1, 16] {
        let mut scene = scene(Manner::Silent);
        scene.load.messages = Some(5_000);
        scene.load.window = Some(window);
        let (outcome, played) = scene.played();
        let ledger = &outcome.ledger;
        assert!(ledger.causes[&Cause::Timeout] > 0 && ledger.not_sent > 0);
        assert_eq!(ledger.not_sent_causes.keys().collect::<Vec<_>>(), [&NotSentCause::WindowFull]);
        assert!(played.ended < Nanos::from_secs(10), "{}", played.ended);
        assert!(played.steps < 1_000, "{} steps", played.steps);
    }
}

/// Messages that are due and find no free window wait for Tmax after the end, asleep.
#[test]
fn a_backlog_at_the_end_is_awaited_without_spinning() {
    let mut scene = scene(Manner::Silent);
    scene.load.messages = None;
    scene.load.duration = Some(Nanos::from_secs(2));
    scene.load.arrival = Arrival::Constant;
    scene.load.rate = Some(weigh_model::units::parse_rate("100/s").unwrap());
    scene.load.window = Some(1);
    let (outcome, played) = scene.played();
    assert_eq!(outcome.ledger.messages, 200);
    assert!(played.steps < 1_500, "{} steps", played.steps);
}

#[test]
fn a_hold_sleeps() {
    let mut scene = scene(Manner::Answers);
    scene.load.pattern = Pattern::Hold;
    scene.load.messages = None;
    scene.load.connections = 300;
    scene.load.duration = Some(Nanos::from_secs(10));
    let (outcome, played) = scene.played();
    assert_eq!((outcome.shards.held, outcome.shards.lost_links), (300, 0));
    assert!(played.steps < 500, "{} steps", played.steps);
}

/// Packet capture changes how connections end, and no figure of the ledger.
#[test]
fn a_metered_trial_comes_to_the_same() {
    for lifetime in [Lifetime::Kept, Lifetime::PerMessage] {
        let mut scene = scene(Manner::Answers);
        scene.lifetime = lifetime;
        let (plain, _) = scene.played();
        scene.is_metered = true;
        let (metered, _) = scene.played();
        assert_eq!(plain.ledger, metered.ledger);
        assert_eq!(plain.shards.bytes, metered.shards.bytes);
        assert!(plain.shards.contents.is_none() && metered.shards.contents.is_some());
    }
}

/// Behind a path that lets nothing through a trial ends, and everything has its place.
#[test]
fn what_a_path_swallows_whole_is_not_sent() {
    let mut scene = scene(Manner::Answers);
    scene.way.delay = Nanos::from_secs(3_600);
    assert!(scene.play().outcome.is_err(), "without a path of ours the target is not there");
    scene.may_be_cut_off = true;
    for (lifetime, duration) in [
        (Lifetime::Kept, None),
        (Lifetime::Kept, Some(Nanos::from_secs(2))),
        (Lifetime::PerMessage, Some(Nanos::from_secs(2))),
    ] {
        scene.lifetime = lifetime;
        scene.load.duration = duration;
        scene.load.messages = duration.is_none().then_some(200);
        let played = scene.play();
        let outcome = played.outcome.unwrap();
        // By time, each of four connections had one message that was due.
        let due = if duration.is_none() { 200 } else { 4 };
        assert_eq!((outcome.ledger.scheduled, outcome.ledger.not_sent), (due, due));
        assert!(played.ended <= Nanos::from_secs(11), "{:?}", played.ended);
    }
}

/// A shard whose own deadline is long past waits for the others, asleep.
#[test]
fn shards_wait_for_each_other() {
    let mut scene = scene(Manner::Answers);
    scene.shards = 2;
    scene.load.connections = 2;
    scene.load.messages = Some(2);
    scene.load.arrival = Arrival::Ramp(Nanos::from_secs(20));
    let (outcome, played) = scene.played();
    assert_eq!(outcome.ledger.delivered, Some(2));
    assert!(played.ended > Nanos::from_secs(10));
    assert!(played.steps < 15_000, "{} steps", played.steps);
}

#[test]
fn the_failure_of_one_shard_ends_all() {
    let mut scene = scene(Manner::Answers);
    scene.shards = 2;
    scene.refused_seat = Some(1);
    let played = scene.play();
    assert!(played.is_over, "not over at {}", played.ended);
    assert!(matches!(played.outcome, Err(Failure::Session { .. })), "{:?}", played.outcome.err());
}

#[test]
fn a_trial_ends_though_its_subscriber_died() {
    let mut scene = scene(Manner::ResetsSubscribersAfter(50));
    scene.load.pattern = Pattern::Deliver;
    scene.load.subscribers = 1;
    let (outcome, played) = scene.played();
    let ledger = &outcome.ledger;
    assert_eq!(ledger.sent, 200);
    let lost = ledger.causes[&Cause::SubscriberDisconnected];
    assert_eq!(ledger.delivered.unwrap() + lost, 200);
    assert!(lost >= 150 && played.ended < Nanos::from_secs(5));
}

#[test]
fn delivery_ends_the_messages_that_nobody_confirms() {
    for topology in [Topology::FanIn, Topology::FanOut, Topology::Pairs] {
        let mut scene = scene(Manner::Answers);
        scene.confirms = false;
        scene.load.pattern = Pattern::Deliver;
        scene.load.topology = topology;
        (scene.load.connections, scene.load.subscribers) = match topology {
            Topology::FanIn => (3, 1),
            Topology::FanOut => (1, 3),
            Topology::Pairs | Topology::Shared => (1, 1),
        };
        let (outcome, _) = scene.played();
        let copies = scene.load.copies();
        assert_eq!(outcome.ledger.delivered, Some(200 * copies), "{topology:?}");
    }
}

/// Answers that come between two due times wake the loop as well; that must not put off what is
/// due by more than the quantum.
#[test]
fn answers_do_not_delay_what_is_due() {
    let mut scene = scene(Manner::Answers);
    scene.load.connections = 64;
    scene.load.messages = Some(20_000);
    scene.load.arrival = Arrival::Constant;
    scene.load.rate = Some(weigh_model::units::parse_rate("50k/s").unwrap());
    let (outcome, _) = scene.played();
    assert_eq!(outcome.ledger.delivered, Some(20_000));
    assert!(outcome.shards.recorder.lags.all.max() <= Some(QUANTUM.0));
}

#[test]
fn the_first_stop_finishes_the_record_and_the_second_ends_it() {
    let second = Nanos::from_secs(1);
    let mut scene = scene(Manner::Answers);
    scene.load.messages = None;
    scene.load.duration = Some(Nanos::from_secs(30));
    scene.load.think = Nanos::from_millis(1);
    scene.stops = vec![second];
    let (outcome, played) = scene.played();
    assert!(outcome.shards.was_interrupted && played.ended < Nanos::from_millis(1_200));
    assert_eq!(outcome.ledger.delivered, Some(outcome.ledger.sent));
    scene.manner = Manner::Silent;
    scene.load.timeout = Nanos::from_secs(20);
    scene.stops = vec![second, second + Nanos::from_millis(300)];
    let (outcome, played) = scene.played();
    assert!(outcome.shards.was_interrupted && played.ended < Nanos::from_millis(1_500));
}

/// Intervals of two shards end at the same moments, one of them where warm-up does, and their
/// reports add up to the whole.
#[test]
fn intervals_end_at_the_same_moments() {
    let mut scene = scene(Manner::Answers);
    scene.shards = 2;
    scene.load.messages = None;
    (scene.load.warmup, scene.load.duration) = (Nanos::from_millis(250), Some(Nanos::from_secs(1)));
    scene.load.arrival = Arrival::Constant;
    scene.load.rate = Some(weigh_model::units::parse_rate("2k/s").unwrap());
    let (outcome, played) = scene.played();
    let of = |shard: usize| -> Vec<(u64, bool)> {
        let all = played.intervals.chunk_by(|a, b| a.border < b.border).nth(shard).unwrap();
        let border =
            |told: &ShardInterval| (told.border - outcome.shards.measure_from).0 / 1_000_000;
        all.iter().map(|told| (border(told), told.interval.warmup)).collect()
    };
    assert_eq!(of(0), of(1));
    let measured: Vec<(u64, bool)> = (1..=10).map(|tenth| (tenth * 100, false)).collect();
    assert_eq!(of(0)[..3], [(0, true), (0, true), (0, true)]);
    assert_eq!(of(0)[3..13], measured);
    let middle = &played.intervals[7];
    assert_eq!((middle.interval.sent, middle.interval.acknowledged), (100, 100));
    let mut told = middle.interval.clone();
    middle.times.tell(&mut told);
    // Two ways of 50 µs each, at most a quantum late.
    let p99 = told.response_time_ns_p99.unwrap();
    assert!((100_000..=202_000).contains(&p99), "{p99}");
}

/// Runs the same trials on real sockets, in one thread and in two.
#[test]
fn real_sockets_tell_the_same() {
    struct Nobody;
    impl TrialObserver for Nobody {
        fn progress(&self, _: u32, _: Progress) {}
    }
    for (manner, lifetime, shards) in [
        (Manner::Answers, Lifetime::Kept, 1),
        (Manner::Answers, Lifetime::PerMessage, 2),
        (Manner::ClosesEvery(9), Lifetime::Kept, 2),
        (Manner::AnswersByClosing, Lifetime::PerMessage, 1),
    ] {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = Serving::start(&parcel::host(manner), any, 1).unwrap();
        let mut scene = scene(manner);
        scene.shards = shards;
        scene.lifetime = lifetime;
        scene.load.timeout = Nanos::from_secs(20);
        let nobody: Arc<dyn TrialObserver> = Arc::new(Nobody);
        let job = scene.job(serving.address(), None);
        let generator = Generator::start(job, 0..shards, Instant::now(), &nobody).unwrap();
        let outcome = generator.finish().unwrap();
        assert_eq!(outcome.ledger.delivered, Some(200), "{manner:?}");
        assert_eq!(outcome.shards.lost_links, 0, "{manner:?} {:?}", outcome.shards.first_loss);
        serving.stop();
    }
}

/// An idle connection is a link, an account and a state machine, and little else.
#[test]
fn a_connection_is_small() {
    let account = size_of::<crate::accounts::ProducerAccount>();
    assert!(size_of::<Link>() + account <= 256, "{} + {account}", size_of::<Link>());
}
