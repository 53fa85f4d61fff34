//! One line of the answer: what was carried, and the model's estimate for more.

use weigh_advice::cost::Load;
use weigh_report::figures::{count, time};
use weigh_stats::cost_model::{Coefficients, ends};

use super::asked::{Asked, LaneAsked};
use super::family::Family;
use super::observed::{Observed, Way, arrivals};
use super::outcome::{Carried, Floor, LanePoint, LaneShown, Reach, SearchShown};
use crate::outcome::Link;
use crate::runs::{RunState, Runs};

/// Judges a lane; `cells` are all measured cells.
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

/// Number of devices for which this cell stands: it has their rate, and held a connection each.
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

/// Limits of a cell that met the goals.
fn reservations(cell: &Observed, asked: &Asked) -> Vec<String> {
    let Some(window_s) = cell.window_s else { return Vec::new() };
    let mut found = Vec::new();
    let limit_s = asked.p99.as_secs_f64();
    if cell.p99_ns.is_some() && window_s < limit_s {
        found.push(format!(
            "measured for {}, less than the {} that an answer may take, so queues had no time to \
            grow",
            time(window_s * 1e9, false),
            time(limit_s * 1e9, false),
        ));
    }
    let sent = rate(cell) * window_s;
    if !cell.way.is_per_connection && sent < EVERYBODY * cell.clients {
        found.push(format!(
            "not all devices sent: {} messages in {}, of {} devices",
            count(sent.round() as u64),
            time(window_s * 1e9, false),
            count(cell.clients as u64),
        ));
    }
    found
}

/// A cell in the picture: where its rate is that of its number of devices. Where each message has a
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
            ended_by: goal.ended_by.as_ref().map(|ended| ended.sentence.clone()),
            link: Link {
                run: name.clone(),
                folder: made.folder.clone(),
                cell: limit.title(),
                trials: Vec::new(),
            },
        })
    })
}

/// Load for the model.
struct Question<'q> {
    lane: &'q LaneAsked,
    asked: &'q Asked,
    family: &'q Family,
    way: Way,
}

impl Question<'_> {
    /// Load of this number of devices on the server.
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
            ..Load::default()
        }
    }

    fn refusal(&self) -> Option<String> {
        if self.family.model().is_none() {
            return Some("its costs could not be fitted".to_owned());
        }
        let unknown = self.family.unknown(&self.load(1.0))?;
        let asked = self.asked.family.iter().find(|family| family.name == self.lane.family);
        let split = asked.and_then(|family| family.split.as_deref());
        Some(format!("no cell shows the cost of {}", unknown.name(split)))
    }

    /// Number of devices at which `cores` cores are in use.
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
        let best = self.family.model().map(|model| &model.best);
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
        let Some(model) = self.family.model() else { return Vec::new() };
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

/// Beginning of the picture's lines.
const LINE_FROM: f64 = 1e3;

const LINE_STEPS: usize = 32;

#[cfg(test)]
mod tests {
    use weigh_stats::bootstrap::Bootstrap;
    use weigh_stats::cost_model::{CostModel, Row};

    use weigh_advice::cost::{Driver, Fitted};

    use super::super::observed::Amounts;
    use super::*;

    fn asked() -> Asked {
        let text = r#"
            id = "x"
            question = "How many?"
            unit = "farm"
            sensors = 60
            interval = "60s"
            p99 = "1s"
            fit = ["right/x"]
            held_out_error_max = 0.25
            server.cores = 1
            server.memory = "1GiB"
            server.headroom = [1.0]
            server.kernel_bytes_per_connection = 0
            server.kernel_bytes_source = "none"
            family = [{ name = "http", label = "HTTP", protocol = "http1" }]
            lane = [
                { label = "kept", family = "http" },
                { label = "each", family = "http", per_connection = true },
            ]
        "#;
        Asked::read(&text.parse().expect("TOML"), &|_| true).expect("a sound question")
    }

    /// A message takes so many cores' seconds, and connections nothing.
    fn family(message: f64, ratios: &[f64]) -> Family {
        let row = |held: f64, rate: f64| Row {
            drivers: vec![1.0, held, rate],
            cost: 0.01 + message * rate,
        };
        let rows = [(1.0, 10.0), (1.0, 100.0), (50.0, 10.0), (50.0, 100.0), (9.0, 60.0)]
            .map(|(held, rate)| row(held, rate));
        let some = Bootstrap { resamples: 200, seed: 1 };
        let model = CostModel::fit(&rows, &[0, 1, 2, 3, 4], 1e-3, some).expect("a sound design");
        Family {
            fitted: Some(Fitted {
                drivers: vec![Driver::Process, Driver::Connection, Driver::Message(String::new())],
                model,
            }),
            ratios: ratios.to_vec(),
            memory: None,
        }
    }

