//! Costs of a family of cells: fitted, checked against cells that were held out, and with the range
//! that was measured. Outside of it there is no prediction, but the run that is missing.

use weigh_model::numbers::{exact, percent, size};
use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::cost_model::{Coefficients, CostModel, Row};
use weigh_stats::quantile::interpolated;
use weigh_stats::random::Random;

use crate::cells::{Cell, Cells, Machine, Repetition};
use crate::choice::Choice;
use crate::cost::{FLOOR_CORES, Fitted, Load, Measured, error, held_out};
use crate::drawn::{DRAWS, Drawn, factors};

/// The costs of a protocol on a server.
#[derive(Clone, Debug)]
pub struct Family {
    fitted: Result<Fitted, String>,
    memory: Option<Memory>,
    /// Measured over predicted cores, of every cell when it was held out.
    pub ratios: Vec<f64>,
    /// Root mean square error of these predictions; `None` if there were too few cells.
    pub held_out_error: Option<f64>,
    /// Where the cells are from.
    pub origin: Origin,
    /// True if sizes were varied, so that bytes have a cost of their own.
    pub has_bytes: bool,
    cells: Vec<(Origin, Cell)>,
}

/// How far the cells' machine is from the server that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Measured on this machine, by this version.
    Here,
    /// Measured on another machine of the same architecture, or by another version.
    Elsewhere,
    /// Measured on another architecture.
    OtherArchitecture,
}

#[derive(Clone, Debug)]
struct Memory {
    model: CostModel,
    has: [bool; 2],
}

impl Origin {
    /// Compares the machine of cells with this one. The kernel and the version are left out: the
    /// caller knows them.
    pub fn of(cells: &Cells, here: &Machine) -> Origin {
        let own = &cells.machine;
        if !own.architecture.is_empty() && own.architecture != here.architecture {
            Origin::OtherArchitecture
        } else if own == here && !cells.is_shipped {
            Origin::Here
        } else {
            Origin::Elsewhere
        }
    }

    /// The factor within which all costs of these cells are off together, and the one by which each
    /// option is off for itself (chosen: one family of processors differs by up to 2 in the time of
    /// a system call, and protocols by less, because they make the same calls).
    fn factors(self) -> [f64; 2] {
        match self {
            Origin::Here => [1.0, 1.0],
            Origin::Elsewhere => [2.0, 1.15],
            Origin::OtherArchitecture => [4.0, 1.4],
        }
    }

    /// Words for the answer.
    pub fn words(self) -> &'static str {
        match self {
            Origin::Here => "measured on this machine",
            Origin::Elsewhere => "measured on another machine: within a factor of 2",
            Origin::OtherArchitecture => "measured on another architecture: within a factor of 4",
        }
    }
}

impl Family {
    /// Fits the cells of a family; the farthest origin counts for all.
    pub fn of(cells: &[(&Cells, &Cell)], here: &Machine) -> Family {
        let origins = cells.iter().map(|(document, _)| Origin::of(document, here));
        let origin = origins.max_by_key(|own| *own as u8).unwrap_or(Origin::Elsewhere);
        let cells: Vec<(Origin, Cell)> = cells
            .iter()
            .map(|(document, cell)| (Origin::of(document, here), (*cell).clone()))
            .collect();
        let alone: Vec<Cell> = cells.iter().map(|(_, cell)| cell.clone()).collect();
        let has_bytes = varies_sizes(&alone);
        let evidence: Vec<Vec<Measured>> =
            alone.iter().map(|cell| cell.measured(has_bytes)).collect();
        let fitted = match evidence.len() < CELLS_OF_CACHES {
            true => Fitted::without_caches(&evidence),
            false => Fitted::of(&evidence),
        };
        let mut family = Family {
            memory: memory(&alone),
            ratios: Vec::new(),
            held_out_error: None,
            fitted,
            origin,
            has_bytes,
            cells,
        };
        if let Ok(fitted) = &family.fitted {
            let held = held_out(&evidence, &fitted.drivers);
            let pairs: Vec<(f64, f64)> =
                held.iter().filter_map(|own| Some((own.measured, own.predicted?))).collect();
            let is_told =
                |(measured, predicted): &&(f64, f64)| *measured > FLOOR_CORES && *predicted > 0.0;
            family.ratios = pairs.iter().filter(is_told).map(|(m, p)| m / p).collect();
            family.held_out_error = error(pairs.into_iter());
        }
        family
    }

