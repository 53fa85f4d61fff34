use std::collections::BTreeMap;
use std::net::SocketAddr;

use proptest::prelude::*;
use weigh_model::content::StreamCounts;
use weigh_model::event::Interval;
use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::mark::{Mark, Reading};
use weigh_model::protocol::Role;
use weigh_model::tally::Tally;
use weigh_model::{Load, Nanos, Pattern};
use weigh_stats::random::Random;

use super::*;
use crate::accounts::{Accounts, ConsumerAccount, ProducerAccount};
use crate::contents::{ConnectionContent, Contents};
use crate::interval_times::IntervalTimes;
use crate::outcome::Outcome;
use crate::recorder::{Recorder, Sending};
use crate::regroupings::Regroupings;
use crate::window::Window;

/// Random values, as long as they can stand together.
struct Making(Random);

impl Making {
    fn number(&mut self) -> u64 {
        let bits = self.0.below(40);
        self.0.below(1 << bits)
    }

    fn time(&mut self) -> Nanos {
        Nanos(self.number())
    }

    fn some<T>(&mut self, of: impl Fn(&mut Making) -> T) -> Option<T> {
        (self.0.below(2) == 0).then(|| of(self))
    }

    fn text(&mut self) -> String {
        (0..self.0.below(20)).map(|_| char::from(b'a' + self.0.below(26) as u8)).collect()
    }

    fn producer(&mut self, index: u32) -> ProducerAccount {
        let mut account = ProducerAccount { index, ..ProducerAccount::default() };
        for number in 0..self.0.below(3_000) {
            account.hand_over(self.time());
            match self.0.below(50) {
                0 => account.fail(number, Cause::Timeout, true),
                1 => account.fail(number, Cause::ConnectionClosed, true),
                2 => account.cut.push(number..number + 7),
                lot => account.confirm(number, lot == 3, true),
            }
        }
        account.last_confirmed = self.some(Making::time);
        account
    }

    fn consumer(&mut self, index: u32, producers: u32) -> ConsumerAccount {
        let mut tally = Tally::default();
        // Beyond one block of the set, which is then complete or not.
        let (from, count) = (self.0.below(2), self.0.below(40_000));
        for sequence in from..count {
            tally.note(Reading::Whole(self.mark(0, sequence)), sequence % 91 == 0);
        }
        for _ in 0..self.0.below(200) {
            let (producer, sequence) = (self.0.below(u64::from(producers)) as u32, self.number());
            let mark = self.mark(producer, sequence % 1_000_000);
            tally.note(
                match self.0.below(9) {
                    0 => Reading::Foreign,
                    1 => Reading::Corrupt(None),
                    2 => Reading::Corrupt(Some(mark)),
                    _ => Reading::Whole(mark),
                },
                false,
            );
        }
        ConsumerAccount {
            index,
            tally,
            last_arrived: self.some(Making::time),
            last_heard: self.some(Making::time),
            was_disconnected: self.0.below(2) == 0,
            was_behind: self.0.below(2) == 0,
        }
    }

    fn mark(&mut self, producer: u32, sequence: u64) -> Mark {
        let (due, lag, own_lag) = (self.time(), Nanos(0), Nanos(0));
        let warmup = self.0.below(100) == 0;
        Mark { tag: 1, warmup, producer, sequence, due, lag, own_lag }
    }

    fn recorder(&mut self) -> Recorder {
        let mut recorder = Recorder::new(self.0.below(2) == 0);
        let window = Window { begin: Nanos::from_millis(1), end: Nanos::from_secs(9) };
        recorder.window.prepare(self.some(|_| window), Nanos::from_secs(1));
        recorder.window.open(self.time());
        for _ in 0..self.0.below(300) {
            let (due, warmup) = (self.time(), self.0.below(5) == 0);
            let (sent, now) = (due + self.time(), due + self.time() + self.time());
            let sending = Sending { due, sent, own_lag: Nanos(self.0.below(90)) };
            recorder.sent(due, sent, warmup, self.0.below(9) == 0);
            recorder.window.end_turn(now);
            match self.0.below(9) {
                0 => recorder.refused(due, sent, now, warmup),
                1..4 => recorder.delivered(sending, now, warmup),
                4 => recorder.late(now),
                5 => recorder.polls.delivered(due, sent, now, now),
                6 => recorder.connect.record(now.0),
                _ => recorder.confirmed(sending, now, warmup),
            }
        }
        recorder.settle();
        // Reported before: what is left of it is not handed over.
        recorder.take_interval(Nanos(0), false, 0);
        recorder
    }