    fn carried(message: f64, ratios: &[f64]) -> Carried {
        let asked = asked();
        let family = family(message, ratios);
        weigh(&asked.lane[0], &asked, &family, &[], &Runs::new()).carried.remove(0)
    }

    /// Everything cost 20 to 40 % more than was foretold: so does the answer, and it lies in the
    /// middle of its interval. At 1 ms a message and 0.01 cores of its own the server bears
    /// 1 / 1.3 - 0.01 = 759.2 messages a second.
    #[test]
    fn an_estimate_lies_inside_its_interval_though_all_ratios_are_on_one_side() {
        let found = carried(1e-3, &[1.2, 1.3, 1.4]);
        let ends = [found.devices_low, found.devices, found.devices_high].map(Option::unwrap);
        let expected = [1.4, 1.3, 1.2].map(|ratio: f64| (1.0 / ratio - 0.01) * 1e3 * 60.0);
        for (found, expected) in ends.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-6, "{ends:?} {expected:?}");
        }
        let exact = carried(1e-3, &[]).devices.unwrap();
        assert!((exact / (0.99 * 60_000.0) - 1.0).abs() < 1e-6, "{exact}");
    }

    #[test]
    fn what_costs_nothing_has_no_upper_bound() {
        let found = carried(0.0, &[]);
        assert_eq!((found.devices, found.devices_high, found.units), (None, None, None));
        assert_eq!((found.binds.as_str(), found.reach), ("nothing measured", Reach::Beyond));
    }

    /// A cell with 1,000 devices at 100 messages a second, in a window of so long.
    fn cell(lane: &LaneAsked, window_s: f64) -> Observed {
        let way = Way::of_lane(lane);
        Observed {
            connections: if way.is_per_connection { 0.0 } else { 1_000.0 },
            clients: 1_000.0,
            way,
            arrivals: 1.0,
            repetitions: vec![Amounts {
                messages: 100.0,
                opened: 0.0,
                full: 0.0,
                resumed: 0.0,
                deliveries: 0.0,
                cores: 0.1,
                memory: None,
            }],
            p99_ns: Some(5e6),
            p99_has_lag: false,
            window_s: Some(window_s),
            lost: 0,
            link: Link {
                run: "right/x".to_owned(),
                folder: "right-x".to_owned(),
                cell: "x".to_owned(),
                trials: Vec::new(),
            },
        }
    }

    #[test]
    fn a_floor_says_what_its_window_does_not_show() {
        let asked = asked();
        let of = |at: usize, window_s: f64| {
            let cell = cell(&asked.lane[at], window_s);
            floor(&[&cell], &asked).unwrap().reservations
        };
        assert_eq!(of(0, 10.0), Vec::<String>::new(), "all 1,000 sent");
        let short = of(0, 0.5);
        assert!(short.len() == 2 && short[0].contains("less than the 1.00 s"), "{short:?}");
        assert!(short[1].contains("50 messages in 500 ms, of 1,000 devices"), "{short:?}");
        assert_eq!(of(0, 9.0).len(), 1, "one in ten did not send");
        assert_eq!(of(1, 9.0), Vec::<String>::new(), "those who take turns stand for others");
        assert_eq!(of(1, 0.5).len(), 1);
    }

    /// 100 messages a second are those of 6,000 devices, and 1,000 took turns: that so many of them
    /// are carried was not measured.
    #[test]
    fn devices_that_took_turns_are_not_measured_devices() {
        let asked = asked();
        let (lane, own) = (&asked.lane[1], cell(&asked.lane[1], 10.0));
        let family = Family { fitted: None, ..family(1e-3, &[]) };
        let shown = weigh(lane, &asked, &family, &[&own], &Runs::new());
        let found = shown.floor.as_ref().unwrap();
        assert_eq!((found.devices, found.clients), (6_000.0, 1_000.0));
        assert!(found.in_words(&shown).contains("the rate of 6,000 devices, by 1,000 that took"));
        let way = Way::of_lane(lane);
        let question = Question { lane, asked: &asked, family: &family, way };
        assert_eq!(question.reach(900.0, &shown), Reach::Measured);
        assert_eq!(question.reach(6_000.0, &shown), Reach::Composed);
        assert_eq!(question.reach(6_100.0, &shown), Reach::Beyond);
        assert_eq!(shown.points[0].reach, Reach::Composed);
    }
}
