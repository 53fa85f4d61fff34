//! Costs of a family of cells: fitted, checked against cells that were held out, and with the range
//! that was measured. Outside of it there is no prediction, but the run that is missing. Cells of
//! this machine are a family of their own; cells of other machines stand behind it, for loads
//! beyond it.

use weigh_model::numbers::{exact, percent, size};
use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::cost_model::{Coefficients, CostModel, Row};
use weigh_stats::random::Random;

use crate::cells::{Cell, Cells, Machine, Repetition};
use crate::choice::Choice;
use crate::cost::{Fitted, Load, Measured, error, held_out};
use crate::drawn::{DRAWS, Drawn, NORMAL, factors};
use crate::residuals::Residuals;

/// The costs of a protocol on a server.
#[derive(Clone, Debug)]
pub struct Family {
    fitted: Result<Fitted, String>,
    memory: Option<Memory>,
    residuals: Residuals,
    /// Root mean square error of cells that were held out; `None` if there were too few.
    held_out_error: Option<f64>,
    origin: Origin,
    /// True if sizes were varied, so that bytes have a cost of their own.
    has_bytes: bool,
    cells: Vec<Cell>,
    /// The same family on machines that are farther.
    beyond: Option<Box<Family>>,
}

/// How far the cells' machine is from the server that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// a system call, and protocols by less, because they make the same calls; one machine differs
    /// by a tenth from day to day).
    fn factors(self) -> [f64; 2] {
        match self {
            Origin::Here => [1.1, 1.0],
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
    /// Fits the cells of a family, those of each origin for themselves; the nearest comes first.
    /// `None` without cells.
    pub fn of(cells: &[(&Cells, &Cell)], here: &Machine) -> Option<Family> {
        let origins = [Origin::OtherArchitecture, Origin::Elsewhere, Origin::Here];
        origins.into_iter().fold(None, |beyond: Option<Family>, origin| {
            let is_own = |(document, _): &&(&Cells, &Cell)| Origin::of(document, here) == origin;
            let own: Vec<Cell> =
                cells.iter().filter(is_own).map(|(_, cell)| (*cell).clone()).collect();
            match own.is_empty() {
                true => beyond,
                false => Some(Family::fit(own, origin, beyond.map(Box::new))),
            }
        })
    }

    fn fit(cells: Vec<Cell>, origin: Origin, beyond: Option<Box<Family>>) -> Family {
        let has_bytes = varies_sizes(&cells);
        let evidence: Vec<Vec<Measured>> =
            cells.iter().map(|cell| cell.measured(has_bytes)).collect();
        let fitted = match evidence.len() {
            few @ ..CELLS_MIN => Err(format!("{few} cells are too few")),
            ..CELLS_OF_CACHES => Fitted::without_caches(&evidence),
            _ => Fitted::of(&evidence),
        };
        let mut family = Family {
            memory: memory(&cells, has_bytes),
            residuals: Residuals::default(),
            held_out_error: None,
            fitted,
            origin,
            has_bytes,
            cells,
            beyond,
        };
        if let Ok(fitted) = &family.fitted {
            family.residuals = Residuals::of(&family.cells, &evidence, fitted);
            let held = held_out(&evidence, &fitted.drivers);
            let pairs = held.iter().filter_map(|own| Some((own.measured, own.predicted?)));
            family.held_out_error = error(pairs);
        }
        family
    }

    /// The nearest cells that hold this load of this option.
    ///
    /// # Errors
    /// Why there are none; the reason of the nearest cells that could be fitted.
    pub fn at(&self, choice: &Choice, load: &Load, size_bytes: f64) -> Result<&Family, String> {
        let Some(why) = self.outside_own(choice, load, size_bytes) else { return Ok(self) };
        let Some(beyond) = &self.beyond else { return Err(why) };
        let found = beyond.at(choice, load, size_bytes);
        found.map_err(|farther| if self.fitted.is_ok() { why } else { farther })
    }

    /// The nearest cells from which an option with this load can be sized: those that hold it, else
    /// those that show all of its costs.
    pub fn sizing(&self, choice: &Choice, load: &Load, size_bytes: f64) -> Option<&Family> {
        let shows =
            |own: &&Family| own.fitted.as_ref().is_ok_and(|fitted| fitted.unknown(load).is_none());
        let all = || std::iter::successors(Some(self), |own| own.beyond.as_deref());
        self.at(choice, load, size_bytes).ok().or_else(|| all().find(shows))
    }

    /// What an option costs at least, where only its rate is beyond the measured cells: its cost at
    /// the highest rate that was measured, which is returned too. Costs do not fall with the rate.
    pub fn floor(&self, choice: &Choice, load: &Load, size_bytes: f64) -> Option<(Drawn, f64)> {
        let rate = self.like(choice).map(Cell::rate_per_s).fold(0.0, f64::max);
        let own = (rate > 0.0 && load.messages > rate).then(|| load.at_rate(rate));
        let own = own.filter(|own| self.outside_own(choice, own, size_bytes).is_none());
        let found = own.and_then(|own| Some((self.cores(&own, choice)?, rate)));
        found.or_else(|| self.beyond.as_ref()?.floor(choice, load, size_bytes))
    }

    /// Cores that this load takes on a server for an option; `None` without a fit.
    pub fn cores(&self, load: &Load, choice: &Choice) -> Option<Drawn> {
        let is_finite = |own: &Drawn| own.draws.iter().all(|draw| draw.is_finite());
        self.modelled(load, choice).filter(is_finite)
    }

    fn modelled(&self, load: &Load, choice: &Choice) -> Option<Drawn> {
        let fitted = self.fitted.as_ref().ok()?;
        let best = fitted.cores(load, &fitted.model.best);
        let of = |(found, factor): (&Coefficients, f64)| fitted.cores(load, found) * factor;
        let draws = self.draws(choice, load).into_iter().map(of);
        Some(Drawn { value: best * self.correction(choice, load), draws: draws.collect() })
    }

    /// For every draw its coefficients, and by what factor costs are off near this load: by what
    /// the fit leaves, by the machine, and by the option on that machine. Empty without a fit.
    pub fn draws(&self, choice: &Choice, load: &Load) -> Vec<(&Coefficients, f64)> {
        let Ok(fitted) = &self.fitted else { return Vec::new() };
        let [shared, own] = self.origin.factors();
        let (shared, own) = (factors("machine", shared), factors(&choice.name(), own));
        let ratios = self.residuals.drawn(&choice.name(), !choice.is_kept, load.place());
        let draws = &fitted.model.draws;
        let one = |at: usize| (&draws[at % draws.len()], ratios[at] * shared[at] * own[at]);
        (0..DRAWS).map(one).collect()
    }

    /// Memory of a server with this number of connections and bodies of this size: its process, and
    /// the kernel's part.
    pub fn memory(&self, connections: f64, is_tls: bool, size_bytes: f64) -> Option<Drawn> {
        let is_beyond = connections > self.held(is_tls) * EDGE;
        let reaches = |own: &&Family| connections <= own.held(is_tls) * EDGE;
        if let Some(farther) = self.beyond.as_deref().filter(|own| is_beyond && reaches(own)) {
            return farther.memory(connections, is_tls, size_bytes);
        }
        let own = self.memory_own(connections, is_tls, size_bytes);
        own.or_else(|| self.beyond.as_ref()?.memory(connections, is_tls, size_bytes))
    }

    /// The most connections that were measured.
    fn held(&self, is_tls: bool) -> f64 {
        let of_kind = self.cells.iter().filter(|cell| cell.is_tls == is_tls);
        of_kind.map(|cell| cell.connections).fold(0.0, f64::max)
    }

    fn memory_own(&self, connections: f64, is_tls: bool, size_bytes: f64) -> Option<Drawn> {
        let memory = self.memory.as_ref()?;
        let at = usize::from(is_tls);
        if connections > 0.0 && !memory.has[at] {
            return None;
        }
        let place = 1 + memory.has[..at].iter().filter(|has| **has).count();
        let of = |each: &[f64]| {
            let held = if connections > 0.0 { each[place] } else { 0.0 };
            // Servers may keep buffers for bodies, whatever the number of connections.
            let bodies = if self.has_bytes { each[each.len() - 1] * size_bytes } else { 0.0 };
            each[0] + bodies + connections * (held + KERNEL_BYTES_PER_CONNECTION)
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
        if self.origin != Origin::Here {
            return None;
        }
        let cell = self.cells.iter().rfind(is_same)?;
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
        let range = of_kind.fold(None, |range: Option<[f64; 2]>, own| {
            let [low, high] = range.unwrap_or([own, own]);
            Some([low.min(own), high.max(own)])
        });
        range.or_else(|| self.beyond.as_ref()?.service_s(choice))
    }

    /// Why these cells alone cannot predict this load of this option; `None` if they can.
    fn outside_own(&self, choice: &Choice, load: &Load, size_bytes: f64) -> Option<String> {
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
        let held = self.held(choice.is_tls);
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
        let sizes = self.cells.iter().map(|cell| cell.size_bytes).filter(|own| *own > 0.0);
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
        self.cells.iter().filter(move |cell| {
            // What a connection costs is the same for all lanes.
            let is_own = cell.variant == variant || cell.is_per_connection;
            is_own && cell.is_tls == is_tls && cell.is_per_connection != is_kept
        })
    }

    /// What the best fit is multiplied by for an option near a load, so that half of the nearest
    /// cells cost more.
    pub fn correction(&self, choice: &Choice, load: &Load) -> f64 {
        self.residuals.median(!choice.is_kept, load.place())
    }

    /// Where the cells are from, in words.
    pub fn words(&self) -> String {
        let own = format!("{} cells, {}", self.cells.len(), self.origin.words());
        match &self.beyond {
            None => own,
            Some(beyond) => format!("{own}; beyond them {}", beyond.words()),
        }
    }

    /// The fit of these cells, or why there is none.
    ///
    /// # Errors
    /// Why the drivers could not be fitted.
    pub fn fitted(&self) -> Result<&Fitted, &str> {
        self.fitted.as_ref().map_err(String::as_str)
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

/// Memory against connections held, and against sizes if they were varied; `None` if nothing
/// separates them.
fn memory(cells: &[Cell], has_bytes: bool) -> Option<Memory> {
    let held =
        |is_tls: bool| cells.iter().any(|cell| cell.is_tls == is_tls && cell.connections > 0.0);
    let has = [held(false), held(true)];
    let of_cell = |(group, cell): (usize, &Cell)| {
        let inside = if cell.is_tls { [0.0, cell.connections] } else { [cell.connections, 0.0] };
        let inside = inside.into_iter().zip(has).filter(|(_, has)| *has).map(|(held, _)| held);
        let size = has_bytes.then_some(cell.size_bytes);
        let drivers: Vec<f64> = std::iter::once(1.0).chain(inside).chain(size).collect();
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

/// Fewer cells do not separate the costs.
const CELLS_MIN: usize = 8;

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

/// Bodies up to here fit into the segment that carries their message.
const SMALL_BYTES: f64 = 512.0;

/// Below this number of bytes, the memory of a process scatters by a constant.
const FLOOR_BYTES: f64 = 1e6;

const SEED: u64 = 0xAD_5E;
