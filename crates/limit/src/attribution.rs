//! Finds which resource limits the target: from observations of a trial above the limit, a ranking
//! of causes with their evidence; or "cannot tell", with what to observe in addition.

use std::fmt;
use weigh_model::numbers::{count, exact, percent};

use serde::Serialize;
use weigh_model::binding::{GENERATOR_FULL_PERCENT, TARGET_FULL_PERCENT};
use weigh_model::binding::{HELD_UP_MIN, is_amortised};
use weigh_model::headroom::Use;
use weigh_model::units::Nanos;

/// Observations of the trial (or trials) at the upper bound. `None` means "not observed", which is
/// not the same as 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Processor time of the target as a share of all cores it may use, percent: 100 is full.
    pub target_cpu_percent: Option<f64>,
    /// Share of its core that the generator's busiest thread used, percent.
    pub generator_cpu_percent: Option<f64>,
    /// The generator's own lateness and the response time that it is part of, at the quantile with
    /// the largest share; only if it made the trial invalid.
    pub lateness: Option<(Nanos, Nanos)>,
    /// Whether the generator sends as fast as it can, so that it uses a full core by design.
    pub sends_at_will: bool,
    /// Messages lost in the trial, whatever the cause.
    pub lost: Option<u64>,
    /// Messages or packets that the path dropped: full socket buffers, refused connection
    /// backlogs, interfaces.
    pub path_drops: Option<u64>,
    /// Packets that an emulated path dropped because its queue was full, and all packets that it
    /// received. TCP sends them again, so messages need not be lost: they show that the path's rate
    /// was used up.
    pub path_queue: Option<(u64, u64)>,
    /// Share of its rate that the load needs in the busier direction of an emulated path: from 1 on
    /// it is full.
    pub path_asked: Option<f64>,
    /// Messages that the target reported as dropped because of full queues.
    pub queue_drops: Option<u64>,
    /// Messages that the target answered with an error.
    pub refused: Option<u64>,
    /// Effect of other programs on the trial, if it was large enough for a warning.
    pub disturbance: Option<String>,
    /// The share of due messages that were neither done nor lost when the window ended, beyond
    /// those always in flight.
    pub piled_up: Option<f64>,
    /// The share of messages that became due while the window was full.
    pub held_up: Option<f64>,
    /// How long a message was in flight, on average.
    pub service_time_mean: Option<Nanos>,
    /// Answers that the generator found when it woke, on average.
    pub answers_per_wakeup: Option<f64>,
    /// Offered rate divided by the rate that was handed over.
    pub asked_times: Option<f64>,
    /// File descriptors of target or generator, whichever is closer to its limit.
    pub descriptors: Option<Use>,
    /// Local ports of the generator.
    pub ports: Option<Use>,
}

/// A resource that can be the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// The generator: the trial does not show the target's limit.
    Generator,
    /// Local ports of the generator: nor does this.
    Ports,
    /// File descriptors.
    Descriptors,
    /// The path between generator and target.
    Path,
    /// A limit of the target itself: it answers with errors.
    TargetRefusal,
    /// The target's queues.
    TargetQueue,
    /// The target's processor.
    TargetCpu,
    /// Messages that the load allows to be in flight: connections and their window.
    InFlight,
    /// The machine, which was busy with other programs.
    Others,
}

impl Resource {
    const ALL: [Resource; 9] = [
        Resource::Generator,
        Resource::Ports,
        Resource::Descriptors,
        Resource::Path,
        Resource::TargetRefusal,
        Resource::TargetQueue,
        Resource::TargetCpu,
        Resource::InFlight,
        Resource::Others,
    ];

    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Generator => "the generator",
            Resource::Ports => "the generator's ports",
            Resource::Descriptors => "file descriptors",
            Resource::Path => "the path",
            Resource::TargetRefusal => "a limit that the target sets itself",
            Resource::TargetQueue => "the target's queue",
            Resource::TargetCpu => "the target's processor",
            Resource::InFlight => "what may be in flight",
            Resource::Others => "other programs",
        }
    }

    /// Whether it belongs to the generator or its machine, so that the limit found is not the
    /// target's.
    pub fn is_ours(self) -> bool {
        matches!(self, Resource::Generator | Resource::Ports | Resource::Others)
    }
}

