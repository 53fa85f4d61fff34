//! A device that reports now and then over NB-IoT: every term by hand, more bytes take more, and
//! a connection that is kept is paid for.

use weigh_energy::answer::Model;
use weigh_energy::draws::published;
use weigh_energy::keys::{KEYS, Values, at};
use weigh_energy::quantity::Quantity;
use weigh_energy::work::{Work, in_duty};
use weigh_energy::{Catalogue, Parts};
use weigh_model::Nanos;
use weigh_model::modelled::{EnergyAsked, EnergyBasis, Processor};

/// A kept connection with a report of `up` bytes and an answer of 100.
fn kept(up: f64) -> Work {
    Work {
        devices: 1.0,
        connections: 1.0,
        messages: 10.0,
        bytes: [10.0 * up + 2_000.0, 6_000.0],
        message_bytes: [10.0 * up, 1_000.0],
        span_s: 30.0,
        connected_s: 30.0,
        exchange_s: 1.7,
        is_closed: true,
        keep_alive_bytes: [52.0, 52.0],
        ..Work::default()
    }
}

fn basis(radio: &str) -> EnergyBasis {
    let asked = EnergyAsked {
        device: "nrf9160".to_owned(),
        radio: Some(radio.to_owned()),
        battery: Some("300mAh@3.7V".parse().unwrap()),
        every: Some(Nanos::from_secs(3_600)),
        cpu: Processor::Scaled,
    };
    Catalogue::load(&[]).unwrap().basis(&asked).unwrap()
}

/// A radio with round numbers: 0.1 mJ a byte up, 0.05 mJ a byte down, 1 J a message.
fn round() -> Values {
    let mut values = [0.0; KEYS.len()];
    for (place, value) in [
        (at::CPU_SCALE, 1.0),
        (at::TX_POWER, 0.5),
        (at::UP_RATE, 40_000.0),
        (at::RX_POWER, 0.25),
        (at::DOWN_RATE, 40_000.0),
        (at::MESSAGE, 1.0),
        (at::CONNECTED, 0.1),
        (at::PAGING, 0.001),
        (at::TAU, 0.5),
        (at::TAU_TIME, 500.0),
        (at::IDLE_LIMIT, 1_200.0),
    ] {
        values[place] = value;
    }
    values
}

/// An hour of a kept connection whose gateway forgets it after 20 minutes: two keep-alives, in each
/// of the three silences two updates.
#[test]
fn every_term_of_an_hour_by_hand() {
    let Parts { message, bytes, tail, keep_alive, paging, .. } =
        in_duty(&round(), 1.0, &kept(200.0), 3_600.0).unwrap().parts;
    assert!((message - 1.0).abs() < 1e-12);
    assert!((bytes - (200.0 * 0.0001 + 100.0 * 0.00005)).abs() < 1e-12, "{bytes}");
    assert!((tail - 1.7 * 0.1).abs() < 1e-12, "{tail}");
    let ping = 1.0 + 52.0 * 0.0001 + 52.0 * 0.00005 + 1.7 * 0.1;
    assert!((keep_alive - 2.0 * ping).abs() < 1e-12, "{keep_alive}");
    assert!((paging - (3_600.0 * 0.001 + 6.0 * 0.5)).abs() < 1e-12, "{paging}");
}

/// The protocol's own keep-alive counts where it is shorter; a message each ten minutes needs none.
#[test]
fn keep_alives_are_as_many_as_the_shorter_silence_asks_for() {
    let pings = |keep_alive_s: f64, every_s: f64| {
        let work = Work { keep_alive_s, ..kept(200.0) };
        let parts = in_duty(&round(), 1.0, &work, every_s).unwrap().parts;
        (parts.keep_alive / (1.0 + 52.0 * 0.00015 + 0.17)).round()
    };
    assert_eq!(pings(60.0, 3_600.0), 59.0);
    assert_eq!(pings(0.0, 3_600.0), 2.0);
    assert_eq!(pings(7_200.0, 3_600.0), 2.0, "the gateway is the shorter one");
    assert_eq!(pings(0.0, 600.0), 0.0);
    let fresh = Work { connections: 10.0, ..kept(200.0) };
    assert_eq!(in_duty(&round(), 1.0, &fresh, 3_600.0).unwrap().parts.keep_alive, 0.0);
}

