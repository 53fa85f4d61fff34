//! What the figures of a study give when they are worked out: checks that hold, and what follows
//! from figures together without breaking a rule.

use weigh_stats::Estimate;
use weigh_stats::random::Random;

use crate::audit::figure::{Evidence, Figure, Place, Quantity, Statistic};
use crate::audit::finding::Worked;
use crate::audit::rules::{apart, rounded_up};
use crate::audit::series_csv::half_digit;
use crate::audit::vocabulary::{count, words_of};
use crate::audit::words;

/// Everything that can be worked out of `evidence`.
pub(crate) fn out(evidence: &Evidence) -> Vec<Worked> {
    let mut worked = Vec::new();
    worked.extend(rounding(evidence));
    worked.extend(shares(evidence));
    worked.extend(slopes(evidence));
    worked.extend(windows(evidence));
    worked.extend(claims(evidence));
    worked.extend(currents(evidence));
    worked.extend(lives(evidence));
    worked.extend(coverage(evidence));
    worked
}

/// Totals that are rounded up for each client.
fn rounding(evidence: &Evidence) -> Vec<Worked> {
    let sent = |figure: &&Figure| figure.quantity == Quantity::Expected;
    let again = |figure: &Figure| {
        let number = |key| figure.keys.get(key).and_then(|value| count(value));
        rounded_up(number("messages")?, number("clients")?)
    };
    by_table(
        evidence,
        sent,
        |figure| Some(again(figure)? == figure.value),
        |right, all| {
            format!("{right} of {all} totals are messages / clients, rounded up, x clients")
        },
    )
}

/// Percentages that are received over expected.
fn shares(evidence: &Evidence) -> Vec<Worked> {
    let accepted = |figure: &&Figure| figure.quantity == Quantity::Accepted;
    let again = |figure: &Figure| {
        let of = |quantity| evidence.cell_of(figure).find(|other| other.quantity == quantity);
        Some(of(Quantity::Received)?.value / of(Quantity::Expected)?.value)
    };
    let holds =
        |figure: &Figure| Some((again(figure)? - figure.value).abs() <= figure.rounding + 1e-9);
    by_table(evidence, accepted, holds, |right, all| {
        format!("{right} of {all} percentages are received / expected to the last digit")
    })
}

/// A check of every figure of a kind, table by table.
fn by_table(
    evidence: &Evidence,
    kind: impl Fn(&&Figure) -> bool,
    holds: impl Fn(&Figure) -> Option<bool>,
    said: impl Fn(usize, usize) -> String,
) -> Vec<Worked> {
    let mut worked = Vec::new();
    for table in evidence.tables() {
        let figures: Vec<&Figure> = evidence.results_of(table).filter(&kind).collect();
        let checked: Vec<bool> = figures.iter().filter_map(|figure| holds(figure)).collect();
        let Some(first) = figures.first().filter(|_| !checked.is_empty()) else { continue };
        let right = checked.iter().filter(|holds| **holds).count();
        let said = said(right, checked.len());
        let holds = Some(right == checked.len());
        worked.push(Worked { place: first.place.clone(), said, holds });
    }
    worked
}

/// How far messages are apart where times are printed along their number.
fn slopes(evidence: &Evidence) -> Vec<Worked> {
    let mut firsts: Vec<&Figure> = Vec::new();
    for figure in evidence.results().filter(|figure| figure.quantity == Quantity::Span) {
        if !firsts.iter().any(|known| known.subjects == figure.subjects) {
            firsts.push(figure);
        }
    }
    let of_subject = |figure: &&Figure| {
        let (apart_s, first) = apart(evidence, figure)?;
        let said = format!(
            "{}: by least squares a message takes {}, {}",
            first.named(),
            words::time(apart_s),
            words::rate(1.0 / apart_s)
        );
        Some(Worked { place: first.place.clone(), said, holds: None })
    };
    firsts.iter().filter_map(of_subject).collect()
}

