//! Power source of a rundown: the battery's gauge, and whether a charger is connected.

use crate::discharges::entry::Gauge;
use weigh_observe::energy::{Battery, Value, supplies};
use weigh_observe::host::Roots;

use crate::exit::Stop;

/// The power of this machine.
pub struct Power {
    roots: Roots,
    battery: Option<Battery>,
    /// Reason for which there is no gauge.
    no_gauge: Option<String>,
}

impl Power {
    /// Finds the power source of this machine. `has_no_gauge` means that the user knows of a
    /// battery that the kernel does not know, such as a power bank.
    ///
    /// # Errors
    /// A connected charger; a machine without a known battery.
    pub fn of_a_battery(has_no_gauge: bool) -> Result<Power, Stop> {
        let roots = Roots::from_environment();
        let mut power = Power { roots, battery: None, no_gauge: None };
        if let Some(charger) = power.charger() {
            return Err(Stop::usage(format!(
                "{charger}: a battery runs down only without a charger: unplug it"
            )));
        }
        if has_no_gauge {
            power.no_gauge = Some("--no-gauge".to_owned());
            return Ok(power);
        }
        let all = supplies(&power.roots);
        let batteries: Vec<_> = all.iter().filter(|supply| supply.is_battery()).collect();
        let Some(first) = batteries.first() else {
            return Err(Stop::usage(format!(
                "there is no battery in {}\nhelp: add --no-gauge if this machine runs from one \
                 that the kernel does not know, such as a power bank",
                power.roots.sys.join("class/power_supply").display()
            )));
        };
        match Battery::of(first) {
            Ok(_) if batteries.len() > 1 => {
                power.no_gauge = Some("there are several batteries".to_owned());
            }
            Ok(battery) => power.battery = Some(battery),
            Err(error) => power.no_gauge = Some(error.to_string()),
        }
        Ok(power)
    }

    /// Returns the reason for which the gauge is not read; `None` if it is.
    pub fn no_gauge(&self) -> Option<&str> {
        self.no_gauge.as_deref()
    }

    /// Charge when full by the gauge, microampere-hours.
    pub fn full_uah(&self) -> Option<i64> {
        self.battery.as_ref()?.full_uah()
    }

    /// The power source that replaces the battery now, if any.
    pub fn charger(&self) -> Option<String> {
        let all = supplies(&self.roots);
        let charger = all.iter().find(|supply| supply.feeds_from_mains())?;
        Some(match charger.is_battery() {
            true => format!("the battery {} is {}", charger.name, charger.status.to_lowercase()),
            false => format!("the power supply {} is connected", charger.name),
        })
    }

    /// Reads the gauge. A gauge that cannot be read for a moment does not affect the counts.
    pub fn gauge(&self) -> Option<Gauge> {
        match self.battery.as_ref()?.read() {
            Ok(Value::Left { charge_uah, energy_uwh, voltage_v }) => {
                Some(Gauge { charge_uah, energy_uwh, voltage_v })
            }
            Ok(Value::Power { voltage_v, .. }) => Some(Gauge { voltage_v, ..Gauge::default() }),
            _ => None,
        }
    }
}