    fn contents(&mut self) -> Contents {
        let mut contents = Contents::default();
        for index in 0..self.0.below(20) as u32 {
            let mut counts = StreamCounts::default();
            counts.sent.messages.payload = self.number();
            counts.received.set_up.protocol = self.number();
            let address = SocketAddr::from(([127, 0, 0, 1], self.0.below(60_000) as u16));
            let (local, opened_at) = (self.some(|_| address), self.time());
            contents.note(ConnectionContent {
                local,
                role: Role::Producer,
                index,
                opened_at,
                counts,
            });
        }
        contents
    }

    fn failure(&mut self) -> Failure {
        let address = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 1883));
        match self.0.below(4) {
            0 => Failure::Unreachable { address, reason: self.text() },
            1 => Failure::Session { address, reason: self.text() },
            2 => Failure::Ourselves(self.text()),
            _ => Failure::Lost(self.text()),
        }
    }

    fn outcome(&mut self, shard: u32) -> ShardOutcome {
        let producers = 1 + self.0.below(4) as u32;
        let mut accounts = Accounts {
            producers: (0..producers).map(|own| self.producer(own * 2 + shard)).collect(),
            consumers: (0..self.0.below(4) as u32).map(|own| self.consumer(own, 9)).collect(),
            not_sent: BTreeMap::from([(NotSentCause::WindowFull, self.number())]),
            sent_again: self.0.below(9),
            queue_drops: self.0.below(3),
            uncut_sockets: self.0.below(3),
            identity_bytes: 0,
            regroupings: Regroupings { times: self.0.below(9), pause_max: self.time() },
        };
        accounts.close();
        ShardOutcome {
            accounts,
            recorder: self.recorder(),
            granted: BTreeMap::from([(self.text(), self.number()), (self.text(), 7)]),
            opened: self.number(),
            held: self.number(),
            alive: SignsOfLife { sent: self.number(), answered: 2, in_window: 1 },
            set_up: self.some(|own| (own.time(), own.time())),
            lost_links: self.number(),
            first_loss: self.some(Making::text),
            first_error: self.some(|own| own.0.below(600) as u16),
            first_refusal: self.some(|_| 503),
            object_fault: self.some(Making::text),
            was_interrupted: self.0.below(2) == 0,
            measure_from: self.some(Making::time).unwrap_or(Nanos::NEVER),
            ended: self.time(),
            cpu: self.time(),
            window_cpu: self.time(),
            bytes: (self.number(), self.number()),
            contents: self.some(Making::contents),
            failure: None,
        }
    }
}

fn outcome(seed: u64, shard: u32) -> ShardOutcome {
    Making(Random::stream(seed, u64::from(shard))).outcome(shard)
}

