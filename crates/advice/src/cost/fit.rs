//! Fits the drivers to cells, and predicts cells that were held out.

use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::cost_model::{Coefficients, CostModel, Prediction, Row, predict};

use super::driver::Driver;
use super::load::Load;

/// One repetition of a cell: its load, and the cores that the server used.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The load.
    pub load: Load,
    /// Cores.
    pub cores: f64,
}

/// Drivers with their fitted costs.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Drivers of the cost, in the order of the coefficients.
    pub drivers: Vec<Driver>,
    /// The fit.
    pub model: CostModel,
}

impl Fitted {
    /// Fits the drivers that occur in these cells, each a list of repetitions; without caches or
    /// wake-ups if these cannot be distinguished from messages.
    ///
    /// # Errors
    /// Why there is no fit.
    pub fn of(cells: &[Vec<Measured>]) -> Result<Fitted, String> {
        Fitted::with(cells, drivers(cells))
    }

    /// Fits the drivers but that of caches, which few cells cannot separate from messages.
    ///
    /// # Errors
    /// Why there is no fit.
    pub fn without_caches(cells: &[Vec<Measured>]) -> Result<Fitted, String> {
        let all = drivers(cells).into_iter().filter(|driver| *driver != Driver::Cold);
        Fitted::with(cells, all.collect())
    }

    fn with(cells: &[Vec<Measured>], all: Vec<Driver>) -> Result<Fitted, String> {
        let fitted = |drivers: Vec<Driver>| {
            let rows = |shape: f64| rows(cells, &drivers, shape);
            let groups = groups(cells);
            let model = CostModel::fit_shaped(&SHAPES_S, rows, &groups, FLOOR_CORES, BOOTSTRAP);
            model.map(|model| Fitted { drivers: drivers.clone(), model })
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

    /// Cores that this load takes with these coefficients.
    pub fn cores(&self, load: &Load, found: &Coefficients) -> f64 {
        let amounts = self.drivers.iter().map(|driver| driver.amount(load, found.shape));
        found.each.iter().zip(amounts).map(|(each, amount)| each * amount).sum()
    }

    /// Driver of this load that no cell showed. Bytes count only where sizes were varied.
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

    /// The coefficient of this driver in these; 0 where there is none.
    pub fn each(&self, driver: &Driver, found: &Coefficients) -> f64 {
        self.drivers.iter().position(|known| known == driver).map_or(0.0, |at| found.each[at])
    }
}

/// Predicts every cell by a fit to two thirds of the others.
pub fn held_out(cells: &[Vec<Measured>], drivers: &[Driver]) -> Vec<Prediction> {
    let rows = |shape: f64| rows(cells, drivers, shape);
    predict(&SHAPES_S, rows, &groups(cells), PARTS, FLOOR_CORES)
}

/// Root mean square of the errors, each as a share of what was measured; below the floor, where
/// costs scatter by a constant, as a share of that. Pairs are measured and predicted cores.
pub fn error(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let of = |(measured, predicted): (f64, f64)| {
        ((predicted - measured) / measured.max(FLOOR_CORES)).powi(2)
    };
    let squares: Vec<f64> = pairs.map(of).collect();
    let n = squares.len() as f64;
    (n > 0.0).then(|| (squares.iter().sum::<f64>() / n).sqrt())
}

/// Drivers that occur in these cells.
fn drivers(cells: &[Vec<Measured>]) -> Vec<Driver> {
    let loads: Vec<&Load> = cells.iter().flatten().map(|each| &each.load).collect();
    let mut variants: Vec<String> = loads.iter().map(|load| load.variant.clone()).collect();
    variants.sort_unstable();
    variants.dedup();
    let mut drivers = vec![Driver::Process, Driver::Connection];
    drivers.extend(variants.iter().cloned().map(Driver::Wake));
    drivers.extend(variants.into_iter().map(Driver::Message));
    drivers.extend([Driver::Cold, Driver::Sealed, Driver::Byte, Driver::SealedByte]);
    drivers.extend([Driver::Delivery, Driver::Opened, Driver::Full, Driver::Resumed]);
    drivers.retain(|driver| loads.iter().any(|load| driver.amount(load, 0.0) > 0.0));
    drivers
}

fn rows(cells: &[Vec<Measured>], drivers: &[Driver], shape: f64) -> Vec<Row> {
    let row = |each: &Measured| {
        let drivers = drivers.iter().map(|driver| driver.amount(&each.load, shape)).collect();
        Row { drivers, cost: each.cores }
    };
    cells.iter().flatten().map(row).collect()
}

/// The number of the cell of every row.
fn groups(cells: &[Vec<Measured>]) -> Vec<usize> {
    let of = |(group, cell): (usize, &Vec<Measured>)| vec![group; cell.len()];
    cells.iter().enumerate().flat_map(of).collect()
}

/// Candidate times for which a woken server stays awake, seconds.
const SHAPES_S: [f64; 9] = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3];

/// Below this number of cores, runs scatter by a constant: a fifth of a percent of one core.
pub const FLOOR_CORES: f64 = 2e-3;

/// A third of the cells is held out at a time.
const PARTS: usize = 3;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 1_000, seed: 0xFA12 };