/// The window that a count and a rate make.
fn windows(evidence: &Evidence) -> Vec<Worked> {
    let counts = evidence.results().filter(|figure| figure.quantity == Quantity::Count);
    counts
        .filter_map(|samples| {
            let mut cell = evidence.cell_of(samples);
            let rate = cell.find(|other| other.quantity == Quantity::Throughput)?;
            // A rate that was made from latencies is of no window.
            let is_inverse = evidence.cell_of(samples).any(|other| {
                let is_mean = other.statistic == Statistic::Mean;
                let product = other.value * rate.value;
                other.quantity == Quantity::Latency && is_mean && (product - 1.0).abs() < 0.002
            });
            if is_inverse || rate.value <= 0.0 {
                return None;
            }
            let said = format!(
                "{}: {} at {} is a window of {}",
                samples.named(),
                samples.printed,
                words::rate(rate.value),
                words::time(samples.value / rate.value)
            );
            Some(Worked { place: samples.place.clone(), said, holds: None })
        })
        .collect()
}

/// Sentences about differences, ratios and changes of means, made again from those means.
fn claims(evidence: &Evidence) -> Vec<Worked> {
    evidence
        .figures
        .iter()
        .filter(|figure| figure.is_claim)
        .filter_map(|claim| {
            let words = words_of(claim.place.series.trim_start_matches("claim="));
            let (made, how) = again(evidence, &words)?;
            let printed = claim.printed.split([' ', '/']).next()?;
            let printed_value = count(printed)?;
            let slack = half_digit(printed) + MADE_SLACK * made.abs();
            let holds = (made - printed_value).abs() <= slack;
            let verb = if holds { "is" } else { "would be" };
            let said = format!("{}: {how} {verb} {}", claim.printed, words::number(made));
            Some(Worked { place: claim.place.clone(), said, holds: Some(holds) })
        })
        .collect()
}

/// A claim's value from the means that it names, in the unit in which they are printed.
fn again(evidence: &Evidence, words: &[String]) -> Option<(f64, String)> {
    let at = |word: &str| words.iter().position(|known| known == word);
    let is_rate = words.iter().any(|word| word == "throughput");
    let quantity = if is_rate { Quantity::Throughput } else { Quantity::Latency };
    let mean = |subject: &str, load: &str| mean_of(evidence, quantity, subject, load);
    if let Some(under) = at("under") {
        let load = words.get(under + 1)?;
        let (base, loaded) = (mean(&words[0], "none")?, mean(&words[0], load)?);
        let change = 100.0 * (loaded.0 / base.0 - 1.0);
        return Some((change, format!("{} against {}, in percent,", loaded.1, base.1)));
    }
    let word = at("over").or_else(|| at("minus"))?;
    let (left, right) = (words.get(word.checked_sub(1)?)?, words.get(word + 1)?);
    let (left, right) = (mean(left, "none")?, mean(right, "none")?);
    Some(match words[word].as_str() {
        "over" => (left.0 / right.0, format!("{} / {}", left.1, right.1)),
        _ => (left.0 - right.0, format!("{} - {}", left.1, right.1)),
    })
}

/// A mean as printed, of a subject under a load, wherever it stands first.
fn mean_of(
    evidence: &Evidence,
    quantity: Quantity,
    subject: &str,
    load: &str,
) -> Option<(f64, String)> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|letter| letter.is_alphanumeric());
        letters.collect::<String>().to_lowercase()
    };
    let found = evidence.results().find(|figure| {
        let is_mean = match quantity {
            Quantity::Latency => figure.statistic == Statistic::Mean,
            _ => true,
        };
        let is_loaded = figure.keys.get("load").is_some_and(|own| plain(own) == plain(load));
        figure.quantity == quantity
            && is_mean
            && is_loaded
            && figure.subjects.len() == 1
            && plain(&figure.subjects[0]) == plain(subject)
    })?;
    Some((count(found.printed.split([' ', '/']).next()?)?, found.printed.clone()))
}

