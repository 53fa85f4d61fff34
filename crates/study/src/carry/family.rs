//! Costs: the drivers of a server's processor time, fitted to the cells of a family, and
//! compared with cells that were not fitted.
//!
//! An arrival that finds the server asleep costs a wake-up on top, and the first answer after it
//! costs more too, so that each kind of message has wake-ups of its own. A server that stays awake
//! for a time `t` after it was woken is woken `r / (1 + r t)` times a second by `r` arrivals, as a
//! counter with a dead time counts (W. Feller, 1948, "type I"): many at low rates, and no more
//! than `1 / t` at any. Without this driver the cost of a message measured at a low rate would
//! be taken for that at a high one. A connection that is opened is an arrival beside its message.
//!
//! With many connections the memory of the next message's is in no cache. An access takes longer
//! step by step as more memory is worked on (U. Drepper, "What every programmer should know about
//! memory", 2007, section 3.3.2): here in proportion to the logarithm of the connections.

use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::cost_model::{Coefficients, CostModel, Row, predict};
use weigh_stats::quantile::interpolated;
use weigh_stats::random::Random;

use super::asked::{Asked, FamilyAsked};
use super::observed::{Amounts, Load, Observed};
use super::outcome::{FamilyShown, HeldOutShown, MemoryShown, Term};

/// Something that takes processor time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// The process itself.
    Process,
    /// A connection that stands, per second.
    Connection,
    /// A wake-up by what comes with messages of this value of the family's split.
    Wake(String),
    /// Extra cost of a message on a connection that is not in a cache, for each doubling of the
    /// connections.
    Cold,
    /// A message of this value of the family's split.
    Message(String),
    /// Extra cost of TLS for a message.
    Sealed,
    /// A delivery to a subscriber.
    Delivery,
    /// A connection opened and closed.
    Opened,
    /// A connection opened and closed with a full TLS handshake.
    Full,
    /// A connection opened and closed with a resumed TLS handshake.
    Resumed,
}

impl Driver {
    /// Amount of it in a load. `awake_s` is the shape of the wake-ups.
    pub fn amount(&self, load: &Load, awake_s: f64) -> f64 {
        match self {
            Driver::Process => 1.0,
            Driver::Connection => load.connections,
            Driver::Wake(variant) if *variant == load.variant => {
                let arrivals = load.arrivals_per_s();
                arrivals / (1.0 + arrivals * awake_s)
            }
            Driver::Wake(_) => 0.0,
            Driver::Cold => {
                load.arrivals_per_s() * (1.0 + load.connections / CONNECTIONS_IN_CACHE).log2()
            }
            Driver::Message(variant) if *variant == load.variant => load.messages,
            Driver::Message(_) => 0.0,
            Driver::Sealed => load.sealed,
            Driver::Delivery => load.deliveries,
            Driver::Opened => load.opened,
            Driver::Full => load.full,
            Driver::Resumed => load.resumed,
        }
    }

    /// Its name. `split` is the key whose values have costs of their own, if there is one.
    pub fn name(&self, split: Option<&str>) -> String {
        match (self, split) {
            (Driver::Process, _) => "the process itself, a second".to_owned(),
            (Driver::Connection, _) => "a connection held, a second".to_owned(),
            (Driver::Wake(variant), Some(split)) => format!("a wake-up, {split}={variant}"),
            (Driver::Wake(_), None) => "a wake-up".to_owned(),
            (Driver::Cold, _) => "a message, when connections double beyond 1,000".to_owned(),
            (Driver::Message(variant), Some(split)) => format!("a message, {split}={variant}"),
            (Driver::Message(_), None) => "a message".to_owned(),
            (Driver::Sealed, _) => "TLS around a message".to_owned(),
            (Driver::Delivery, _) => "a delivery to a subscriber".to_owned(),
            (Driver::Opened, _) => "a connection opened and closed".to_owned(),
            (Driver::Full, _) => "the same with a full TLS handshake".to_owned(),
            (Driver::Resumed, _) => "the same with a resumed TLS handshake".to_owned(),
        }
    }
}

/// The fitted costs of a family.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    /// Drivers of the cost, in the order of the coefficients.
    pub drivers: Vec<Driver>,
    /// The fit; `None` where there is none.
    pub model: Option<CostModel>,
    /// Measured over predicted, of every cell that was not fitted when it was predicted.
    pub ratios: Vec<f64>,
    /// The fit of the process's memory: itself, a connection, one inside TLS.
    pub memory: Option<Memory>,
}

