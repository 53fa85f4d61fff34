//! Costs: the drivers of a server's processor time, fitted to the cells of a family, and
//! compared with cells that were not fitted.

use weigh_advice::cost::{Driver, FLOOR_CORES, Fitted, Load, Measured, error, held_out};
use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::cost_model::{Coefficients, CostModel, Row};
use weigh_stats::quantile::interpolated;
use weigh_stats::random::Random;

use super::asked::{Asked, FamilyAsked};
use super::observed::{Amounts, Observed};
use super::outcome::{FamilyShown, HeldOutShown, MemoryShown, Term};

/// The fitted costs of a family.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    /// Drivers of the cost and their fit; `None` where there is none.
    pub fitted: Option<Fitted>,
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
    /// The fit; `None` where there is none.
    pub fn model(&self) -> Option<&CostModel> {
        self.fitted.as_ref().map(|fitted| &fitted.model)
    }

    /// Cores that this load takes; 0 without a fit.
    pub fn cores(&self, load: &Load, found: &Coefficients) -> f64 {
        self.fitted.as_ref().map_or(0.0, |fitted| fitted.cores(load, found))
    }

    /// Driver of this load that no cell of the family showed.
    pub fn unknown(&self, load: &Load) -> Option<Driver> {
        self.fitted.as_ref()?.unknown(load)
    }

    /// The coefficient of this driver in these; 0 where it is none.
    pub fn each(&self, driver: &Driver, found: &Coefficients) -> f64 {
        self.fitted.as_ref().map_or(0.0, |fitted| fitted.each(driver, found))
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
        let Some(model) = self.model() else { return Vec::new() };
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
    let evidence: Vec<Vec<Measured>> = fitted.iter().map(measured).collect();
    match Fitted::of(&evidence) {
        Ok(found) => {
            family.fitted = Some(found.clone());
            tell(&mut shown, &mut family, &found, asked, (&fitted, &checked));
        }
        Err(why) => shown.refused = Some(why),
    }
    (family, shown)
}

/// The terms with their intervals, and all predictions.
fn tell(
    shown: &mut FamilyShown,
    family: &mut Family,
    found: &Fitted,
    asked: &FamilyAsked,
    (fitted, checked): (&[Observed], &[Observed]),
) {
    let Fitted { drivers, model } = found;
    let has_wakes = drivers.iter().any(|driver| matches!(driver, Driver::Wake(_)));
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
    shown.terms = drivers.iter().enumerate().map(term).collect();
    let evidence: Vec<Vec<Measured>> = fitted.iter().map(measured).collect();
    let held = held_out(&evidence, drivers);
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
    shown.held_out_error = error(pairs(&shown.held_out));
    shown.checked_error = error(pairs(&shown.checked));
    let is_small = |error: Option<f64>| error.is_some_and(|error| error <= shown.error_max);
    shown.is_predictive =
        is_small(shown.held_out_error) && (checked.is_empty() || is_small(shown.checked_error));
    family.ratios = shown.held_out.iter().chain(&shown.checked).filter_map(ratio).collect();
    shown.correction = Some(family.correction());
}

/// The repetitions of a cell, with their loads.
fn measured(cell: &Observed) -> Vec<Measured> {
    let of = |each: &Amounts| Measured { load: cell.load(each), cores: each.cores };
    cell.repetitions.iter().map(of).collect()
}

/// Measured and predicted cores of the cells that could be predicted.
fn pairs(cells: &[HeldOutShown]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let of = |cell: &HeldOutShown| {
        Some((cell.measured_percent / 100.0, cell.predicted_percent? / 100.0))
    };
    cells.iter().filter_map(of)
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

/// Below this number of bytes, the memory of a process scatters by a constant.
const FLOOR_BYTES: f64 = 1e6;

const SEED: u64 = 0xFA12;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 1_000, seed: SEED };
