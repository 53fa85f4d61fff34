//! The advice: constraints first, then figures, the advised set, break-even values, and what would
//! decide. One document, `weigh/advice/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_energy::Model;
use weigh_model::numbers::{bytes, count, percent, rough};

use crate::account::Bounds;
use crate::advised::{Advised, CONFIDENCE, ZONE};
use crate::break_even::{Axis, BreakEven, find};
use crate::cells::{Cells, Machine, by_family};
use crate::choice::Choice;
use crate::criterion::Criterion;
use crate::deciding::{self, Deciding};
use crate::drawn::{Drawn, Shown};
use crate::exclusion::{Verdict, by_abilities, by_figures};
use crate::family::Family;
use crate::figures::{Candidate, Figures, Ground};
use crate::link::Link;
use crate::refusal::Missing;
use crate::session::Session;
use crate::situation::Situation;

/// The name of the format.
pub const SCHEMA: &str = "weigh/advice/1";

/// An option as it is offered: what its connections carry is known at any size.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The option.
    pub choice: Choice,
    /// What its connections carry at the size of the situation; or why a dry trial failed.
    pub session: Result<Session, String>,
    /// Round trips to open a connection.
    pub open_trips: f64,
}

/// Everything that an answer is made from.
pub struct Inputs<'i> {
    /// The situation.
    pub situation: &'i Situation,
    /// The options.
    pub offers: &'i [Offer],
    /// Measured cells.
    pub cells: &'i [Cells],
    /// This machine.
    pub here: &'i Machine,
    /// The network.
    pub link: &'i Link,
    /// The device and its radio, with the largest message in bytes of the radio's coefficients.
    pub energy: Option<(&'i Model, Option<u64>)>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("$id" = "urn:weigh:schema:advice:1"))]
pub struct Advice {
    /// `weigh/advice/1`.
    pub schema: String,
    /// The situation.
    pub situation: Situation,
    /// Names of the options that cannot be distinguished from the best, in the order of the advice.
    pub advised: Vec<String>,
    /// The answer in a sentence.
    pub sentence: String,
    /// False if an option that may be the best could not be predicted.
    pub is_complete: bool,
    /// All options.
    pub options: Vec<OptionShown>,
    /// Where two options cost the same.
    pub break_even: Vec<BreakEven>,
    /// What one more minute would decide; null if there is nothing to decide.
    pub deciding: Option<Deciding>,
    /// A plan in TOML that measures every option that can do it.
    pub plan: String,
    /// What was assumed, a sentence each.
    pub assumptions: Vec<String>,
    /// Where the cells are from, by family.
    pub cells: BTreeMap<String, String>,
}

/// What is said of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It cannot be distinguished from the best.
    Advised,
    /// It costs more.
    Behind,
    /// It cannot do it.
    Out,
    /// Its cost is not known here.
    Unknown,
}

/// An option in the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptionShown {
    /// Its name.
    pub name: String,
    /// What is said of it.
    pub standing: Standing,
    /// Why it is out or unknown, or behind although its cost is not known; null otherwise.
    pub why: Option<String>,
    /// The run that is missing; null unless it is unknown.
    pub run: Option<String>,
    /// Probability that it costs least.
    pub best: f64,
    /// Its cost over that of the cheapest; null if it is out or unknown.
    pub ratio: Option<Shown>,
    /// Probability that it costs less than another option, by the other's name.
    pub beats: BTreeMap<String, f64>,
    /// Figures by criterion.
    pub figures: BTreeMap<Criterion, Shown>,
    /// Figures that cannot be predicted, and what is missing.
    pub missing: BTreeMap<Criterion, Missing>,
    /// Days that a charge lasts; null without a battery.
    pub days: Option<Shown>,
    /// Bytes of a message by layer, its connection included if it has one of its own.
    pub message: Bounds,
    /// Bytes of opening and closing a kept connection by layer.
    pub around: Bounds,
    /// Bytes of 30 days by layer.
    pub month: Bounds,
}

/// An option while the answer is made.
struct Judged<'j> {
    offer: &'j Offer,
    figures: Option<Figures>,
    standing: Standing,
    why: Option<String>,
    run: Option<String>,
}

