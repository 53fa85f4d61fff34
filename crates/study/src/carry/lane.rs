//! One line of the answer: what was carried, and what the costs say of more.

use weigh_report::figures::{count, time};
use weigh_stats::cost_model::{Coefficients, ends};

use super::asked::{Asked, LaneAsked};
use super::family::{Family, Load};
use super::observed::{Observed, Way, arrivals};
use super::outcome::{Carried, Floor, LanePoint, LaneShown, Reach, SearchShown};
use crate::outcome::Link;
use crate::runs::{RunState, Runs};

/// Weighs a lane; `cells` are all that were run.
pub(super) fn weigh(
    lane: &LaneAsked,
    asked: &Asked,
    family: &Family,
    cells: &[&Observed],
    runs: &Runs,
) -> LaneShown {
    let way = Way::of_lane(lane);
    let own: Vec<&Observed> = cells.iter().copied().filter(|cell| cell.way == way).collect();
    let met: Vec<&Observed> = own.iter().copied().filter(|cell| cell.meets(asked)).collect();
    let is_of_the_kind = |cell: &&&Observed| {
        cell.way.family == way.family && cell.way.is_tls == way.is_tls && cell.meets(asked)
    };
    let held = cells.iter().filter(is_of_the_kind).map(|cell| cell.connections);
    let mut shown = LaneShown {
        label: lane.label.clone(),
        family: lane.family.clone(),
        is_tls: lane.tls,
        is_per_connection: lane.per_connection,
        floor: floor(&met, asked),
        search: search(&way, asked, runs),
        carried: Vec::new(),
        rate_measured_max: met.iter().map(|cell| rate(cell)).fold(0.0, f64::max),
        connections_measured_max: held.fold(0.0, f64::max),
        points: Vec::new(),
        line: Vec::new(),
        refused: None,
    };
    shown.points = own.iter().map(|cell| point(cell, asked)).collect();
    shown.points.sort_by(|a, b| a.devices.total_cmp(&b.devices));
    let question = Question { lane, asked, family, way };
    match question.refusal() {
        Some(why) => shown.refused = Some(why),
        None => {
            let carried = asked.server.headroom.iter();
            shown.carried = carried.map(|share| question.carried(*share, &shown)).collect();
            shown.line = question.line(&shown);
        }
    }
    shown
}

fn rate(cell: &Observed) -> f64 {
    cell.mean(|each| each.messages)
}

/// Devices for which this cell stands: its rate is theirs, and it held as many connections.
fn devices(cell: &Observed, asked: &Asked) -> f64 {
    let of_rate = rate(cell) * asked.interval.as_secs_f64();
    if cell.way.is_per_connection { of_rate } else { of_rate.min(cell.connections) }
}

fn floor(met: &[&Observed], asked: &Asked) -> Option<Floor> {
    let by_devices =
        |a: &&&Observed, b: &&&Observed| devices(a, asked).total_cmp(&devices(b, asked));
    let most = met.iter().max_by(by_devices)?;
    let devices = devices(most, asked).floor();
    Some(Floor {
        devices,
        units: (devices / f64::from(asked.sensors)).floor(),
        rate_per_s: rate(most),
        connections: most.connections,
        clients: most.clients,
        p99_ns: most.p99_ns,
        p99_has_lag: most.p99_has_lag,
        reservations: reservations(most, asked),
        link: most.link.clone(),
    })
}

/// What a cell that met the goals does not show.
fn reservations(cell: &Observed, asked: &Asked) -> Vec<String> {
    let Some(window_s) = cell.window_s else { return Vec::new() };
    let mut found = Vec::new();
    let limit_s = asked.p99.as_secs_f64();
    if cell.p99_ns.is_some() && window_s < limit_s {
        found.push(format!(
            "measured for {}, less than the {} that an answer may take: no queue had time to grow \
             so long",
            time(window_s * 1e9, false),
            time(limit_s * 1e9, false),
        ));
    }
    let sent = rate(cell) * window_s;
    if !cell.way.is_per_connection && sent < EVERYBODY * cell.clients {
        found.push(format!(
            "not every device sent: {} messages in {}, of {} devices",
            count(sent.round() as u64),
            time(window_s * 1e9, false),
            count(cell.clients as u64),
        ));
    }
    found
}