/// A cause with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The resource.
    pub resource: Resource,
    /// Strength of the evidence, 0 to 1: the share of the loss that it accounts for, or how full it
    /// was. The order of causes is not by this alone, see [`attribute`].
    pub strength: f64,
    /// The evidence, in a sentence.
    pub evidence: String,
}

/// The cause of the limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attribution {
    /// Causes with evidence, the likeliest first.
    Causes(Vec<Cause>),
    /// Nothing that was observed was at its limit.
    CannotTell {
        /// What was observed and had room left.
        had_room: Vec<Resource>,
        /// Resources that were not observed.
        not_observed: Vec<Resource>,
    },
}

/// Ranks the causes. Those of the generator and its machine come first, because they make the
/// others void; then what was counted (drops, failures), which is certain; then what was full.
/// Within these, the stronger first.
///
/// A full processor with a dropping queue is the usual pair: the queue shows the limit, the
/// processor is its cause. Both are reported.
pub fn attribute(evidence: &Evidence) -> Attribution {
    let mut causes: Vec<(u8, Cause)> = Vec::new();
    let (mut had_room, mut not_observed) = (Vec::new(), Vec::new());
    for resource in Resource::ALL {
        match finding(resource, evidence) {
            Finding::Ended { class, strength, evidence } => {
                causes.push((class, Cause { resource, strength, evidence }));
            }
            Finding::HadRoom => had_room.push(resource),
            Finding::NotObserved => not_observed.push(resource),
        }
    }
    if causes.is_empty() {
        return Attribution::CannotTell { had_room, not_observed };
    }
    causes
        .sort_by(|(class, a), (other, b)| class.cmp(other).then(b.strength.total_cmp(&a.strength)));
    Attribution::Causes(causes.into_iter().map(|(_, cause)| cause).collect())
}

enum Finding {
    Ended { class: u8, strength: f64, evidence: String },
    HadRoom,
    NotObserved,
}

fn finding(resource: Resource, evidence: &Evidence) -> Finding {
    match resource {
        Resource::Generator => generator(evidence),
        Resource::Ports => used_up(evidence.ports, "local ports", OURS),
        Resource::Descriptors => used_up(evidence.descriptors, "file descriptors", COUNTED),
        Resource::Path => path(evidence),
        Resource::TargetRefusal => {
            dropped(evidence.refused, evidence.lost, ("messages answered with errors:", ""))
        }
        Resource::TargetQueue => queue(evidence),
        Resource::TargetCpu => match evidence.target_cpu_percent {
            None => Finding::NotObserved,
            Some(used) if used >= TARGET_FULL_PERCENT => Finding::Ended {
                class: FULL,
                strength: (used / 100.0).min(1.0),
                evidence: format!("the target used {} of its cores", percent(used)),
            },
            Some(_) => Finding::HadRoom,
        },
        Resource::InFlight => in_flight(evidence),
        Resource::Others => match &evidence.disturbance {
            Some(said) => {
                Finding::Ended { class: DISTURBED, strength: 1.0, evidence: said.clone() }
            }
            None => Finding::HadRoom,
        },
    }
}