/// What a merge says, in so far as it can be compared.
fn said(shards: Vec<ShardOutcome>, load: &Load) -> String {
    let merged = Outcome::merge(shards, load, true, true);
    let Outcome { shards, ledger, cpu_max, window_cpu_max, .. } = &merged;
    let seen = (merged.delivered_within, merged.after, merged.delivered_since, merged.ledger_bytes);
    let cost = (cpu_max, window_cpu_max);
    format!("{ledger:?} {cost:?} {seen:?} {:?} {:?}", merged.metrics(load), shards.to_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn outcomes_come_back_equal_and_merge_to_the_same(seed: u64) {
        let parts: Vec<ShardOutcome> = (0..3).map(|shard| outcome(seed, shard)).collect();
        let read: Result<Vec<ShardOutcome>, Unreadable> =
            parts.iter().map(|part| ShardOutcome::from_bytes(&part.to_bytes())).collect();
        let read = read.unwrap();
        for (part, read) in parts.iter().zip(&read) {
            prop_assert_eq!(part.to_bytes(), read.to_bytes());
            prop_assert_eq!(&part.accounts, &read.accounts);
        }
        let load = Load { subscribers: 3, ..Load::closed(Pattern::Deliver, 9) };
        prop_assert_eq!(said(parts, &load), said(read, &load));
    }

    #[test]
    fn failures_come_back(seed: u64) {
        let failure = Some(Making(Random::new(seed)).failure());
        let part = ShardOutcome { failure, ..ShardOutcome::default() };
        prop_assert_eq!(ShardOutcome::from_bytes(&part.to_bytes()), Ok(part));
    }

    /// A cut or a flipped bit is noticed by the check value; below it, bytes that are not what was
    /// written make an error or another outcome.
    #[test]
    fn what_is_cut_or_flipped_is_an_error_and_no_panic(
        seed: u64,
        places in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let bytes = outcome(seed, 0).to_bytes();
        for place in places {
            let at = place.index(bytes.len());
            prop_assert!(ShardOutcome::from_bytes(&bytes[..at]).is_err());
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (seed % 8);
            prop_assert!(ShardOutcome::from_bytes(&flipped).is_err());
            let _ = ShardOutcome::take(&mut Reader::new(&flipped[6..]));
            let cut = ShardOutcome::take(&mut Reader::new(&bytes[6..bytes.len() - 4][..at / 2]));
            prop_assert!(cut.is_err());
        }
    }
}

#[test]
fn every_cut_of_a_short_outcome_is_an_error() {
    let bytes = ShardOutcome::default().to_bytes();
    assert!(bytes.len() < 200, "{}", bytes.len());
    assert!((0..bytes.len()).all(|end| ShardOutcome::from_bytes(&bytes[..end]).is_err()));
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(ShardOutcome::from_bytes(&flipped).is_err(), "bit {bit}");
    }
    assert_eq!(ShardOutcome::from_bytes(&bytes), Ok(ShardOutcome::default()));
}

#[test]
fn another_form_is_named() {
    let mut bytes = ShardOutcome::default().to_bytes();
    bytes[4] += 1;
    let error = ShardOutcome::from_bytes(&bytes).unwrap_err();
    assert_eq!(error, Unreadable::Form { found: FORM + 1, expected: FORM });
    assert!(error.to_string().contains("use the same version"), "{error}");
}

#[test]
fn intervals_come_back_equal() {
    let mut times = IntervalTimes::default();
    (1..2_000_u64).for_each(|us| times.responded(us * us * 1_000));
    (1..300).for_each(|lag| times.sent(lag));
    let interval = Interval {
        trial: "a-1".to_owned(),
        sent: 7,
        length_ns: Some(100),
        target_cpu_percent: Some(12.5),
        ..Interval::default()
    };
    let told = ShardInterval { interval, border: Nanos(9), times, cpu: Nanos::from_millis(3) };
    let bytes = told.to_bytes();
    assert_eq!(ShardInterval::from_bytes(&bytes), Ok(told));
    assert!((0..bytes.len()).all(|end| ShardInterval::from_bytes(&bytes[..end]).is_err()));
}

/// Consumers in pairs hear one producer each: twice as many pairs take twice as many bytes.
#[test]
fn outcomes_grow_with_the_number_of_pairs() {
    let of = |pairs: u32| {
        let consumer = |index| {
            let mut making = Making(Random::new(u64::from(index)));
            let mut tally = Tally::default();
            for sequence in 0..50 {
                tally.note(Reading::Whole(making.mark(index, sequence)), false);
            }
            ConsumerAccount { index, tally, ..ConsumerAccount::default() }
        };
        let consumers = (0..pairs).map(consumer).collect();
        let accounts = Accounts { consumers, ..Accounts::default() };
        let part = ShardOutcome { accounts, ..ShardOutcome::default() };
        let bytes = part.to_bytes();
        assert_eq!(ShardOutcome::from_bytes(&bytes), Ok(part));
        bytes.len()
    };
    let (few, many) = (of(1_000), of(2_000));
    assert!(many < 2 * few + 1_000 && many < 100_000, "{few} and {many} bytes");
}

/// The form of one outcome, as a check value: if a field is added, moved or written otherwise,
/// raise [`FORM`] and enter the new value here.
#[test]
fn a_new_form_has_a_new_number() {
    let mut outcome = outcome(1, 0);
    // Memory differs between versions of the compiler.
    outcome.accounts.identity_bytes = 0;
    let bytes = outcome.to_bytes();
    let check = u32::from_le_bytes(*bytes.last_chunk().unwrap());
    assert_eq!((FORM, check), (7, 3_277_144_964));
}