/// A cell in the picture: where its rate is that of so many devices. Where each message has a
/// connection of its own, fewer of them took turns.
fn point(cell: &Observed, asked: &Asked) -> LanePoint {
    let devices = rate(cell) * asked.interval.as_secs_f64();
    let has_all = cell.clients >= devices;
    let percents = cell.repetitions.iter().map(|each| each.cores * 100.0);
    LanePoint {
        devices,
        percent: cell.mean(|each| each.cores) * 100.0,
        low: percents.clone().fold(f64::INFINITY, f64::min),
        high: percents.fold(0.0, f64::max),
        reach: if has_all { Reach::Measured } else { Reach::Composed },
    }
}

/// The bounds of a search in this lane.
fn search(way: &Way, asked: &Asked, runs: &Runs) -> Option<SearchShown> {
    let interval_s = asked.interval.as_secs_f64();
    asked.capacity.iter().find_map(|name| {
        let Some(RunState::Made(made)) = runs.get(name) else { return None };
        let is_own = |point| Way::of(point, asked).as_ref() == Some(way);
        let limit = made.summary.limits.iter().find(|limit| is_own(&limit.point))?;
        let goal = limit.goals.first().filter(|_| limit.axis == "rate")?;
        Some(SearchShown {
            low_devices: goal.lower.map(|rate| rate * interval_s),
            high_devices: goal.upper.map(|rate| rate * interval_s),
            sentence: goal.sentence.clone(),
            link: Link {
                run: name.clone(),
                folder: made.folder.clone(),
                cell: limit.title(),
                trials: Vec::new(),
            },
        })
    })
}

/// What is asked of the model.
struct Question<'q> {
    lane: &'q LaneAsked,
    asked: &'q Asked,
    family: &'q Family,
    way: Way,
}

