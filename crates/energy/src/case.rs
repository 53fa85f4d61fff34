//! Published cases, computed again: the coefficients of a file must reproduce its published
//! results.

use std::collections::BTreeMap;

use weigh_model::modelled::{EVERY, EnergyBasis, EnergyPart, Processor};

use crate::answer::Model;
use crate::catalogue::Catalogue;
use crate::draws;
use crate::keys::{KEYS, Kind, at};
use crate::part::{Closes, PartFile};
use crate::quantity::Quantity;
use crate::work::Work;

/// A published result next to the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Description of the case.
    pub case: String,
    /// The radio, and the device if there is one: `nb-iot on nrf9160`.
    pub of: String,
    /// As published.
    pub published: f64,
    /// The result of the model.
    pub modelled: f64,
    /// The unit of both.
    pub unit: &'static str,
    /// Source of the publication.
    pub source: String,
}

/// Computes all published cases of this radio's file.
///
/// # Errors
/// If a case names no device, or has neither days nor joules.
pub fn closed(catalogue: &Catalogue, radio: &PartFile) -> Result<Vec<Closed>, String> {
    radio.closes.iter().map(|case| close(catalogue, radio, case)).collect()
}

fn close(catalogue: &Catalogue, radio: &PartFile, case: &Closes) -> Result<Closed, String> {
    let wrong = |what: String| format!("radio {}, {:?}: {what}", radio.part.name, case.case);
    let (quantity, published, unit) = match (case.days, case.joules) {
        (Some(days), None) => (Quantity::Days, days, "days"),
        (None, Some(joules)) => (Quantity::WakePerMessage, joules, "J"),
        _ => return Err(wrong("type either days or joules".to_owned())),
    };
    let device = case.device.as_deref().map(|name| catalogue.find(Kind::Device, name));
    let device = device.transpose().map_err(wrong)?;
    let mut device = device.map_or_else(nothing, |file| file.part.clone());
    let mut radio_part = radio.part.clone();
    // Published lifetimes assume a battery without self-discharge, and no keep-alives.
    device.coefficients.remove(KEYS[at::SELF_DISCHARGE].name);
    radio_part.coefficients.remove(KEYS[at::IDLE_LIMIT].name);
    let basis = EnergyBasis {
        device,
        radio: Some(radio_part),
        battery: case.battery,
        every: case.every.unwrap_or(EVERY),
        cpu: Processor::Scaled,
    };
    let model = Model::with_draws(&basis, 0, 0);
    let values = draws::published(&basis);
    // By default a message and a connection like those that were measured.
    let up = case.up.map_or(values[at::MESSAGE_UP], |size| size.0 as f64);
    let down = case.down.map_or(0.0, |size| size.0 as f64);
    let opening = if case.is_fresh {
        [at::CONNECT_UP, at::CONNECT_DOWN, at::CONNECT_TIME].map(|place| values[place])
    } else {
        [0.0; 3]
    };
    let bytes = [up + opening[0], down + opening[1]];
    let messages = if case.is_fresh { 1.0 } else { MESSAGES_OF_KEPT };
    let work = Work {
        devices: 1.0,
        connections: 1.0,
        messages,
        bytes: bytes.map(|bytes| bytes * messages),
        message_bytes: [up, down].map(|bytes| bytes * messages),
        connected_s: opening[2],
        ..Work::default()
    };
    let modelled = model.value(quantity, &work);
    let modelled = modelled.ok_or_else(|| wrong("days need a battery".to_owned()))?;
    let of = match &case.device {
        Some(device) => format!("{} on {device}", radio.part.name),
        None => radio.part.name.clone(),
    };
    let (case, source) = (case.case.clone(), case.source.clone());
    Ok(Closed { case, of, published, modelled, unit, source })
}

/// An empty part, for a case about a radio alone.
fn nothing() -> EnergyPart {
    EnergyPart {
        name: String::new(),
        title: String::new(),
        about: String::new(),
        volts: 1.0,
        cores: 1,
        correlation: 0.0,
        path: None,
        message_bytes_max: None,
        has_none: None,
        coefficients: BTreeMap::new(),
    }
}

/// Number of messages on a kept connection.
const MESSAGES_OF_KEPT: f64 = 1000.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The methodology asks for half a percent (sections 7.2 and O17). The 165 and 12.5 are given
    /// to so many digits.
    #[test]
    fn published_cases_close_to_half_a_percent() {
        let catalogue = Catalogue::load(&[]).unwrap();
        let radios = catalogue.of(Kind::Radio).iter();
        let all: Vec<Closed> =
            radios.flat_map(|radio| closed(&catalogue, radio).unwrap()).collect();
        let published: Vec<f64> = all.iter().map(|closed| closed.published).collect();
        assert_eq!(published[..5], [5.0, 12.5, 772.15, 165.0, 106.26]);
        for Closed { case, of, published, modelled, .. } in &all[..5] {
            let off = (modelled / published - 1.0).abs();
            assert!(off < 0.005, "{of}, {case}: {modelled} instead of {published}");
        }
    }

    /// 3GPP TR 45.820 prints twelve lifetimes in years, to 0.1: three coupling losses, two sizes,
    /// two intervals. Coefficients come from six of them, and the other six come out, to within
    /// half of the last digit of what went in and of what is compared.
    #[test]
    fn lifetimes_of_3gpp_come_out_that_did_not_go_in() {
        let catalogue = Catalogue::load(&[]).unwrap();
        let mut number = 0;
        for name in ["nb-iot-144", "nb-iot-154", "nb-iot-164"] {
            for own in closed(&catalogue, catalogue.find(Kind::Radio, name).unwrap()).unwrap() {
                let [modelled, published] = [own.modelled, own.published].map(|d| d / 365.25);
                assert!((modelled - published).abs() < 0.1, "{name}, {}: {modelled}", own.case);
                number += 1;
            }
        }
        assert_eq!(number, 6);
    }

    #[test]
    fn a_case_that_is_none_is_told_so() {
        let catalogue = Catalogue::load(&[]).unwrap();
        let mut radio = catalogue.find(Kind::Radio, "nb-iot").unwrap().clone();
        radio.closes.truncate(1);
        radio.closes[0].battery = None;
        assert!(closed(&catalogue, &radio).unwrap_err().contains("need a battery"));
        radio.closes[0].days = None;
        assert!(closed(&catalogue, &radio).unwrap_err().contains("either days or joules"));
        radio.closes[0].days = Some(1.0);
        radio.closes[0].device = Some("nrf9106".to_owned());
        let said = closed(&catalogue, &radio).unwrap_err();
        assert!(said.contains("did you mean nrf9160?"), "{said}");
    }
}