    /// Cores that this load takes on a server for the option `name`; `None` without a fit.
    pub fn cores(&self, load: &Load, name: &str) -> Option<Drawn> {
        let is_finite = |own: &Drawn| own.draws.iter().all(|draw| draw.is_finite());
        self.modelled(load, name).filter(is_finite)
    }

    fn modelled(&self, load: &Load, name: &str) -> Option<Drawn> {
        let fitted = self.fitted.as_ref().ok()?;
        let draws = self.draws(name);
        let of = |(found, factor): &(&Coefficients, f64)| fitted.cores(load, found) * factor;
        let value = fitted.cores(load, &fitted.model.best) * self.correction();
        Some(Drawn { value, draws: draws.iter().map(of).collect() })
    }

    /// For every draw its coefficients, and by what factor their costs are off: by a cell that was
    /// held out, by the machine, and by the option on that machine. Empty without a fit.
    pub fn draws(&self, name: &str) -> Vec<(&Coefficients, f64)> {
        let Ok(fitted) = &self.fitted else { return Vec::new() };
        let [shared, own] = self.origin.factors();
        let (shared, own) = (factors("machine", shared), factors(name, own));
        let ratios = self.drawn_ratios(name);
        let draws = &fitted.model.draws;
        let one = |at: usize| (&draws[at % draws.len()], ratios[at] * shared[at] * own[at]);
        (0..DRAWS).map(one).collect()
    }

    /// Memory of a server with this number of connections: its process, and the kernel's part.
    pub fn memory(&self, connections: f64, is_tls: bool) -> Option<Drawn> {
        let memory = self.memory.as_ref()?;
        let at = usize::from(is_tls);
        if connections > 0.0 && !memory.has[at] {
            return None;
        }
        let place = 1 + memory.has[..at].iter().filter(|has| **has).count();
        let of = |each: &[f64]| {
            let held = if connections > 0.0 { each[place] } else { 0.0 };
            each[0] + connections * (held + KERNEL_BYTES_PER_CONNECTION)
        };
        let draws = &memory.model.draws;
        let one = |at: usize| of(&draws[at % draws.len()].each);
        let value = of(&memory.model.best.each);
        Some(Drawn { value, draws: (0..DRAWS).map(one).collect() })
    }

