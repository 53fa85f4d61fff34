//! Whether an interval of the model contains the truth as often as it says, where the truth is
//! known: coefficients drawn as their uncertainties say, runs that vary, and a model that is told
//! only the published values and the runs.

use weigh_energy::Catalogue;
use weigh_energy::answer::{Model, RUNS};
use weigh_energy::draws::draws;
use weigh_energy::keys::{Values, at};
use weigh_energy::quantity::{Frame, Quantity};
use weigh_energy::work::Work;
use weigh_model::modelled::{EnergyAsked, EnergyBasis, Processor};
use weigh_stats::random::Random;

#[test]
fn the_interval_contains_the_truth_as_often_as_it_says() {
    let basis = basis();
    let model = Model::with_draws(&basis, 1_000, 1);
    let mut random = Random::new(5);
    let truths = draws(&basis, SIMULATIONS, 77);
    let mut contained = [0; FIGURES.len()];
    for (number, truth) in truths.iter().enumerate() {
        let works: Vec<Work> = (0..5).map(|_| noisy(&mut random)).collect();
        let answer = model.answer(&works, number as u64);
        for (quantity, count) in FIGURES.iter().zip(&mut contained) {
            let (_, figure) =
                answer.figures.iter().find(|(known, _)| known == quantity).expect("is defined");
            let (low, high) = figure.interval.expect("five runs");
            let is_truth = quantity.of(&frame(), truth, &mean_work()).expect("is defined");
            *count += usize::from((low..=high).contains(&is_truth));
        }
    }
    for (quantity, count) in FIGURES.iter().zip(contained) {
        let share = count as f64 / SIMULATIONS as f64;
        // Four standard errors of 400 simulations to either side of 0.95.
        assert!((0.906..=0.994).contains(&share), "{quantity:?}: {share}");
    }
}

/// An interval over the runs alone, as if coefficients were certain, misses the truth nearly
/// always: the test above can fail.
#[test]
fn an_interval_over_runs_alone_misses() {
    let mut certain = basis();
    let parts = [Some(&mut certain.device), certain.radio.as_mut()];
    for part in parts.into_iter().flatten() {
        part.coefficients.values_mut().for_each(|coefficient| coefficient.factor = 1.0);
    }
    let model = Model::with_draws(&certain, 1_000, 1);
    let mut random = Random::new(5);
    let truths = draws(&basis(), 100, 77);
    let mut contains = |truth: &Values| {
        let works: Vec<Work> = (0..5).map(|_| noisy(&mut random)).collect();
        let answer = model.answer(&works, 0);
        let (_, figure) = &answer.figures[0];
        let (low, high) = figure.interval.expect("five runs");
        let is_truth = FIGURES[0].of(&frame(), truth, &mean_work()).expect("is defined");
        (low..=high).contains(&is_truth)
    };
    let contained = truths.iter().filter(|truth| contains(truth)).count();
    assert!(contained < 50, "{contained} of 100");
}

/// What both sides of a ratio share cancels: with the same work it is 1, however little is known
/// of the coefficients.
#[test]
fn a_ratio_is_surer_than_its_sides() {
    let model = Model::with_draws(&basis(), 1_000, 1);
    let same = vec![mean_work(); 5];
    let half: Vec<Work> =
        same.iter().map(|work| Work { messages: work.messages * 2.0, ..work.clone() }).collect();
    let quantity = Quantity::JoulesPerMessage;
    let (ratio, ends) = model.ratio(quantity, [(&same, 0), (&same, 1)]).unwrap();
    let (low, high) = ends.unwrap();
    assert!((ratio - 1.0).abs() < 1e-12 && high - low < 1e-9, "{low} to {high}");
    let (ratio, _) = model.ratio(quantity, [(&half, 0), (&same, 1)]).unwrap();
    assert!((0.5..0.6).contains(&ratio), "{ratio}");
    let (_, figure) = &model.answer(&same, 0).figures[0];
    let (low, high) = figure.interval.unwrap();
    assert!(high / low > 1.2, "{low} to {high}");
    let two = &model.answer(&same[..2], 0).figures[0].1;
    assert_eq!(two.interval, None, "two repetitions have no interval");
}

/// The budget says what the figure hangs on: idling at first, the processor once there is much of
/// its work, the runs where those differ by more than anything is uncertain.
#[test]
fn the_budget_names_what_matters() {
    let model = Model::with_draws(&basis(), 10, 1);
    let first = |works: &[Work]| model.answer(works, 0).weighed_budget[0].name.clone();
    let quiet = Work { cpu_s: 0.0, ..mean_work() };
    assert_eq!(first(&[quiet.clone(), quiet.clone()]), "3g connected");
    let busy = Work { cpu_s: 0.5, ..mean_work() };
    assert_eq!(first(&[busy.clone(), busy]), "pi-2b cpu_scale");
    let twice = Work { span_s: 4.0 * quiet.span_s, ..quiet.clone() };
    assert_eq!(first(&[quiet, twice]), RUNS);
    let shares = model.answer(&[mean_work(), mean_work()], 0).weighed_budget;
    let all: f64 = shares.iter().map(|share| share.share).sum();
    assert!((all - 1.0).abs() < 1e-12 && shares.windows(2).all(|w| w[0].share >= w[1].share));
}

/// One session after the other, 2 s each.
fn mean_work() -> Work {
    Work {
        devices: 1.0,
        connections: 10.0,
        messages: 10.0,
        bytes: [20_000.0, 40_000.0],
        message_bytes: [2_000.0, 1_000.0],
        span_s: 20.0,
        connected_s: 19.0,
        cpu_s: 0.002,
        exchange_s: 0.3,
        is_closed: true,
        ..Work::default()
    }
}

/// The same in a run in which everything takes some percent more or less time.
fn noisy(random: &mut Random) -> Work {
    let of = 1.0 + 0.05 * random.normal();
    let work = mean_work();
    Work { span_s: work.span_s * of, connected_s: work.connected_s * of, ..work }
}

fn basis() -> EnergyBasis {
    let asked = EnergyAsked {
        device: "pi-2b".to_owned(),
        radio: Some("3g".to_owned()),
        battery: Some("2000mAh@3.7V".parse().unwrap()),
        every: None,
        cpu: Processor::Scaled,
    };
    Catalogue::load(&[]).unwrap().basis(&asked).unwrap()
}

/// What the model makes of the basis, said once more in other words.
fn frame() -> Frame {
    Frame {
        cores: 4.0,
        every_s: 60.0,
        charge_j: Some(2.0 * 3.7 * 3600.0),
        rated_v: 3.7,
        has_converter: true,
    }
}

#[test]
fn the_frame_here_is_that_of_the_model() {
    let (basis, work) = (basis(), mean_work());
    let published = weigh_energy::draws::published(&basis);
    assert_eq!(published[at::CONVERTER], 0.85);
    let model = Model::with_draws(&basis, 0, 0);
    for quantity in Quantity::ALL {
        let (own, model) = (quantity.of(&frame(), &published, &work), model.value(quantity, &work));
        assert_eq!(own, model, "{quantity:?}");
        assert!(own.is_some_and(|value| value > 0.0), "{quantity:?}");
    }
}

const FIGURES: [Quantity; 4] = [
    Quantity::MahPerSession,
    Quantity::SessionsPerCharge,
    Quantity::WakePerMessage,
    Quantity::Days,
];
const SIMULATIONS: usize = 400;