/// The generator was the limit if its core was full and the target's was not, or if it sent too
/// late for its latencies to be usable.
fn generator(evidence: &Evidence) -> Finding {
    let target_is_full =
        evidence.target_cpu_percent.is_some_and(|percent| percent >= TARGET_FULL_PERCENT);
    let full = evidence
        .generator_cpu_percent
        .filter(|percent| *percent >= GENERATOR_FULL_PERCENT)
        .filter(|_| !evidence.sends_at_will && !target_is_full && !only_wakes(evidence));
    let is_late = |(lag, time): &(Nanos, Nanos)| lag.0 as f64 > LAG_SHARE_MAX * time.0 as f64;
    match (full, evidence.lateness.filter(is_late)) {
        (Some(used), _) => Finding::Ended {
            class: OURS,
            strength: (used / 100.0).min(1.0),
            evidence: format!("its busiest thread used {} of a core", percent(used)),
        },
        (None, Some((lag, time))) => Finding::Ended {
            class: OURS,
            strength: (lag.0 as f64 / time.0.max(1) as f64).min(1.0),
            evidence: format!("{lag} of a response time of {time} is generator lag"),
        },
        (None, None) if evidence.generator_cpu_percent.is_none() => Finding::NotObserved,
        (None, None) => Finding::HadRoom,
    }
}

/// True if the slots are full and the generator wakes for almost every single answer: it is busy
/// with waking up, and more messages in flight would let it do more each time (see
/// [`weigh_model::binding`]).
fn only_wakes(evidence: &Evidence) -> bool {
    evidence.held_up.is_none_or(|share| share >= HELD_UP_MIN)
        && evidence.answers_per_wakeup.is_some_and(|answers| !is_amortised(answers))
}

/// An emulated path whose queue or rate was full, or drops in transit that account for the loss.
fn path(evidence: &Evidence) -> Finding {
    let full_rate = evidence.path_asked.filter(|share| *share >= USED_UP_SHARE);
    match evidence.path_queue {
        Some((full, packets)) if full > 0 => Finding::Ended {
            class: COUNTED,
            strength: (full as f64 / packets.max(1) as f64).min(1.0),
            evidence: format!(
                "its queue was full for {} of {} packets",
                count(full),
                count(packets)
            ),
        },
        _ if full_rate.is_some() => Finding::Ended {
            class: FULL,
            strength: full_rate.unwrap_or_default().min(1.0),
            evidence: format!(
                "the load asked for {} of its rate",
                percent(100.0 * full_rate.unwrap_or_default())
            ),
        },
        _ => dropped(evidence.path_drops, evidence.lost, ("packets dropped in transit:", "")),
    }
}

/// Most messages became due while the window was full, so they pile up before the target and not in
/// it. A full target or path makes them wait too; then those are the cause and come first.
fn in_flight(evidence: &Evidence) -> Finding {
    let Some(held_up) = evidence.held_up else { return Finding::NotObserved };
    let waiting = evidence.piled_up.filter(|share| *share >= PILED_UP_MIN);
    let Some(waiting) = waiting.filter(|_| held_up >= HELD_UP_MIN) else {
        return Finding::HadRoom;
    };
    let each = evidence.service_time_mean.map(|mean| format!(", each for {mean}"));
    let times = evidence.asked_times.filter(|times| *times > 1.0);
    let needed = match times {
        Some(times) => format!(
            "for this rate use {} times the connections",
            exact((times * 10.0).ceil() / 10.0)
        ),
        None => "more connections would show more".to_owned(),
    };
    Finding::Ended {
        class: HELD_UP,
        strength: held_up.min(1.0),
        evidence: format!(
            "{} of due messages were still waiting when the window ended; {} of all became due \
             while the window was full{}: {needed}",
            percent(100.0 * waiting),
            percent(100.0 * held_up),
            each.unwrap_or_default()
        ),
    }
}

/// A queue that drops, or one that grows without dropping although the window does not hold it up.
fn queue(evidence: &Evidence) -> Finding {
    let counted =
        dropped(evidence.queue_drops, evidence.lost, ("the target reported", " dropped messages"));
    let is_held_up = matches!(in_flight(evidence), Finding::Ended { .. });
    match evidence.piled_up {
        Some(share)
            if share >= PILED_UP_MIN
                && !is_held_up
                && !matches!(counted, Finding::Ended { .. }) =>
        {
            Finding::Ended {
                class: GROWS,
                strength: share.min(1.0),
                evidence: format!(
                    "{} of due messages were still waiting when the window ended",
                    percent(100.0 * share)
                ),
            }
        }
        _ => counted,
    }
}