    /// What was measured at this very load on this machine, in place of a prediction: the mean of
    /// the repetitions of `of`, with the interval of Student's t. `None` if no such cell has three.
    pub fn measured(
        &self,
        choice: &Choice,
        load: &Load,
        size_bytes: f64,
        of: impl Fn(&Repetition) -> Option<f64>,
    ) -> Option<Drawn> {
        let near = |own: f64, asked: f64| (own - asked).abs() <= SAME * asked.max(1.0);
        let is_same = |cell: &&Cell| {
            cell.variant == choice.variant()
                && cell.is_tls == choice.is_tls
                && cell.is_per_connection != choice.is_kept
                && near(cell.rate_per_s(), load.messages)
                && near(cell.connections, load.connections)
                && near(cell.size_bytes, size_bytes)
                && near(cell.mean(|own| own.deliveries), load.deliveries)
        };
        let here = self.cells.iter().filter(|(origin, _)| *origin == Origin::Here);
        let cell = here.map(|(_, cell)| cell).rfind(is_same)?;
        let values: Option<Vec<f64>> = cell.repetitions.iter().map(of).collect();
        let values = values.filter(|values| values.len() >= REPETITIONS_MIN)?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|own| (own - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        // Student's t of few repetitions is wider than the normal distribution.
        let wider = weigh_stats::estimate::t_quantile(n - 1.0) / NORMAL;
        let mut random = Random::new(SEED ^ choice.name().len() as u64 ^ (mean.to_bits() << 1));
        let draws = (0..DRAWS).map(|_| (mean + error * wider * random.normal()).max(0.0)).collect();
        Some(Drawn { value: mean, draws })
    }

    /// Times to a confirmation of cells like this option, seconds: the least and the largest p99.
    pub fn service_s(&self, choice: &Choice) -> Option<[f64; 2]> {
        let of_kind = self.like(choice).filter_map(|cell| cell.p99_s);
        of_kind.fold(None, |range: Option<[f64; 2]>, own| {
            let [low, high] = range.unwrap_or([own, own]);
            Some([low.min(own), high.max(own)])
        })
    }

    /// Why this load cannot be predicted for this option; `None` if it can.
    pub fn outside(&self, choice: &Choice, load: &Load, size_bytes: f64) -> Option<String> {
        let fitted = match &self.fitted {
            Ok(fitted) => fitted,
            Err(why) => return Some(format!("its costs could not be fitted: {why}")),
        };
        if let Some(driver) = fitted.unknown(load) {
            return Some(format!("no cell shows the cost of {}", driver.name(Some("lane"))));
        }
        if let Some(off) = self.held_out_error.filter(|error| *error > HELD_OUT_ERROR_MAX) {
            return Some(format!(
                "cells that were held out were predicted to {} only",
                percent(off * 100.0)
            ));
        }
        let like: Vec<&Cell> = self.like(choice).collect();
        let rate = like.iter().map(|cell| cell.rate_per_s()).fold(0.0, f64::max);
        if load.messages > rate * EDGE {
            return Some(format!(
                "{} messages/s are more than the {} that were measured",
                digits(load.messages),
                digits(rate)
            ));
        }
        let all = self.cells.iter().map(|(_, cell)| cell);
        let of_kind = all.filter(|cell| cell.is_tls == choice.is_tls);
        let held = of_kind.map(|cell| cell.connections).fold(0.0, f64::max);
        if load.connections > held * EDGE {
            return Some(format!(
                "{} connections are more than the {} that were measured",
                digits(load.connections),
                digits(held)
            ));
        }
        self.outside_sizes(size_bytes)
    }

    fn outside_sizes(&self, size_bytes: f64) -> Option<String> {
        let sizes = self.cells.iter().map(|(_, cell)| cell.size_bytes).filter(|own| *own > 0.0);
        let (low, high) =
            sizes.fold((f64::INFINITY, 0.0_f64), |(low, high), own| (low.min(own), high.max(own)));
        // A small body costs little besides its message; a large one is not known where none was.
        let most = high.max(low) * if self.has_bytes { EDGE } else { SIZES_ALIKE };
        (size_bytes > most && size_bytes > SMALL_BYTES).then(|| {
            format!(
                "bodies of {} are larger than the {} that were measured",
                size(size_bytes as u64),
                size(high as u64)
            )
        })
    }

    /// Cells with messages of this lane, connections kept or not, TLS or not.
    fn like<'f>(&'f self, choice: &Choice) -> impl Iterator<Item = &'f Cell> + use<'f> {
        let (variant, is_tls, is_kept) = (choice.variant(), choice.is_tls, choice.is_kept);
        self.cells.iter().map(|(_, cell)| cell).filter(move |cell| {
            // What a connection costs is the same for all lanes.
            let is_own = cell.variant == variant || cell.is_per_connection;
            is_own && cell.is_tls == is_tls && cell.is_per_connection != is_kept
        })
    }