/// The fitted memory of a family's process.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    model: CostModel,
    has: [bool; 2],
}

impl Memory {
    /// Bytes of the process without connections, and those of one.
    pub fn of(&self, found: &Coefficients, is_tls: bool) -> Option<(f64, f64)> {
        let at = usize::from(is_tls);
        let place = 1 + self.has[..at].iter().filter(|has| **has).count();
        self.has[at].then(|| (found.each[0], found.each[place]))
    }

    /// The best fit, and that of resample `number`.
    pub fn best(&self) -> &Coefficients {
        &self.model.best
    }

    /// The fit to resample `number`, counted round.
    pub fn draw(&self, number: usize) -> &Coefficients {
        &self.model.draws[number % self.model.draws.len()]
    }
}

impl Family {
    /// Cores that this load takes.
    pub fn cores(&self, load: &Load, found: &Coefficients) -> f64 {
        let amounts = self.drivers.iter().map(|driver| driver.amount(load, found.shape));
        found.each.iter().zip(amounts).map(|(each, amount)| each * amount).sum()
    }

    /// Driver of this load that no cell of the family showed.
    pub fn unknown(&self, load: &Load) -> Option<Driver> {
        let needed = [
            Driver::Connection,
            Driver::Message(load.variant.clone()),
            Driver::Sealed,
            Driver::Delivery,
            Driver::Opened,
            Driver::Full,
            Driver::Resumed,
        ];
        let is_needed = |driver: &Driver| driver.amount(load, 0.0) > 0.0;
        needed.into_iter().filter(is_needed).find(|driver| !self.drivers.contains(driver))
    }

    /// The coefficient of this driver in these; 0 where it is none.
    pub fn each(&self, driver: &Driver, found: &Coefficients) -> f64 {
        self.drivers.iter().position(|known| known == driver).map_or(0.0, |at| found.each[at])
    }

    /// What an answer of the best fit is multiplied by, so that half of the cells that were
    /// predicted cost more than that and half cost less: the median of the ratios, 1 where
    /// there are none.
    pub fn correction(&self) -> f64 {
        let mut ratios = self.ratios.clone();
        ratios.sort_unstable_by(f64::total_cmp);
        if ratios.is_empty() { 1.0 } else { interpolated(&ratios, 0.5) }
    }

    /// For every resample its coefficients, and by what its answers were off where they could be
    /// checked: one of the ratios, drawn.
    pub fn draws(&self) -> Vec<(&Coefficients, f64)> {
        let Some(model) = &self.model else { return Vec::new() };
        let mut random = Random::new(SEED);
        let mut ratio = || match self.ratios.len() {
            0 => 1.0,
            n => self.ratios[random.index(n)],
        };
        model.draws.iter().map(|draw| (draw, ratio())).collect()
    }
}

/// Fits the family, and holds it against what it did not see.
pub(super) fn weigh(
    asked: &FamilyAsked,
    all: &Asked,
    fitted: &[Observed],
    checked: &[Observed],
) -> (Family, FamilyShown) {
    let own = |cells: &[Observed]| -> Vec<Observed> {
        cells.iter().filter(|cell| cell.way.family == asked.name).cloned().collect()
    };
    let (fitted, checked) = (own(fitted), own(checked));
    let mut shown = FamilyShown {
        name: asked.name.clone(),
        label: asked.label.clone(),
        terms: Vec::new(),
        awake_s: None,
        correction: None,
        condition: None,
        cells: fitted.len(),
        runs: fitted.iter().map(|cell| cell.repetitions.len()).sum(),
        residuals: Vec::new(),
        held_out: Vec::new(),
        held_out_error: None,
        checked: Vec::new(),
        checked_error: None,
        error_max: all.held_out_error_max,
        is_predictive: false,
        refused: None,
        memory: None,
    };
    let mut family = Family { memory: memory(&fitted), ..Family::default() };
    shown.memory = family.memory.as_ref().and_then(memory_shown);
    match fit(&fitted) {
        Ok((drivers, model)) => (family.drivers, family.model) = (drivers, Some(model)),
        Err(why) => shown.refused = Some(why),
    }
    if let Some(model) = family.model.clone() {
        tell(&mut shown, &mut family, &model, asked, (&fitted, &checked));
    }
    (family, shown)
}