impl Question<'_> {
    /// What so many devices ask of the server.
    fn load(&self, devices: f64) -> Load {
        let messages = devices / self.asked.interval.as_secs_f64();
        let when = |is: bool, amount: f64| if is { amount } else { 0.0 };
        let LaneAsked { per_connection, tls, resumed, .. } = *self.lane;
        Load {
            variant: self.lane.variant.clone(),
            connections: when(!per_connection, devices),
            messages,
            arrivals: arrivals(&self.way, &self.asked.family),
            sealed: when(tls, messages),
            deliveries: 0.0,
            opened: when(per_connection && !tls, messages),
            full: when(per_connection && tls && !resumed, messages),
            resumed: when(per_connection && tls && resumed, messages),
        }
    }

    fn refusal(&self) -> Option<String> {
        if self.family.model.is_none() {
            return Some("its costs could not be fitted".to_owned());
        }
        let unknown = self.family.unknown(&self.load(1.0))?;
        Some(format!("no cell shows what this costs: {unknown:?}").to_lowercase())
    }

    /// Devices at which so many cores are in use.
    fn devices_by_processor(&self, cores: f64, found: &Coefficients) -> f64 {
        let uses = |devices: f64| self.family.cores(&self.load(devices), found);
        let (mut low, mut high) = (0.0, 1.0);
        if uses(low) >= cores {
            return 0.0;
        }
        while uses(high) < cores {
            (low, high) = (high, high * 2.0);
            // What costs nothing has no end; above this numbers are no longer told apart by one.
            if high > WHOLE_MAX {
                return f64::INFINITY;
            }
        }
        // Each step halves what is left; 40 leave less than one device of a thousand milliards.
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if uses(middle) < cores { low = middle } else { high = middle }
        }
        low
    }

    /// Devices whose connections fill the memory.
    fn devices_by_memory(&self, number: Option<usize>) -> Option<f64> {
        let memory = self.family.memory.as_ref().filter(|_| !self.lane.per_connection)?;
        let found = number.map_or(memory.best(), |number| memory.draw(number));
        let (base, each) = memory.of(found, self.lane.tls)?;
        let server = &self.asked.server;
        let each = each + server.kernel_bytes_per_connection;
        let free = (server.memory.0 as f64 - base).max(0.0);
        Some(if each > 0.0 { free / each } else { f64::INFINITY })
    }

    fn carried(&self, headroom: f64, shown: &LaneShown) -> Carried {
        let cores = headroom * self.asked.server.cores;
        let least = |number: Option<usize>, found: &Coefficients, cores: f64| {
            let processor = self.devices_by_processor(cores, found);
            let memory = self.devices_by_memory(number);
            (processor, memory)
        };
        let best = self.family.model.as_ref().map(|model| &model.best);
        let corrected = cores / self.family.correction();
        let (processor, memory) = best.map_or((0.0, None), |best| least(None, best, corrected));
        let drawn: Vec<f64> = self
            .family
            .draws()
            .iter()
            .enumerate()
            .map(|(number, (found, ratio))| {
                let (processor, memory) = least(Some(number), found, cores / ratio);
                processor.min(memory.unwrap_or(f64::INFINITY))
            })
            .collect();
        let devices = processor.min(memory.unwrap_or(f64::INFINITY));
        let [low, high] = ends(drawn);
        let is_memory = memory.is_some_and(|memory| memory < processor);
        let otherwise = if is_memory { Some(processor) } else { memory };
        let binds = match (is_memory, devices.is_finite()) {
            (_, false) => "nothing measured",
            (true, _) => "memory",
            (false, _) => "processor",
        };
        let bound = |devices: f64| devices.is_finite().then_some(devices);
        let units =
            |devices: f64| bound(devices).map(|all| (all / f64::from(self.asked.sensors)).floor());
        Carried {
            headroom,
            devices: bound(devices),
            devices_low: bound(low),
            devices_high: bound(high),
            units: units(devices),
            units_low: units(low),
            units_high: units(high),
            binds: binds.to_owned(),
            otherwise_devices: otherwise.and_then(bound),
            reach: self.reach(devices, shown),
        }
    }

    fn reach(&self, devices: f64, shown: &LaneShown) -> Reach {
        let rate = devices / self.asked.interval.as_secs_f64();
        let is_held = self.lane.per_connection || devices <= shown.connections_measured_max;
        let measured = |floor: &Floor| floor.devices.min(floor.clients);
        if shown.floor.as_ref().is_some_and(|floor| devices <= measured(floor)) {
            Reach::Measured
        } else if rate <= shown.rate_measured_max && is_held {
            Reach::Composed
        } else {
            Reach::Beyond
        }
    }

    /// The model from a thousand devices to a little beyond what it says is carried.
    fn line(&self, shown: &LaneShown) -> Vec<LanePoint> {
        let Some(model) = &self.family.model else { return Vec::new() };
        let most = shown.carried.iter().filter_map(|carried| carried.devices);
        let most = most.fold(LINE_FROM, f64::max);
        let most = shown.points.iter().map(|point| point.devices).fold(most * 1.2, f64::max);
        let draws = self.family.draws();
        let correction = self.family.correction();
        let at = |step: usize| {
            let share = step as f64 / LINE_STEPS as f64;
            let devices = LINE_FROM * (most / LINE_FROM).powf(share);
            let load = self.load(devices);
            let of = |(found, ratio): &(&Coefficients, f64)| {
                100.0 * ratio * self.family.cores(&load, found)
            };
            let [low, high] = ends(draws.iter().map(of).collect());
            let percent = 100.0 * correction * self.family.cores(&load, &model.best);
            LanePoint { devices, percent, low, high, reach: self.reach(devices, shown) }
        };
        (0..=LINE_STEPS).map(at).collect()
    }
}

/// Up to here a floating-point number holds every whole one.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The share of the devices that must have sent for all of them to count: the edges of a window may
/// cut off one or the other.
const EVERYBODY: f64 = 0.99;

/// Where the picture's lines begin.
const LINE_FROM: f64 = 1e3;

const LINE_STEPS: usize = 32;
