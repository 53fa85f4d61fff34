//! One discharge as its log tells it: how far it came, and how it ended.

use std::path::PathBuf;

use crate::discharges::entry::{Begun, EndReason, Entry, Gauge, Standing};
use crate::discharges::start::Start;

/// One discharge.
#[derive(Clone, Debug, PartialEq)]
pub struct Discharge {
    /// Its number in the folder.
    pub number: u32,
    /// Where it lies.
    pub folder: PathBuf,
    /// What was run down.
    pub begun: Begun,
    /// The last line that is whole.
    pub last: Standing,
    /// The first reading of the gauge, and the last.
    pub gauge: Option<(Gauge, Gauge)>,
    /// How often the target could not be reached.
    pub troubles: u64,
    /// Why, the first time.
    pub first_trouble: Option<String>,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of the line that was being written when the power went.
    pub torn_bytes: u64,
    /// Lines before the last one that could not be read.
    pub damaged_lines: u64,
}

/// How a discharge ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Without a word, and the machine has started anew since: the power went.
    Power,
    /// By SIGTERM, and the machine has started anew since: it shut down.
    ShutDown,
    /// Without a word, and the machine has gone on: the program was killed.
    Killed,
    /// It goes on.
    Running,
    /// Without a word or by SIGTERM, and nobody knows whether its machine has started anew since.
    Unknown,
    /// For a reason of its own.
    Told(EndReason),
}

impl Discharge {
    /// What these lines tell.
    pub fn new(number: u32, folder: PathBuf, begun: Begun, entries: &[Entry]) -> Discharge {
        let mut discharge = Discharge {
            number,
            folder,
            begun,
            last: Standing::default(),
            gauge: None,
            troubles: 0,
            first_trouble: None,
            ending: Ending::Power,
            torn_bytes: 0,
            damaged_lines: 0,
        };
        entries.iter().for_each(|entry| discharge.take(entry));
        discharge
    }

    fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Begun(_) => {}
            Entry::Standing(standing) => {
                self.last = *standing;
                if let Some(gauge) = standing.gauge {
                    self.gauge = Some((self.gauge.map_or(gauge, |(first, _)| first), gauge));
                }
            }
            Entry::Trouble { reason, .. } => {
                self.troubles += 1;
                self.first_trouble.get_or_insert_with(|| reason.clone());
            }
            Entry::Ended { reason, .. } => self.ending = Ending::Told(*reason),
        }
    }

    /// Judges the end by a later start of the same machine, where one is known.
    pub(crate) fn judge(&mut self, later: Option<&Start>) {
        let later_boot = later.and_then(|later| later.boot.as_deref());
        let has_gone_on = later_boot.map(|boot| boot == self.begun.boot);
        self.ending = match (self.ending, has_gone_on) {
            (Ending::Power, Some(true)) => Ending::Killed,
            (Ending::Told(EndReason::Terminated), Some(false)) => Ending::ShutDown,
            (Ending::Power | Ending::Told(EndReason::Terminated), None) => Ending::Unknown,
            (other, _) => other,
        };
    }

    /// True if the battery was run down.
    pub fn is_complete(&self) -> bool {
        matches!(self.ending, Ending::Power | Ending::ShutDown)
    }

    /// Finished sessions; messages where sessions are kept.
    pub fn sessions(&self) -> u64 {
        self.begun.counts.of(&self.last)
    }

    /// How long it lasted, seconds; up to a second less than it did.
    pub fn lifetime_s(&self) -> f64 {
        self.last.at_ns as f64 / 1e9
    }

    /// Processor time of the program, seconds.
    pub fn cpu_s(&self) -> f64 {
        self.last.cpu_ns as f64 / 1e9
    }

    /// A full charge of the battery over the sessions that it lasted for, milliampere-hours: what
    /// its label promises, not what it gave.
    pub fn rated_mah_per_session(&self) -> Option<f64> {
        let sessions = self.sessions();
        let battery = self.begun.battery?;
        (sessions > 0).then(|| battery.charge_mah / sessions as f64)
    }

    /// How full the battery was at the begin, by its gauge; 1 is full.
    pub fn full_share(&self) -> Option<f64> {
        let (first, _) = self.gauge?;
        self.share_of(first)
    }

    /// How full the battery was by its gauge when the log ended; 1 is full.
    pub fn left_share(&self) -> Option<f64> {
        let (_, last) = self.gauge?;
        self.share_of(last)
    }

    fn share_of(&self, gauge: Gauge) -> Option<f64> {
        let full = self.begun.gauge_full_uah.filter(|full| *full > 0)?;
        Some(gauge.charge_uah? as f64 / full as f64)
    }

    /// What the coulomb counter says was drawn, milliampere-hours.
    pub fn gauge_mah(&self) -> Option<f64> {
        let (first, last) = self.gauge?;
        let drawn = first.charge_uah? - last.charge_uah?;
        (drawn > 0).then_some(drawn as f64 / 1e3)
    }

    /// The same for each session.
    pub fn gauge_mah_per_session(&self) -> Option<f64> {
        let sessions = self.sessions();
        Some(self.gauge_mah()? / sessions as f64).filter(|_| sessions > 0)
    }
}

impl Ending {
    /// In words, for a table.
    pub fn words(self) -> &'static str {
        match self {
            Ending::Power => "power went",
            Ending::ShutDown => "shut down",
            Ending::Killed => "program killed",
            Ending::Running => "goes on",
            Ending::Unknown => "unknown",
            Ending::Told(EndReason::TimeOver) => "time over",
            Ending::Told(EndReason::Interrupted) => "interrupted",
            Ending::Told(EndReason::Terminated) => "terminated",
            Ending::Told(EndReason::Mains) => "charger came back",
            Ending::Told(EndReason::Full) => "card full",
            Ending::Told(EndReason::Unreached) => "target unreached",
            Ending::Told(EndReason::Failed) => "program failed",
        }
    }
}
