//! The figures of a model. Every name begins with `modelled`: none of them was measured.

use crate::keys::Values;
use crate::keys::at;
use crate::work::{Each, Parts, Work, as_weighed, in_duty, once};

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Joules of a message as measured, idling between messages included.
    JoulesPerMessage,
    /// Joules of a connection as measured.
    JoulesPerSession,
    /// Charge of a connection as measured.
    MahPerSession,
    /// Connections per charge, as measured.
    SessionsPerCharge,
    /// Messages per charge, as measured.
    MessagesPerCharge,
    /// How long a charge lasts, as measured.
    Lifetime,
    /// Joules above idling of one message after a pause, in the duty cycle.
    WakePerMessage,
    /// How long a charge lasts in the duty cycle.
    Days,
}

/// Inputs of the figures besides coefficients and work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Cores that share the power of full load.
    pub cores: f64,
    /// Seconds between messages of the duty cycle.
    pub every_s: f64,
    /// Joules of a charge by the battery's label; `None` without a battery.
    pub charge_j: Option<f64>,
    /// The voltage at which charge is given.
    pub rated_v: f64,
    /// True if there is a converter between battery and device.
    pub has_converter: bool,
}

impl Quantity {
    /// All quantities, in the order of reports.
    pub const ALL: [Quantity; 8] = [
        Quantity::JoulesPerMessage,
        Quantity::JoulesPerSession,
        Quantity::MahPerSession,
        Quantity::SessionsPerCharge,
        Quantity::MessagesPerCharge,
        Quantity::Lifetime,
        Quantity::WakePerMessage,
        Quantity::Days,
    ];

    /// Its name among the metrics of a cell.
    pub fn metric(self) -> &'static str {
        match self {
            Quantity::JoulesPerMessage => "modelled_energy_j_per_message",
            Quantity::JoulesPerSession => "modelled_energy_j_per_session",
            Quantity::MahPerSession => "modelled_energy_mah_per_session",
            Quantity::SessionsPerCharge => "modelled_sessions_per_charge",
            Quantity::MessagesPerCharge => "modelled_messages_per_charge",
            Quantity::Lifetime => "modelled_lifetime_s",
            Quantity::WakePerMessage => "modelled_wake_j_per_message",
            Quantity::Days => "modelled_days_per_charge",
        }
    }

    /// Its value for this work; `None` if it is not defined: per charge without a battery, or in a
    /// duty cycle that is shorter than a message takes.
    pub fn of(self, frame: &Frame, values: &Values, work: &Work) -> Option<f64> {
        let weighed = || as_weighed(values, frame.cores, work);
        let duty = || in_duty(values, frame.cores, work, frame.every_s);
        let per_session = |joules: f64| joules * work.messages / work.connections;
        let of_charge = |each: Each, keeps: bool| {
            let left = frame.usable_j(values)? - once(values, keeps);
            let lost = frame.self_discharge_w(values) * each.seconds;
            Some(left.max(0.0) / (each.parts.total() + lost))
        };
        let value = match self {
            Quantity::JoulesPerMessage => weighed().parts.total(),
            Quantity::JoulesPerSession => per_session(weighed().parts.total()),
            Quantity::MahPerSession => {
                let drawn_j = per_session(weighed().parts.total()) / frame.efficiency(values);
                drawn_j / (frame.rated_v * JOULES_PER_MAH_AND_VOLT)
            }
            Quantity::SessionsPerCharge => {
                of_charge(weighed(), false)? * work.connections / work.messages
            }
            Quantity::MessagesPerCharge => of_charge(weighed(), false)?,
            Quantity::Lifetime => of_charge(weighed(), false)? * weighed().seconds,
            Quantity::WakePerMessage => duty()?.parts.above_idle(),
            Quantity::Days => of_charge(duty()?, !work.is_fresh())? * frame.every_s / DAY_S,
        };
        value.is_finite().then_some(value)
    }
}

impl Frame {
    /// The parts of a message as measured with its share of costs once per charge; and those of one
    /// in the duty cycle, if it fits.
    pub fn parts(&self, values: &Values, work: &Work) -> (Parts, Option<Parts>) {
        let shared = |each: Each, keeps: bool| {
            let usable = self.usable_j(values);
            let messages = usable.map(|joules| joules / each.parts.total());
            let attach = messages.map_or(0.0, |n| once(values, keeps) / n.max(1.0));
            let self_discharge = self.self_discharge_w(values) * each.seconds;
            Parts { attach, self_discharge, ..each.parts }
        };
        let weighed = shared(as_weighed(values, self.cores, work), false);
        let duty = in_duty(values, self.cores, work, self.every_s);
        (weighed, duty.map(|each| shared(each, !work.is_fresh())))
    }

    /// Joules that reach the device.
    fn usable_j(&self, values: &Values) -> Option<f64> {
        Some(self.charge_j? * self.efficiency(values))
    }

    /// Self-discharge of the battery, as power that the device could have had: a share of its
    /// nominal energy, all the time.
    fn self_discharge_w(&self, values: &Values) -> f64 {
        self.usable_j(values).map_or(0.0, |usable| usable * values[at::SELF_DISCHARGE])
    }

    fn efficiency(&self, values: &Values) -> f64 {
        if self.has_converter { values[at::CONVERTER].min(1.0) } else { 1.0 }
    }
}

/// 1 mAh is 3.6 coulombs, and a coulomb at a volt is a joule (SI).
const JOULES_PER_MAH_AND_VOLT: f64 = 3.6;
const DAY_S: f64 = 86_400.0;
