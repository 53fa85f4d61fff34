//! One discharge as its log records it: how long it lasted, and how it ended.

use std::path::PathBuf;

use crate::discharges::entry::{Begun, EndReason, Entry, Gauge, Standing};
use crate::discharges::start::Start;

/// One discharge.
#[derive(Clone, Debug, PartialEq)]
pub struct Discharge {
    /// Number in the folder.
    pub number: u32,
    /// Its folder.
    pub folder: PathBuf,
    /// The plan, lane and machine of its first line.
    pub begun: Begun,
    /// The last complete line.
    pub last: Standing,
    /// The first reading of the gauge, and the last.
    pub gauge: Option<(Gauge, Gauge)>,
    /// Number of times the target could not be reached.
    pub troubles: u64,
    /// The first error of these.
    pub first_trouble: Option<String>,
    /// Its end.
    pub ending: Ending,
    /// Bytes of the line that was being written when the power went.
    pub torn_bytes: u64,
    /// Lines before the last one that could not be read.
    pub damaged_lines: u64,
}

/// End of a discharge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The log just stops, and the machine has rebooted since: the power went.
    Power,
    /// By SIGTERM, and the machine has rebooted since: it shut down.
    ShutDown,
    /// The log just stops, and the machine has not rebooted: the program was killed.
    Killed,
    /// It still runs.
    Running,
    /// The log just stops or SIGTERM, and it is unknown whether the machine has rebooted.
    Unknown,
    /// For a reason that the log gives.
    Reported(EndReason),
}

impl Discharge {
    /// Builds a discharge from its lines.
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
            Entry::Ended { reason, .. } => self.ending = Ending::Reported(*reason),
        }
    }

    /// Decides the end by a later start of the same machine, if one is known.
    pub(crate) fn judge(&mut self, later: Option<&Start>) {
        let later_boot = later.and_then(|later| later.boot.as_deref());
        let has_gone_on = later_boot.map(|boot| boot == self.begun.boot);
        self.ending = match (self.ending, has_gone_on) {
            (Ending::Power, Some(true)) => Ending::Killed,
            (Ending::Reported(EndReason::Terminated), Some(false)) => Ending::ShutDown,
            (Ending::Power | Ending::Reported(EndReason::Terminated), None) => Ending::Unknown,
            (other, _) => other,
        };
    }

    /// True if the battery was empty at the end.
    pub fn is_complete(&self) -> bool {
        matches!(self.ending, Ending::Power | Ending::ShutDown)
    }

    /// Finished sessions; messages if sessions are kept.
    pub fn sessions(&self) -> u64 {
        self.begun.counts.of(&self.last)
    }

    /// Returns how long it lasted, seconds; up to 1 s too short.
    pub fn lifetime_s(&self) -> f64 {
        self.last.at_ns as f64 / 1e9
    }

    /// CPU time of the program, seconds.
    pub fn cpu_s(&self) -> f64 {
        self.last.cpu_ns as f64 / 1e9
    }

    /// Rated charge of the battery over the sessions of this discharge, mAh: the label's figure,
    /// not the charge that was drawn.
    pub fn rated_mah_per_session(&self) -> Option<f64> {
        let sessions = self.sessions();
        let battery = self.begun.battery?;
        (sessions > 0).then(|| battery.charge_mah / sessions as f64)
    }

    /// Charge of the battery at the start by its gauge; 1 is full.
    pub fn full_share(&self) -> Option<f64> {
        let (first, _) = self.gauge?;
        self.share_of(first)
    }

    /// Charge of the battery at the end of the log by its gauge; 1 is full.
    pub fn left_share(&self) -> Option<f64> {
        let (_, last) = self.gauge?;
        self.share_of(last)
    }

    fn share_of(&self, gauge: Gauge) -> Option<f64> {
        let full = self.begun.gauge_full_uah.filter(|full| *full > 0)?;
        Some(gauge.charge_uah? as f64 / full as f64)
    }

    /// Charge drawn by the coulomb counter, mAh.
    pub fn gauge_mah(&self) -> Option<f64> {
        let (first, last) = self.gauge?;
        let drawn = first.charge_uah? - last.charge_uah?;
        (drawn > 0).then_some(drawn as f64 / 1e3)
    }

    /// Charge drawn per session by the coulomb counter, mAh.
    pub fn gauge_mah_per_session(&self) -> Option<f64> {
        let sessions = self.sessions();
        Some(self.gauge_mah()? / sessions as f64).filter(|_| sessions > 0)
    }
}

impl Ending {
    /// The words for a table.
    pub fn words(self) -> &'static str {
        match self {
            Ending::Power => "power went",
            Ending::ShutDown => "shut down",
            Ending::Killed => "program killed",
            Ending::Running => "running",
            Ending::Unknown => "unknown",
            Ending::Reported(EndReason::TimeOver) => "time over",
            Ending::Reported(EndReason::Interrupted) => "interrupted",
            Ending::Reported(EndReason::Terminated) => "terminated",
            Ending::Reported(EndReason::Mains) => "charger came back",
            Ending::Reported(EndReason::Full) => "card full",
            Ending::Reported(EndReason::Unreached) => "target unreached",
            Ending::Reported(EndReason::Failed) => "program failed",
        }
    }
}