/// Mean currents of batteries that lasted so long, and what their rating may mean.
fn currents(evidence: &Evidence) -> Vec<Worked> {
    let with_unit =
        |unit: &'static str| evidence.results().find(move |figure| figure.printed.ends_with(unit));
    let Some(battery) = with_unit(" mAh") else { return Vec::new() };
    let mut worked = Vec::new();
    if let Some(volts) = with_unit(" V") {
        let watt_hours = |volts: f64| words::number(battery.value * volts / 1000.0);
        let said = format!(
            "{} are {} Wh at the stated {}, and {} Wh if they are rated at a lithium cell's 3.7 V: \
             ratios survive, absolute figures do not",
            battery.printed,
            watt_hours(volts.value),
            volts.printed,
            watt_hours(CELL_VOLTS),
        );
        worked.push(Worked { place: battery.place.clone(), said, holds: None });
    }
    let lives = evidence.results().filter(|figure| figure.place.series.contains("lifetime"));
    worked.extend(lives.filter(|life| life.value > 0.0).map(|life| {
        let said = format!(
            "{}: {} over {} is a mean current of {} mA, idle included",
            life.cell(),
            battery.printed,
            life.printed,
            words::number((battery.value * 3600.0 / life.value).round())
        );
        Worked { place: life.place.clone(), said, holds: None }
    }));
    worked
}

/// Lives on one battery, and what they make together with a gain of speed: work per charge is the
/// rate of work times the life.
fn lives(evidence: &Evidence) -> Vec<Worked> {
    let is_life = |figure: &&Figure| figure.place.series.contains("lifetime");
    let lives: Vec<&Figure> = evidence.results().filter(is_life).collect();
    let gain = evidence.figures.iter().find(|figure| {
        let series = &figure.place.series;
        figure.is_claim && series.contains("speed_gain") && figure.printed.ends_with('%')
    });
    let mut worked = Vec::new();
    for pair in lives.windows(2) {
        let [first, second] = pair else { continue };
        if first.keys != second.keys || first.subjects == second.subjects || first.value <= 0.0 {
            continue;
        }
        let longer = second.value / first.value;
        let mut said = format!(
            "{} lasts {} as long as {}",
            second.cell(),
            words::factor(longer),
            first.named()
        );
        if let Some(gain) = gain {
            let faster = 1.0 + gain.value;
            said += &format!(
                "; with the {} of speed that is {} the work for a charge",
                gain.printed,
                words::factor(longer * faster)
            );
        }
        worked.push(Worked { place: second.place.clone(), said, holds: None });
    }
    worked
}

/// Coverage of Student's interval of the mean for this number of values, skewed as times often are.
fn coverage(evidence: &Evidence) -> Option<Worked> {
    evidence.facts.iter().find(|fact| fact.key == "interval_over")?;
    let stated = evidence.facts.iter().find(|fact| fact.key == "repetitions")?;
    let number = count(&stated.value).filter(|n| (2.0..=COVERAGE_VALUES_MAX).contains(n))?;
    let mut random = Random::new(COVERAGE_SEED);
    let mean = 0.5f64.exp();
    let mut held = 0u32;
    for _ in 0..COVERAGE_SETS {
        let values: Vec<f64> = (0..number as usize).map(|_| random.normal().exp()).collect();
        let estimate = Estimate::of_mean(&values)?;
        let (low, high) = (estimate.low?, estimate.high?);
        held += u32::from(low <= mean && mean <= high);
    }
    let share = f64::from(held) / f64::from(COVERAGE_SETS);
    let said = format!(
        "Student's 95 % interval from {} independent log-normal values (sigma 1) contains their \
        mean in {:.1} % of {} simulated sets; values that follow each other in a queue are not \
        independent either",
        words::number(number),
        100.0 * share,
        words::number(f64::from(COVERAGE_SETS)),
    );
    let place = Place { table: stated.table.clone().unwrap_or_default(), ..place_of(evidence) };
    Some(Worked { place, said, holds: None })
}

/// The file as a whole.
fn place_of(evidence: &Evidence) -> Place {
    let file = evidence.figures.first().map(|figure| figure.place.file.clone());
    Place { file: file.unwrap_or_default(), ..Place::default() }
}

/// By how much means that are printed rounded may shift what is made from them.
const MADE_SLACK: f64 = 0.002;

/// What a single lithium cell gives, as ratings of packs are often meant.
const CELL_VOLTS: f64 = 3.7;

/// Sets of a simulated coverage: one standard error is 0.2 percentage points.
const COVERAGE_SETS: u32 = 20_000;
const COVERAGE_SEED: u64 = 1;
const COVERAGE_VALUES_MAX: f64 = 1000.0;