    /// What the best fit is multiplied by, so that half of the cells that were held out cost more.
    pub fn correction(&self) -> f64 {
        let mut ratios = self.ratios.clone();
        ratios.sort_unstable_by(f64::total_cmp);
        if ratios.is_empty() { 1.0 } else { interpolated(&ratios, 0.5) }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True without cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The fit, or why there is none.
    ///
    /// # Errors
    /// Why the drivers could not be fitted.
    pub fn fitted(&self) -> Result<&Fitted, &str> {
        self.fitted.as_ref().map_err(String::as_str)
    }

    /// For every draw, by how much a cell that was held out was off.
    fn drawn_ratios(&self, name: &str) -> Vec<f64> {
        let seed = name.bytes().fold(SEED, |sum, byte| sum.rotate_left(5) ^ u64::from(byte));
        let mut random = Random::new(seed);
        let mut ratio = || match self.ratios.len() {
            0 => 1.0,
            n => self.ratios[random.index(n)],
        };
        (0..DRAWS).map(|_| ratio()).collect()
    }
}

/// True if the largest size is at least four times the smallest, so that bytes can be separated
/// from messages.
fn varies_sizes(cells: &[Cell]) -> bool {
    let sizes = cells.iter().map(|cell| cell.size_bytes).filter(|own| *own > 0.0);
    let (low, high) =
        sizes.fold((f64::INFINITY, 0.0_f64), |(low, high), own| (low.min(own), high.max(own)));
    high >= SIZES_ALIKE * low
}

/// Memory against connections held; `None` if nothing separates them.
fn memory(cells: &[Cell]) -> Option<Memory> {
    let held =
        |is_tls: bool| cells.iter().any(|cell| cell.is_tls == is_tls && cell.connections > 0.0);
    let has = [held(false), held(true)];
    let of_cell = |(group, cell): (usize, &Cell)| {
        let inside = if cell.is_tls { [0.0, cell.connections] } else { [cell.connections, 0.0] };
        let inside = inside.into_iter().zip(has).filter(|(_, has)| *has).map(|(held, _)| held);
        let drivers: Vec<f64> = std::iter::once(1.0).chain(inside).collect();
        let costs = cell.repetitions.iter().filter_map(|each| each.memory_bytes);
        let row = |cost| (Row { drivers: drivers.clone(), cost }, group);
        costs.map(row).collect::<Vec<(Row, usize)>>()
    };
    let (rows, groups): (Vec<Row>, Vec<usize>) = cells.iter().enumerate().flat_map(of_cell).unzip();
    let bootstrap = Bootstrap { resamples: 1_000, seed: SEED };
    let model = CostModel::fit(&rows, &groups, FLOOR_BYTES, bootstrap).ok()?;
    Some(Memory { model, has })
}

/// A number with at most three digits that count.
fn digits(value: f64) -> String {
    if value < 1_000.0 { exact((value * 100.0).round() / 100.0) } else { exact(value.round()) }
}

/// Kernel memory of an open connection, bytes: growth of slab with 200,400 sockets, Linux 6.18
/// (docs/benchmarks/idle.md).
pub const KERNEL_BYTES_PER_CONNECTION: f64 = 3_900.0;

/// Root mean square error of held-out cells up to which a family predicts (study 000 allows 0.25).
pub const HELD_OUT_ERROR_MAX: f64 = 0.35;

/// With fewer cells the effect of caches is not fitted.
const CELLS_OF_CACHES: usize = 24;

/// A load this far beyond the largest that was measured still counts as measured.
const EDGE: f64 = 1.05;

/// Sizes within this factor have the same cost, within the error of the model.
const SIZES_ALIKE: f64 = 4.0;

/// A cell is of a load if it is within this share of it.
const SAME: f64 = 0.05;

/// As for all intervals.
const REPETITIONS_MIN: usize = 3;

/// Standard deviations of a normal distribution to either end of its 95 %.
const NORMAL: f64 = 1.959_963_984_540_054;

/// Bodies up to here fit into the segment that carries their message.
const SMALL_BYTES: f64 = 512.0;

/// Below this number of bytes, the memory of a process scatters by a constant.
const FLOOR_BYTES: f64 = 1e6;

const SEED: u64 = 0xAD_5E;