fn used_up(usage: Option<Use>, what: &str, class: u8) -> Finding {
    let Some(Use { used, available, failures }) = usage else { return Finding::NotObserved };
    let share = used as f64 / available.max(1) as f64;
    if failures == 0 && share < USED_UP_SHARE {
        return Finding::HadRoom;
    }
    let failed = match failures {
        0 => String::new(),
        _ => format!(", and {failures} attempts failed because none was left"),
    };
    Finding::Ended {
        class,
        strength: if failures > 0 { 1.0 } else { share.min(1.0) },
        evidence: format!("{used} of {available} {what} were in use{failed}"),
    }
}

/// Drops that account for a considerable part of the losses. If the number of lost messages is
/// unknown any drop counts, but weakly.
///
/// `words` stand before and after the number of drops.
fn dropped(drops: Option<u64>, lost: Option<u64>, words: (&str, &str)) -> Finding {
    let (before, after) = words;
    let Some(drops) = drops else { return Finding::NotObserved };
    if drops == 0 {
        return Finding::HadRoom;
    }
    let share = lost.filter(|lost| *lost > 0).map(|lost| (drops as f64 / lost as f64).min(1.0));
    match (share, lost) {
        (Some(share), _) if share < DROPS_SHARE_MIN => Finding::HadRoom,
        (Some(share), Some(lost)) => Finding::Ended {
            class: COUNTED,
            strength: share,
            evidence: format!(
                "{before} {}{after}, and {} messages were lost",
                count(drops),
                count(lost)
            ),
        },
        _ => Finding::Ended {
            class: COUNTED,
            strength: DROPS_SHARE_MIN,
            evidence: format!("{before} {drops}{after}; the number of lost messages is not known"),
        },
    }
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |resources: &[Resource]| {
            resources.iter().map(|resource| resource.name()).collect::<Vec<_>>().join(", ")
        };
        match self {
            Attribution::Causes(causes) => {
                for (index, Cause { resource, evidence, .. }) in causes.iter().enumerate() {
                    if index > 0 {
                        write!(f, "; {} limit: ", ORDINALS[index.min(ORDINALS.len() - 1)])?;
                    }
                    write!(f, "{}: {evidence}", resource.name())?;
                }
                Ok(())
            }
            Attribution::CannotTell { had_room, not_observed } => {
                f.write_str("cannot tell")?;
                if !had_room.is_empty() {
                    write!(f, ": {} had room left", names(had_room))?;
                }
                if !not_observed.is_empty() {
                    write!(f, "; not observed: {}", names(not_observed))?;
                }
                Ok(())
            }
        }
    }
}

/// Words for the places of causes.
const ORDINALS: [&str; 4] = ["first", "second", "third", "further"];

/// Ranks of causes: the generator's, counted, full; then a window that held messages up, which a
/// full target explains; then a busy machine, since all these explain it; and last what only grows
/// because something else is full.
const OURS: u8 = 0;
const COUNTED: u8 = 1;
const FULL: u8 = 2;
const HELD_UP: u8 = 3;
const DISTURBED: u8 = 4;
const GROWS: u8 = 5;

/// Share of a response time from which its lateness may have made a trial invalid.
const LAG_SHARE_MAX: f64 = 0.01;

/// A resource counts as used up from this share on: the last part is used by what is being closed
/// and by other programs.
const USED_UP_SHARE: f64 = 0.95;

/// A smaller share waiting at the end of a window is not a growing queue.
const PILED_UP_MIN: f64 = 0.001;