/// Makes the answer.
pub fn advise(inputs: &Inputs<'_>) -> Advice {
    let families = families(inputs);
    let ground = ground(inputs);
    let mut judged: Vec<Judged<'_>> =
        inputs.offers.iter().map(|offer| judge(offer, inputs, &families, &ground)).collect();
    let matters = &inputs.situation.matters;
    let figures: Vec<Option<&Figures>> = judged
        .iter()
        .map(|own| own.figures.as_ref().filter(|_| own.standing == Standing::Behind))
        .collect();
    let advised = Advised::of(&figures, matters);
    for at in &advised.set {
        judged[*at].standing = Standing::Advised;
    }
    put_behind(&mut judged, matters[0]);
    let is_open = |own: &Judged<'_>| own.standing == Standing::Unknown;
    // Options that were not named may stay open.
    let is_named = !inputs.situation.options.is_empty();
    let is_complete = !advised.set.is_empty() && !is_named || !judged.iter().any(is_open);
    let mut options: Vec<OptionShown> =
        judged.iter().enumerate().map(|(at, own)| shown(own, &advised, at)).collect();
    pairs(&mut options, &judged, matters[0]);
    let names: Vec<String> = advised.set.iter().map(|at| judged[*at].offer.choice.name()).collect();
    let picked: Vec<(&Choice, &Drawn)> = advised
        .set
        .iter()
        .filter_map(|at| {
            let own = &judged[*at];
            Some((&own.offer.choice, own.figures.as_ref()?.get(*matters.first()?)?))
        })
        .collect();
    let is_measured = matters.first().is_some_and(|own| is_measured(*own));
    Advice {
        schema: SCHEMA.to_owned(),
        sentence: sentence(&names, &judged, inputs.situation),
        is_complete,
        plan: plan(&judged, inputs.situation),
        break_even: break_evens(&advised, &judged, inputs, &families),
        deciding: deciding::deciding(&picked, inputs.situation, is_measured),
        advised: names,
        options,
        assumptions: assumptions(inputs),
        cells: families.iter().map(|(name, own)| (name.clone(), own.words())).collect(),
        situation: inputs.situation.clone(),
    }
}

impl Advice {
    /// As one JSON document, with a line's end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The JSON Schema of these documents.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Advice);
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// The fitted costs of all families of the cells.
pub fn families(inputs: &Inputs<'_>) -> BTreeMap<String, Family> {
    let asked: Vec<String> = inputs.offers.iter().map(|own| own.choice.family()).collect();
    let all = by_family(inputs.cells).into_iter().filter(|(name, _)| asked.contains(name));
    all.filter_map(|(name, cells)| Some((name, Family::of(&cells, inputs.here)?))).collect()
}

/// What all options have in common.
pub fn ground<'i>(inputs: &Inputs<'i>) -> Ground<'i> {
    Ground { situation: inputs.situation, link: inputs.link, energy: inputs.energy }
}

fn judge<'j>(
    offer: &'j Offer,
    inputs: &Inputs<'_>,
    families: &BTreeMap<String, Family>,
    ground: &Ground<'_>,
) -> Judged<'j> {
    let of =
        |standing, why: Option<String>, run, figures| Judged { offer, figures, standing, why, run };
    match by_abilities(&offer.choice, inputs.situation) {
        Some(Verdict::Out(why)) => return of(Standing::Out, Some(why), None, None),
        Some(Verdict::Unknown(why, run)) => {
            return of(Standing::Unknown, Some(why), Some(run), None);
        }
        None => {}
    }
    let session = match &offer.session {
        Ok(session) => session,
        Err(why) => return of(Standing::Out, Some(why.clone()), None, None),
    };
    let family = families.get(&offer.choice.family());
    let candidate =
        Candidate { choice: &offer.choice, session, open_trips: offer.open_trips, family };
    let figures = Figures::of(&candidate, ground);
    if let Some(why) = by_figures(&figures, inputs.situation) {
        return of(Standing::Out, Some(why), None, Some(figures));
    }
    let first = inputs.situation.matters.first().and_then(|own| figures.by.get(own));
    match first {
        Some(Err(Missing { why, run })) => {
            let (why, run) = (Some(why.clone()), Some(run.clone()));
            of(Standing::Unknown, why, run, Some(figures))
        }
        // Behind, until it is seen that it is not.
        _ => of(Standing::Behind, None, None, Some(figures)),
    }
}