/// The terms with their intervals, and all predictions.
fn tell(
    shown: &mut FamilyShown,
    family: &mut Family,
    model: &CostModel,
    asked: &FamilyAsked,
    (fitted, checked): (&[Observed], &[Observed]),
) {
    let has_wakes = family.drivers.iter().any(|driver| matches!(driver, Driver::Wake(_)));
    shown.awake_s = has_wakes.then_some(model.best.shape);
    shown.condition = Some(model.condition);
    let term = |(at, driver): (usize, &Driver)| {
        let interval = model.interval(at);
        Term {
            name: driver.name(asked.split.as_deref()),
            cpu_us: model.best.each[at] * 1e6,
            low: interval.low * 1e6,
            high: interval.high * 1e6,
        }
    };
    shown.terms = family.drivers.iter().enumerate().map(term).collect();
    let rows = |shape: f64| rows(fitted, &family.drivers, shape);
    let groups = groups(fitted);
    let held = predict(&SHAPES_S, rows, &groups, PARTS, FLOOR_CORES);
    let held = held.iter().map(|cell| HeldOutShown {
        link: fitted[cell.group].link.clone(),
        measured_percent: cell.measured * 100.0,
        predicted_percent: cell.predicted.map(|predicted| predicted * 100.0),
    });
    shown.held_out = held.collect();
    let by_model = |cell: &Observed| {
        let predicted = cell.mean(|each| family.cores(&cell.load(each), &model.best));
        let amounts = cell.repetitions.first().map(|each| cell.load(each));
        let is_known = amounts.is_some_and(|load| family.unknown(&load).is_none());
        HeldOutShown {
            link: cell.link.clone(),
            measured_percent: cell.mean(|each| each.cores) * 100.0,
            predicted_percent: is_known.then_some(predicted * 100.0),
        }
    };
    shown.residuals = fitted.iter().map(by_model).collect();
    shown.checked = checked.iter().map(by_model).collect();
    shown.held_out_error = error(&shown.held_out);
    shown.checked_error = error(&shown.checked);
    let is_small = |error: Option<f64>| error.is_some_and(|error| error <= shown.error_max);
    shown.is_predictive =
        is_small(shown.held_out_error) && (checked.is_empty() || is_small(shown.checked_error));
    family.ratios = shown.held_out.iter().chain(&shown.checked).filter_map(ratio).collect();
    shown.correction = Some(family.correction());
}

/// Fits the drivers; without caches or wake-ups if these cannot be distinguished from messages.
fn fit(cells: &[Observed]) -> Result<(Vec<Driver>, CostModel), String> {
    let all = drivers(cells);
    let fitted = |drivers: Vec<Driver>| {
        let rows = |shape: f64| rows(cells, &drivers, shape);
        let model = CostModel::fit_shaped(&SHAPES_S, rows, &groups(cells), FLOOR_CORES, BOOTSTRAP);
        model.map(|model| (drivers, model))
    };
    let is_cold = |driver: &Driver| *driver == Driver::Cold;
    let is_wake = |driver: &Driver| matches!(driver, Driver::Wake(_));
    let without = |is_left_out: &dyn Fn(&Driver) -> bool| {
        all.iter().filter(|driver| !is_left_out(driver)).cloned().collect::<Vec<Driver>>()
    };
    fitted(all.clone())
        .or_else(|_| fitted(without(&is_cold)))
        .or_else(|_| fitted(without(&is_wake)))
        .or_else(|_| fitted(without(&|driver| is_cold(driver) || is_wake(driver))))
        .map_err(|why| why.to_string())
}

/// Drivers that occur in these cells.
fn drivers(cells: &[Observed]) -> Vec<Driver> {
    let loads: Vec<Load> =
        cells.iter().flat_map(|cell| cell.repetitions.iter().map(|each| cell.load(each))).collect();
    let mut variants: Vec<String> = cells.iter().map(|cell| cell.way.variant.clone()).collect();
    variants.sort_unstable();
    variants.dedup();
    let mut drivers = vec![Driver::Process, Driver::Connection];
    drivers.extend(variants.iter().cloned().map(Driver::Wake));
    drivers.extend(variants.into_iter().map(Driver::Message));
    drivers.extend([Driver::Cold, Driver::Sealed, Driver::Delivery]);
    drivers.extend([Driver::Opened, Driver::Full, Driver::Resumed]);
    drivers.retain(|driver| loads.iter().any(|load| driver.amount(load, 0.0) > 0.0));
    drivers
}