/// Drops that account for less than this share of the loss are not the cause.
const DROPS_SHARE_MIN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(evidence: &Evidence) -> Vec<Resource> {
        match attribute(evidence) {
            Attribution::Causes(causes) => causes.iter().map(|cause| cause.resource).collect(),
            Attribution::CannotTell { .. } => Vec::new(),
        }
    }

    fn quiet() -> Evidence {
        Evidence {
            target_cpu_percent: Some(40.0),
            generator_cpu_percent: Some(30.0),
            lateness: Some((Nanos::from_micros(5), Nanos::from_millis(2))),
            sends_at_will: false,
            lost: Some(1000),
            path_drops: Some(0),
            path_queue: None,
            path_asked: Some(0.4),
            queue_drops: Some(0),
            refused: Some(0),
            disturbance: None,
            piled_up: Some(0.0),
            held_up: Some(0.02),
            service_time_mean: Some(Nanos::from_millis(2)),
            answers_per_wakeup: Some(20.0),
            asked_times: Some(1.0),
            descriptors: Some(Use { used: 60, available: 1024, failures: 0 }),
            ports: Some(Use { used: 60, available: 28_232, failures: 0 }),
        }
    }

    /// Each resource made to end alone, in a case that is not in question.
    #[test]
    fn each_resource_is_found_when_it_alone_ends() {
        let full = |used| Some(Use { used, available: 1024, failures: 0 });
        for (evidence, expected) in [
            (Evidence { target_cpu_percent: Some(99.0), ..quiet() }, Resource::TargetCpu),
            (Evidence { generator_cpu_percent: Some(99.0), ..quiet() }, Resource::Generator),
            (
                Evidence {
                    lateness: Some((Nanos::from_millis(1), Nanos::from_millis(2))),
                    ..quiet()
                },
                Resource::Generator,
            ),
            (Evidence { path_drops: Some(900), ..quiet() }, Resource::Path),
            (Evidence { path_queue: Some((12, 3000)), ..quiet() }, Resource::Path),
            (Evidence { path_asked: Some(0.99), ..quiet() }, Resource::Path),
            (Evidence { queue_drops: Some(1000), ..quiet() }, Resource::TargetQueue),
            (Evidence { piled_up: Some(0.3), ..quiet() }, Resource::TargetQueue),
            (Evidence { piled_up: Some(0.3), held_up: Some(0.9), ..quiet() }, Resource::InFlight),
            (Evidence { refused: Some(990), ..quiet() }, Resource::TargetRefusal),
            (Evidence { descriptors: full(1020), ..quiet() }, Resource::Descriptors),
            (Evidence { ports: full(1024), ..quiet() }, Resource::Ports),
        ] {
            assert_eq!(order(&evidence), [expected]);
        }
    }

    #[test]
    fn nothing_at_its_end_cannot_be_told_and_says_what_was_not_looked_at() {
        let told = attribute(&Evidence { queue_drops: None, ..quiet() });
        let text = told.to_string();
        assert!(text.starts_with("cannot tell: the generator, "), "{text}");
        assert!(text.ends_with("not observed: the target's queue"), "{text}");
        let blind = attribute(&Evidence::default()).to_string();
        assert!(blind.contains("not observed: the generator, "), "{blind}");
    }

    /// Ours first, then what was counted, then what was full.
    #[test]
    fn causes_are_ranked_by_what_they_void_and_how_certain_they_are() {
        let ports = Some(Use { used: 10, available: 1024, failures: 3 });
        let evidence = Evidence {
            target_cpu_percent: Some(99.0),
            queue_drops: Some(700),
            path_drops: Some(300),
            ports,
            ..quiet()
        };
        let expected =
            [Resource::Ports, Resource::TargetQueue, Resource::Path, Resource::TargetCpu];
        assert_eq!(order(&evidence), expected);
        assert!(expected[0].is_ours() && !expected[1].is_ours());
        let text = attribute(&evidence).to_string();
        assert!(
            text.contains(
                "; second limit: the target's queue: the target reported 700 dropped messages"
            ),
            "{text}"
        );
    }

    /// A queue that grows while others use the machine is theirs; a full target is itself.
    #[test]
    fn a_busy_machine_explains_what_only_grows() {
        let disturbance = Some("others used 197 % of a core".to_owned());
        let busy = Evidence { disturbance, piled_up: Some(0.08), ..quiet() };
        assert_eq!(order(&busy), [Resource::Others, Resource::TargetQueue]);
        let full = Evidence { target_cpu_percent: Some(99.0), ..busy };
        assert_eq!(order(&full)[..2], [Resource::TargetCpu, Resource::Others]);
    }

    /// A target that is full fills the window too; others take less from it than it takes itself.
    #[test]
    fn a_full_window_is_explained_by_a_full_target() {
        let held_up = Evidence { piled_up: Some(0.3), held_up: Some(0.9), ..quiet() };
        let full = Evidence { target_cpu_percent: Some(99.0), ..held_up.clone() };
        assert_eq!(order(&full), [Resource::TargetCpu, Resource::InFlight]);
        let disturbance = Some("others used 50 % of a core".to_owned());
        let busy = Evidence { disturbance, ..held_up };
        assert_eq!(order(&busy), [Resource::InFlight, Resource::Others]);
        let text = attribute(&busy).to_string();
        assert!(text.contains("90 % of all") && text.contains("each for 2 ms"), "{text}");
    }

    /// A generator that wakes for every answer of a few full slots is not the limit; one that is
    /// full with many answers at each wake-up is, and so is one with free slots.
    #[test]
    fn a_generator_that_only_wakes_is_not_the_limit() {
        let waking = Evidence {
            generator_cpu_percent: Some(99.0),
            piled_up: Some(0.5),
            held_up: Some(0.97),
            answers_per_wakeup: Some(1.2),
            asked_times: Some(2.4),
            ..quiet()
        };
        assert_eq!(order(&waking), [Resource::InFlight]);
        let text = attribute(&waking).to_string();
        assert!(text.contains("use 2.4 times the connections"), "{text}");
        let full = Evidence { answers_per_wakeup: Some(30.0), ..waking.clone() };
        assert_eq!(order(&full), [Resource::Generator, Resource::InFlight]);
        let free = Evidence { held_up: Some(0.1), ..waking };
        assert_eq!(order(&free), [Resource::Generator, Resource::TargetQueue]);
    }

    /// What a full line lets wait waits before it, whoever's queue holds it and whatever may be in
    /// flight.
    #[test]
    fn a_full_path_explains_what_waits_for_it() {
        let full = Evidence { path_asked: Some(1.0), piled_up: Some(0.1), ..quiet() };
        assert_eq!(order(&full), [Resource::Path, Resource::TargetQueue]);
        let held_up = Evidence { held_up: Some(0.9), ..full };
        assert_eq!(order(&held_up), [Resource::Path, Resource::InFlight]);
    }

    /// A full generator beside a full target is not the limit, nor is one that was told to send as
    /// fast as it can; a handful of drops does not explain a thousand lost messages.
    #[test]
    fn what_looks_like_a_cause_and_is_none() {
        let both = Evidence {
            generator_cpu_percent: Some(99.0),
            target_cpu_percent: Some(98.0),
            ..quiet()
        };
        assert_eq!(order(&both), [Resource::TargetCpu]);
        let burst = Evidence { generator_cpu_percent: Some(99.0), sends_at_will: true, ..quiet() };
        assert_eq!(order(&burst), []);
        assert_eq!(order(&Evidence { path_drops: Some(9), ..quiet() }), []);
        assert_eq!(
            order(&Evidence { path_drops: Some(9), lost: None, ..quiet() }),
            [Resource::Path]
        );
    }
}
