//! Follows a running trial: reports of its shards become ticks for the watcher, and intervals for
//! the run's record. An interval is written as soon as it is complete.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use weigh_engine::job::Progress;
use weigh_model::event::Interval;

use crate::exit::Stop;
use crate::trial::news::{TrialNews, Watched};
use crate::trial::series::Series;
use crate::trial::ticks::{Tick, Ticks};
use crate::watcher::Watcher;

/// A running trial.
pub struct Live<'l> {
    /// Its id.
    pub trial: String,
    /// Receives its progress.
    pub watcher: &'l dyn Watcher,
    /// Receives its intervals, each when it is complete.
    pub sink: &'l mut Sink<'l>,
    /// The shards' reports.
    pub ticks: Ticks,
    /// Its intervals.
    pub series: Series,
    /// Connections that are opened before the load begins; 0 if some join later.
    pub connections: u64,
}

/// Accepts an interval, or returns why it cannot be written.
pub type Sink<'l> = dyn FnMut(Interval) -> Result<(), Stop> + Send + 'l;

/// Results of following a trial.
#[derive(Default)]
pub struct Heard {
    /// Its intervals.
    pub intervals: Vec<Interval>,
    /// Reason for which one of them could not be written.
    pub unwritten: Option<Stop>,
}

impl Live<'_> {
    /// Follows the trial until nothing reports any more.
    pub fn follow(self, news: &Receiver<TrialNews>) -> Heard {
        let mut following = Following {
            live: self,
            opened: BTreeMap::new(),
            watched: None,
            waiting: VecDeque::new(),
            heard: Heard::default(),
        };
        following.hear(news);
        following.heard
    }
}

struct Following<'l> {
    live: Live<'l>,
    /// By shard: open connections, and their final number.
    opened: BTreeMap<u32, (u64, u64)>,
    watched: Option<Watched>,
    /// Intervals that wait for samples of the target.
    waiting: VecDeque<Interval>,
    heard: Heard,
}