/// 50 B and 1,000 B an hour had the same lifetime; and more bytes never take less.
#[test]
fn bytes_shorten_the_life_of_a_charge() {
    let radios = ["nb-iot", "nb-iot-tail", "nb-iot-edrx", "nb-iot-144", "nb-iot-154", "nb-iot-164"];
    for radio in radios {
        let model = Model::with_draws(&basis(radio), 0, 0);
        let days = |up: f64| model.value(Quantity::Days, &kept(up)).unwrap();
        let all: Vec<f64> = [50.0, 100.0, 500.0, 1_000.0, 5_000.0].map(days).to_vec();
        assert!(all.windows(2).all(|pair| pair[0] > pair[1]), "{radio}: {all:?}");
    }
    let basis = basis("nb-iot");
    let model = Model::with_draws(&basis, 1_000, 1);
    let sizes = [vec![kept(150.0); 3], vec![kept(1_100.0); 3]];
    let (_, ends) = model.ratio(Quantity::Days, [(&sizes[0], 0), (&sizes[1], 1)]).unwrap();
    let (low, high) = ends.unwrap();
    assert!(low > 1.01, "{low} to {high}");
}

/// What the battery loses by itself bounds its life, and is told apart.
#[test]
fn a_battery_loses_some_by_itself() {
    let with = basis("nb-iot");
    let mut without = with.clone();
    without.device.coefficients.remove("self_discharge");
    let days = |basis: &EnergyBasis| {
        Model::with_draws(basis, 0, 0).value(Quantity::Days, &kept(100.0)).unwrap()
    };
    let (less, more) = (days(&with), days(&without));
    // Two percent of the charge a year beside what it gives in `more` days.
    let once = 1.0 - 0.02 * less / 365.25;
    assert!((less / more - once).abs() < 1e-4, "{less} of {more} days");
    let duty = Model::with_draws(&with, 0, 0).answer(&[kept(100.0)], 0).duty.unwrap();
    let hour_j = 300.0 * 3.6 * 3.7 * 0.02 / (365.25 * 24.0);
    assert!((duty.self_discharge - hour_j).abs() < 1e-9, "{duty:?}");
}

/// The interval of the model contains what 3GPP's own model says of the same report.
#[test]
fn published_lifetimes_lie_within_the_interval() {
    for (radio, up, years) in [
        ("nb-iot-144", 50.0, 36.0),
        ("nb-iot-144", 200.0, 34.9),
        ("nb-iot-154", 200.0, 26.2),
        ("nb-iot-164", 50.0, 17.5),
    ] {
        let asked = EnergyAsked {
            device: "nb-iot-3gpp".to_owned(),
            radio: Some(radio.to_owned()),
            battery: Some("5Wh@3.7V".parse().unwrap()),
            every: Some(Nanos::from_secs(86_400)),
            cpu: Processor::Scaled,
        };
        let mut basis = Catalogue::load(&[]).unwrap().basis(&asked).unwrap();
        // Neither keep-alives nor self-discharge are in what was published.
        basis.device.coefficients.remove("self_discharge");
        let radio = basis.radio.as_mut().unwrap();
        radio.coefficients.remove("idle_limit");
        radio.coefficients.remove("connected");
        let work = Work {
            devices: 1.0,
            connections: 1.0,
            messages: 1_000.0,
            bytes: [up * 1_000.0, 0.0],
            message_bytes: [up * 1_000.0, 0.0],
            ..Work::default()
        };
        let answer = Model::with_draws(&basis, 1_000, 1).answer(&vec![work; 3], 0);
        let days = answer.figures.iter().find(|(quantity, _)| *quantity == Quantity::Days);
        let (low, high) = days.unwrap().1.interval.unwrap();
        assert!((low..=high).contains(&(years * 365.25)), "{low} to {high} days: {years} years");
        assert!(high / low < 1.6, "{low} to {high} days say nothing");
    }
}

/// Where bytes of a message bind the energy of a byte, no draw contradicts the measured message.
#[test]
fn a_measured_message_stays_what_it_was_measured_at() {
    let values = published(&basis("nb-iot"));
    let measured = in_duty(&values, 1.0, &kept(536.0), 3_600.0).unwrap().parts;
    let answer_j = 100.0 * 0.05 * 3.7 * 8.0 / 21_250.0;
    assert!((measured.message + measured.bytes - answer_j - 0.02876 * 3.7).abs() < 1e-9);
}
