//! Follows a trial while it runs: what its shards report becomes ticks for who watches, and
//! intervals for the run's record. An interval is written as soon as nothing can be added to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use weigh_engine::job::Progress;
use weigh_model::event::Interval;

use crate::exit::Stop;
use crate::run::chronicle::Chronicle;
use crate::trial::news::{TrialNews, Watched};
use crate::trial::series::Series;
use crate::trial::ticks::{Tick, Ticks};
use crate::watcher::Watcher;

/// A trial that runs.
pub struct Live<'l> {
    /// Its id.
    pub trial: String,
    /// Who watches it.
    pub watcher: &'l dyn Watcher,
    /// Where its intervals go.
    pub chronicle: &'l mut Chronicle,
    /// What its shards did.
    pub ticks: Ticks,
    /// Its intervals.
    pub series: Series,
}

/// What a trial left that was followed.
#[derive(Default)]
pub struct Heard {
    /// Its intervals.
    pub intervals: Vec<Interval>,
    /// Why one of them could not be written.
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
    /// By shard: connections that stand, of how many.
    opened: BTreeMap<u32, (u64, u64)>,
    watched: Option<Watched>,
    /// Intervals for which the target has not been watched far enough.
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
                live.watcher.opening(sum(|own| own.0), sum(|own| own.1));
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

    /// Writes the intervals up to whose end the target has been watched.
    fn write_known(&mut self) {
        while let Some(mut interval) = self.waiting.pop_front() {
            if self.watched.as_ref().is_some_and(|watched| !watched.tell(&mut interval)) {
                return self.waiting.push_front(interval);
            }
            self.write(interval);
        }
    }

    /// What cannot be written is kept by the chronicle, and the trial goes on: its result is worth
    /// as much without.
    fn write(&mut self, mut interval: Interval) {
        interval.trial.clone_from(&self.live.trial);
        self.heard.intervals.push(interval.clone());
        if let Err(stop) = self.live.chronicle.note_interval(interval)
            && self.heard.unwritten.is_none()
        {
            self.live.watcher.say(&format!("{stop}; the trial is measured to its end"));
            self.heard.unwritten = Some(stop);
        }
    }
}

/// How soon it is noticed that the target has been watched far enough.
const LOOK_EVERY: Duration = Duration::from_millis(20);