/// Puts options behind whose cost at the highest rate that was measured is more already than what
/// another option costs in the situation.
fn put_behind(judged: &mut [Judged<'_>], criterion: Criterion) {
    if criterion != Criterion::ServerCpu {
        return;
    }
    let cost = |own: &Judged<'_>| own.figures.as_ref()?.get(criterion).cloned();
    let known = |own: &&Judged<'_>| matches!(own.standing, Standing::Advised | Standing::Behind);
    let costs: Vec<Drawn> = judged.iter().filter(known).filter_map(cost).collect();
    for own in judged.iter_mut().filter(|own| own.standing == Standing::Unknown) {
        let Some((least, rate)) = own.figures.as_ref().and_then(|own| own.floor.as_ref()) else {
            continue;
        };
        let is_more = |other: &Drawn| least.exceeds(1.0 + ZONE, other) >= CONFIDENCE;
        if costs.iter().any(is_more) {
            let why = format!(
                "it costs more: at {} messages/s, the most that was measured, already {} of a core",
                count(rate.round() as u64),
                percent(100.0 * least.value)
            );
            (own.standing, own.why, own.run) = (Standing::Behind, Some(why), None);
        }
    }
}

fn shown(own: &Judged<'_>, advised: &Advised, at: usize) -> OptionShown {
    let mut shown = OptionShown {
        name: own.offer.choice.name(),
        standing: own.standing,
        why: own.why.clone(),
        run: own.run.clone(),
        best: advised.best.get(at).copied().unwrap_or(0.0),
        ratio: advised.ratios.get(at).and_then(|own| own.as_ref()).map(Drawn::shown),
        beats: BTreeMap::new(),
        figures: BTreeMap::new(),
        missing: BTreeMap::new(),
        days: None,
        message: Bounds::default(),
        around: Bounds::default(),
        month: Bounds::default(),
    };
    let Some(figures) = &own.figures else { return shown };
    for (criterion, figure) in &figures.by {
        match figure {
            Ok(drawn) => drop(shown.figures.insert(*criterion, drawn.shown())),
            Err(missing) => drop(shown.missing.insert(*criterion, missing.clone())),
        }
    }
    shown.days = figures.days.as_ref().map(Drawn::shown);
    (shown.message, shown.around) = (figures.message, figures.around);
    shown.month = figures.month;
    shown
}

/// For every pair of options that can do it, the probability that one costs less.
fn pairs(options: &mut [OptionShown], judged: &[Judged<'_>], criterion: Criterion) {
    let is_compared =
        |own: &Judged<'_>| matches!(own.standing, Standing::Advised | Standing::Behind);
    let cost = |own: &Judged<'_>| own.figures.as_ref()?.get(criterion).cloned();
    let known: Vec<(usize, Drawn)> = judged
        .iter()
        .enumerate()
        .filter(|(_, own)| is_compared(own))
        .filter_map(|(at, own)| Some((at, cost(own)?)))
        .collect();
    for (at, own) in &known {
        let others = known.iter().filter(|(other, _)| other != at);
        options[*at].beats = others
            .map(|(other, cost)| (judged[*other].offer.choice.name(), own.beats(cost)))
            .collect();
    }
}

/// A plan that measures every option that is not out, and whose rate was measured.
fn plan(judged: &[Judged<'_>], situation: &Situation) -> String {
    let is_measured = |own: &&Judged<'_>| own.standing != Standing::Out && !is_behind_at_least(own);
    let can = judged.iter().filter(is_measured);
    let choices: Vec<&Choice> = can.map(|own| &own.offer.choice).collect();
    if choices.is_empty() {
        String::new()
    } else {
        deciding::plan(&choices, situation, REPETITIONS)
    }
}

/// True if it is known only that it costs more than another.
fn is_behind_at_least(own: &Judged<'_>) -> bool {
    own.standing == Standing::Behind && own.why.is_some()
}

/// The answer in a sentence or two.
fn sentence(names: &[String], judged: &[Judged<'_>], situation: &Situation) -> String {
    let unknown: Vec<String> = judged
        .iter()
        .filter(|own| own.standing == Standing::Unknown)
        .map(|own| own.offer.choice.name())
        .collect();
    let matters = situation.matters.first().map_or("cost", |own| own.name());
    let mut text = match names {
        [] if unknown.is_empty() => {
            let needs = "No option can do this: the reasons are below.";
            return needs.to_owned();
        }
        [] => return "No answer: nothing that was measured is near this situation.".to_owned(),
        [one] => format!("Use {one}: it is the best in {matters}."),
        [first, others @ ..] => {
            format!(
                "Use {first}; for {matters} it cannot be distinguished from {}.",
                others.join("; ")
            )
        }
    };
    if !unknown.is_empty() {
        text +=
            &format!(" Not compared, because nothing near was measured: {}.", unknown.join("; "));
    }
    text
}

/// True if a run would measure this.
fn is_measured(criterion: Criterion) -> bool {
    matches!(criterion, Criterion::ServerCpu | Criterion::Memory)
}

/// Break-even values between the first option and the best of every other lane.
fn break_evens(
    advised: &Advised,
    judged: &[Judged<'_>],
    inputs: &Inputs<'_>,
    families: &BTreeMap<String, Family>,
) -> Vec<BreakEven> {
    let Some(first) = advised.set.first().map(|at| judged[*at].offer) else { return Vec::new() };
    let criterion = inputs.situation.matters[0];
    let is_rival = |own: &&Judged<'_>| {
        matches!(own.standing, Standing::Advised | Standing::Behind)
            && own.offer.choice.name() != first.choice.name()
            && own.offer.choice.is_tls == first.choice.is_tls
    };
    let mut found = Vec::new();
    for rival in judged.iter().filter(is_rival).map(|own| own.offer) {
        let pair = Pair { a: first, b: rival, inputs, families };
        let is_other_lane = first.choice.lane() != rival.choice.lane();
        if is_other_lane && first.choice.is_kept && rival.choice.is_kept {
            found.extend(pair.by_messages_per_connection());
        }
        found.extend(pair.along(criterion, Axis::Every));
        found.extend(pair.along(criterion, Axis::Size));
    }
    found.truncate(BREAK_EVENS_MAX);
    found
}

/// Two options that are compared along an axis.
struct Pair<'p> {
    a: &'p Offer,
    b: &'p Offer,
    inputs: &'p Inputs<'p>,
    families: &'p BTreeMap<String, Family>,
}

impl Pair<'_> {
    /// Bytes of a message with its share of a connection.
    fn by_messages_per_connection(&self) -> Option<BreakEven> {
        let both = [self.figures(self.a, None)?, self.figures(self.b, None)?];
        if self.a.choice.is_datagram || self.b.choice.is_datagram {
            return None;
        }
        let acks = crate::drawn::uniform("acknowledgements");
        let of = |figures: &Figures, number: f64| {
            let [low, high] = [
                (figures.message.low, figures.around.low),
                (figures.message.high, figures.around.high),
            ]
            .map(|(message, around)| message.bytes() + around.bytes() / number);
            Drawn::between(low, high, &acks)
        };
        let costs = |number: f64| Some((of(&both[0], number), of(&both[1], number)));
        let names = (self.a.choice.lane(), self.b.choice.lane());
        let axis = Axis::MessagesPerConnection;
        find((&names.0, &names.1), Criterion::Bytes, axis, &[], costs)
    }

    fn along(&self, criterion: Criterion, axis: Axis) -> Option<BreakEven> {
        let costs = |value: f64| {
            let of = |offer| self.figures(offer, Some((axis, value)))?.get(criterion).cloned();
            Some((of(self.a)?, of(self.b)?))
        };
        let names = (self.a.choice.name(), self.b.choice.name());
        // With each silence more there is a keep-alive more.
        let silence_s = self.inputs.situation.network.idle_limit.as_secs_f64();
        let jumps: Vec<f64> = match axis {
            Axis::Every => (1..=JUMPS).map(|number| f64::from(number) * silence_s).collect(),
            _ => Vec::new(),
        };
        find((&names.0, &names.1), criterion, axis, &jumps, costs)
    }

    /// Figures of an option where the axis has this value.
    fn figures(&self, offer: &Offer, at: Option<(Axis, f64)>) -> Option<Figures> {
        figures_at(offer, self.inputs, self.families, at)
    }
}

/// Figures of an option in the situation with one value changed; `None` where it cannot do that.
pub fn figures_at(
    offer: &Offer,
    inputs: &Inputs<'_>,
    families: &BTreeMap<String, Family>,
    at: Option<(Axis, f64)>,
) -> Option<Figures> {
    let mut situation = inputs.situation.clone();
    let mut session = offer.session.as_ref().ok()?.clone();
    match at {
        Some((Axis::Every, seconds)) => {
            situation.traffic.every = weigh_model::Nanos::from_secs_f64(seconds);
        }
        Some((Axis::Size, size)) => {
            situation.traffic.size = weigh_model::units::Bytes(size.round() as u64);
            session = session.resized(size.round() as u64);
        }
        Some((Axis::MessagesPerConnection, _)) | None => {}
    }
    if by_abilities(&offer.choice, &situation).is_some() {
        return None;
    }
    let ground = Ground { situation: &situation, link: inputs.link, energy: inputs.energy };
    let family = families.get(&offer.choice.family());
    let candidate = Candidate {
        choice: &offer.choice,
        session: &session,
        open_trips: offer.open_trips,
        family,
    };
    let figures = Figures::of(&candidate, &ground);
    by_figures(&figures, &situation).is_none().then_some(figures)
}

/// What was assumed.
fn assumptions(inputs: &Inputs<'_>) -> Vec<String> {
    let network = &inputs.situation.network;
    let idle = rough(network.idle_limit.as_secs_f64());
    let mut found = vec![
        "bytes of one device, both directions: IPv4, TCP with timestamps (52 B of headers a \
         segment), no offloads; from the fewest to the most acknowledgements that TCP may send; \
         topics and header fields of weigh's clients"
            .to_owned(),
        format!("a kept connection sends a keep-alive after {idle} of silence, and never breaks")
            .replace(
                "never breaks",
                &match network.reconnect {
                    None => "never breaks".to_owned(),
                    Some(each) => format!("is opened again every {}", rough(each.as_secs_f64())),
                },
            ),
        "TLS: version 1.3, full handshakes, the certificates that weigh makes (ECDSA P-256, one CA)"
            .to_owned(),
    ];
    if inputs.offers.iter().any(|own| own.choice.is_datagram && own.choice.is_tls) {
        found.push(
            "DTLS: a full handshake when a session begins, which is kept without traffic"
                .to_owned(),
        );
    }
    let path = match &network.path {
        Some(name) if name.contains(['=', '.']) => format!("network: the path {name}"),
        Some(name) => format!("network: the path {name}, as in paths/{name}.toml"),
        None => "network: local, without delay or loss; give a path for any other".to_owned(),
    };
    found.push(path);
    found.push(format!(
        "server: {} and {} of memory, of which {} % may be used",
        match inputs.situation.server.cores {
            1.0 => "1 core".to_owned(),
            cores => format!("{cores} cores"),
        },
        bytes(inputs.situation.server.memory.0 as f64),
        weigh_model::numbers::exact((inputs.situation.server.headroom.0 * 100.0).round()),
    ));
    if inputs.energy.is_some() {
        found.push("energy: modelled, not measured; without the device's own processor".to_owned());
    }
    found
}

/// Repetitions of the plan of all options.
const REPETITIONS: u32 = 5;

/// Keep-alives between two messages up to which each is looked at for itself.
const JUMPS: u32 = 12;

/// More of them are not read.
const BREAK_EVENS_MAX: usize = 8;