fn rows(cells: &[Observed], drivers: &[Driver], shape: f64) -> Vec<Row> {
    let row = |cell: &Observed, each: &Amounts| {
        let load = cell.load(each);
        let drivers = drivers.iter().map(|driver| driver.amount(&load, shape)).collect();
        Row { drivers, cost: each.cores }
    };
    cells.iter().flat_map(|cell| cell.repetitions.iter().map(move |each| row(cell, each))).collect()
}

/// The number of the cell of every row.
fn groups(cells: &[Observed]) -> Vec<usize> {
    let of = |(group, cell): (usize, &Observed)| vec![group; cell.repetitions.len()];
    cells.iter().enumerate().flat_map(of).collect()
}

/// Root mean square of the errors, each as a share of what was measured; below the floor, where
/// costs scatter alike, as a share of that.
fn error(cells: &[HeldOutShown]) -> Option<f64> {
    let of = |cell: &HeldOutShown| {
        let off = cell.predicted_percent? - cell.measured_percent;
        Some((off / cell.measured_percent.max(FLOOR_CORES * 100.0)).powi(2))
    };
    let squares: Vec<f64> = cells.iter().filter_map(of).collect();
    let n = squares.len() as f64;
    (n > 0.0).then(|| (squares.iter().sum::<f64>() / n).sqrt())
}

/// Measured over predicted; `None` below the floor, where a relative error has no meaning.
fn ratio(cell: &HeldOutShown) -> Option<f64> {
    let predicted = cell.predicted_percent.filter(|predicted| *predicted > 0.0)?;
    let is_told = cell.measured_percent > FLOOR_CORES * 100.0;
    is_told.then(|| cell.measured_percent / predicted)
}

/// Memory against connections held; `None` where nothing sets them apart.
fn memory(cells: &[Observed]) -> Option<Memory> {
    let held =
        |is_tls: bool| cells.iter().any(|cell| cell.way.is_tls == is_tls && cell.connections > 0.0);
    let has = [held(false), held(true)];
    let of_cell = |(group, cell): (usize, &Observed)| {
        let inside =
            if cell.way.is_tls { [0.0, cell.connections] } else { [cell.connections, 0.0] };
        let inside = inside.into_iter().zip(has).filter(|(_, has)| *has).map(|(held, _)| held);
        let drivers: Vec<f64> = std::iter::once(1.0).chain(inside).collect();
        let costs = cell.repetitions.iter().filter_map(|each| each.memory);
        let row = |cost| (Row { drivers: drivers.clone(), cost }, group);
        costs.map(row).collect::<Vec<(Row, usize)>>()
    };
    let (rows, groups): (Vec<Row>, Vec<usize>) = cells.iter().enumerate().flat_map(of_cell).unzip();
    let model = CostModel::fit(&rows, &groups, FLOOR_BYTES, BOOTSTRAP).ok()?;
    Some(Memory { model, has })
}

fn memory_shown(memory: &Memory) -> Option<MemoryShown> {
    let (base_bytes, connection_bytes) = memory.of(memory.best(), false)?;
    let tls_connection_bytes = memory.of(memory.best(), true).map(|(_, each)| each);
    Some(MemoryShown { base_bytes, connection_bytes, tls_connection_bytes })
}

/// Candidate times for which a woken server stays awake, seconds.
const SHAPES_S: [f64; 9] = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3];

/// The state of this number of connections, at some 5 kB with the kernel's part, is about what the
/// second-level cache of a core holds.
const CONNECTIONS_IN_CACHE: f64 = 1e3;

/// Below this number of cores, runs scatter by a constant: a fifth of a percent of one core.
const FLOOR_CORES: f64 = 2e-3;

/// Below this number of bytes, the memory of a process scatters by a constant.
const FLOOR_BYTES: f64 = 1e6;

/// A third of the cells is held out at a time.
const PARTS: usize = 3;

const SEED: u64 = 0xFA12;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 1_000, seed: SEED };