impl Following<'_> {
    fn hear(&mut self, news: &Receiver<TrialNews>) {
        loop {
            let heard = match self.waiting.is_empty() {
                true => news.recv().map_err(RecvTimeoutError::from),
                false => news.recv_timeout(LOOK_EVERY),
            };
            match heard {
                Ok(news) => self.take(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.write_known();
        }
        let rest: Vec<Tick> = self.live.ticks.rest().collect();
        rest.into_iter().for_each(|tick| self.live.series.add(tick));
        self.live.series.end();
        self.waiting.extend(std::iter::from_fn(|| self.live.series.next_known()));
        while let Some(mut interval) = self.waiting.pop_front() {
            if let Some(watched) = &self.watched {
                watched.tell(&mut interval);
            }
            self.write(interval);
        }
    }

    fn take(&mut self, news: TrialNews) {
        let live = &mut self.live;
        match news {
            TrialNews::Target(watched) => self.watched = Some(watched),
            TrialNews::Shard(shard, Progress::Opening(open, all)) => {
                self.opened.insert(shard, (open, all));
                let sum = |of: fn(&(u64, u64)) -> u64| self.opened.values().map(of).sum();
                // A shard that is done at once reports nothing, and is in the whole all the same.
                live.watcher.opening(sum(|own| own.0), sum(|own| own.1).max(live.connections));
            }
            TrialNews::Shard(shard, Progress::Interval(own)) => live.ticks.add(shard, *own),
            TrialNews::Shard(shard, Progress::Settled) => live.ticks.settle(shard),
        }
        while let Some(tick) = live.ticks.next_complete() {
            live.watcher.tick(&tick);
            live.series.add(tick);
        }
        if live.ticks.are_over() {
            live.series.end();
        }
        while let Some(interval) = live.series.next_known() {
            self.waiting.push_back(interval);
        }
    }

    /// Writes the intervals for which the target's samples are complete.
    fn write_known(&mut self) {
        while let Some(mut interval) = self.waiting.pop_front() {
            if self.watched.as_ref().is_some_and(|watched| !watched.tell(&mut interval)) {
                return self.waiting.push_front(interval);
            }
            self.write(interval);
        }
    }

    /// Writes an interval. A failure does not end the trial, whose result is still valid.
    fn write(&mut self, mut interval: Interval) {
        interval.trial.clone_from(&self.live.trial);
        self.heard.intervals.push(interval.clone());
        if let Err(stop) = (self.live.sink)(interval)
            && self.heard.unwritten.is_none()
        {
            self.live
                .watcher
                .say(&format!("the trial continues without a complete record: {stop}"));
            self.heard.unwritten = Some(stop);
        }
    }
}

/// Interval at which the target's samples are checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;

    use weigh_model::{Load, Nanos, Pattern};
    use weigh_observe::cpu::{Accounting, HostCpu};
    use weigh_observe::memory::Memory;
    use weigh_observe::sampler::{Recording, Sample};

    use crate::exit::Exit;
    use crate::trial::news::SoFar;
    use crate::trial::ticks::tests::{EVERY, reported};
    use crate::watcher::Standing;

    /// Records the lines that it is given.
    #[derive(Default)]
    struct Words(Mutex<Vec<String>>);

    impl Words {
        fn add(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }
    }

    impl Watcher for Words {
        fn trial(&self, _: Standing) {}
        fn opening(&self, open: u64, all: u64) {
            self.add(format!("{open} of {all}"));
        }
        fn tick(&self, tick: &Tick) {
            self.add(format!("{} sent", tick.counts().sent));
        }
        fn trial_done(&self) {}
        fn say(&self, text: &str) {
            self.add(text.to_owned());
        }
        fn note(&self, _: &str) {}
    }

    /// Samples every tenth of a second, of a target that uses half of its core.
    fn watched(samples: u64) -> Recording {
        let sample = |number: u64| Sample {
            at_ns: number * EVERY,
            cpu_ns: number * EVERY / 2,
            processes: 1,
            threads: 1,
            memory: Memory { rss_bytes: 9, pss_bytes: None },
            host: HostCpu::default(),
        };
        Recording {
            samples: (0..samples).map(sample).collect(),
            cores: 1,
            accounting: Accounting::ProcessClock,
            own_cpu_ns: 0,
            gone_ns: None,
            period: Duration::from_nanos(EVERY),
        }
    }

    fn follow(news: Vec<TrialNews>, watcher: &Words, sink: &mut Sink<'_>) -> Heard {
        let load = Load::closed(Pattern::Request, 1);
        let (ticks, series) = (Ticks::new(2), Series::new(&load, Some(Nanos(EVERY))));
        let live = Live { trial: "t".to_owned(), watcher, sink, ticks, series, connections: 0 };
        let (sender, heard) = channel();
        news.into_iter().for_each(|own| sender.send(own).unwrap());
        drop(sender);
        live.follow(&heard)
    }

    fn of_both(number: u64) -> impl Iterator<Item = TrialNews> {
        let own = move |shard| {
            TrialNews::Shard(shard, Progress::Interval(Box::new(reported(number, false))))
        };
        [0, 1].into_iter().map(own)
    }

    /// The target is looked at less often than intervals end: each waits for the look behind it.
    #[test]
    fn an_interval_is_written_once_the_target_was_looked_at() {
        let looks = AtomicU64::new(5);
        let since = Box::new(move |_| SoFar::Seen(watched(looks.fetch_add(1, Ordering::Relaxed))));
        let target = TrialNews::Target(Watched { since, epoch_ns: 0, is_foreign: false });
        let news = [target].into_iter().chain((1..=6).flat_map(of_both)).collect();
        let (words, mut written) = (Words::default(), Vec::new());
        let mut sink = |interval: Interval| {
            written.push(interval);
            Ok(())
        };
        let heard = follow(news, &words, &mut sink);
        assert!(heard.unwritten.is_none() && heard.intervals == written);
        let ends: Vec<u64> = written.iter().map(|own| own.at_ns / EVERY).collect();
        assert_eq!(ends, [1, 2, 3, 4, 5, 6]);
        for own in &written {
            assert_eq!((&*own.trial, own.sent, own.connections), ("t", 6, 4));
            assert!((own.target_cpu_percent.unwrap() - 50.0).abs() < 1.0, "{own:?}");
        }
        assert_eq!(*words.0.lock().unwrap(), ["6 sent"; 6]);
    }

    #[test]
    fn what_cannot_be_written_is_said_once_and_the_trial_is_followed_to_its_end() {
        let open = |shard, open| TrialNews::Shard(shard, Progress::Opening(open, 5));
        let news = [open(0, 2), open(1, 4)].into_iter().chain((1..=3).flat_map(of_both));
        let mut tries = 0;
        let mut sink = |_| {
            tries += 1;
            Err(Stop::new(Exit::Record, "the disk is full"))
        };
        let words = Words::default();
        let heard = follow(news.collect(), &words, &mut sink);
        assert_eq!((tries, heard.intervals.len()), (3, 3));
        assert_eq!(heard.unwritten.unwrap().exit(), Exit::Record);
        let words = words.0.into_inner().unwrap();
        assert_eq!(words[..3], ["2 of 5", "6 of 10", "6 sent"]);
        let said = words.iter().filter(|text| text.starts_with("the trial continues without"));
        assert_eq!((said.count(), words.len()), (1, 6));
    }
}
