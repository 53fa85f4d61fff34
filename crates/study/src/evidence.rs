//! Values by all occasions together: an expression is evaluated run by run, and the values of the
//! runs are combined (see [`crate::occasions`]). Taken run by run, what changes all figures of
//! a run alike drops out of their ratio.

use weigh_stats::propagation::{DRAWS, Known};

use crate::measuring::{Absent, Measured, Measuring, Repeated, seed};
use crate::occasion::Occasion;
use crate::occasions::{OneRun, Together, Widening, together, widened};
use crate::openings;
use crate::quantity::Quantity;
use crate::study::Study;

/// All occasions, to look values up in.
pub(crate) struct Evidence<'a> {
    occasions: &'a [Occasion],
    /// By the index of their widening, then by occasion.
    measuring: [Vec<Measuring<'a>>; 3],
}

/// A quantity as the occasions have it.
pub(crate) struct Sighted<'q> {
    /// Its name in the expression.
    name: &'q str,
    quantity: &'q Quantity,
    /// By occasion; of what no run says anything the same in all.
    seen: Vec<Result<Measured, Absent>>,
    /// Under which load, by occasion: values are put together where it is the same.
    loads: Vec<String>,
}

/// A value with its 95 % interval, by all occasions that have it.
#[derive(Clone, Debug)]
pub(crate) struct Valued {
    pub(crate) estimate: f64,
    /// The estimate twice where it is exact.
    pub(crate) ends: (f64, f64),
    /// The fewest repetitions behind one of its quantities, those of all runs; `None` where it
    /// rests on none.
    pub(crate) n: Option<u32>,
    /// Why it must not decide anything; empty where it may.
    pub(crate) openings: Vec<String>,
    /// Which runs have no part in it, and why.
    pub(crate) left_out: Vec<String>,
}

/// What is made of the values of quantities, and how precisely.
pub(crate) struct Asked<'f> {
    /// A name, from which draws are seeded.
    pub(crate) name: &'f str,
    pub(crate) value: &'f dyn Fn(&[f64]) -> f64,
    pub(crate) draws: usize,
    /// Cores that its runs need, at least.
    pub(crate) cores_min: u32,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(study: &'a Study, occasions: &'a [Occasion]) -> Evidence<'a> {
        let of = |widening: Widening| {
            occasions.iter().map(|own| Measuring::new(study, own, widening)).collect()
        };
        Evidence { occasions, measuring: Widening::ALL.map(of) }
    }

    /// Drops what was kept of the quantities of one claim.
    pub(crate) fn forget(&self) {
        self.measuring.iter().flatten().for_each(Measuring::forget);
    }

    /// The machines of all occasions, each once.
    pub(crate) fn hosts(&self) -> String {
        let mut hosts: Vec<String> = Vec::new();
        for host in self.measuring[0].iter().map(Measuring::host) {
            if !host.is_empty() && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts.join("; and ")
    }

    /// What all occasions say of a quantity.
    ///
    /// # Errors
    /// If none has it: why the last one has not.
    pub(crate) fn look<'q>(
        &self,
        name: &'q str,
        quantity: &'q Quantity,
    ) -> Result<Sighted<'q>, Absent> {
        let own = &self.measuring[Widening::index(self.occasions.len())];
        let seen: Vec<_> = own.iter().map(|one| one.measure(quantity)).collect();
        if seen.iter().all(Result::is_err) {
            let is_without_run =
                seen.iter().all(|one| one.as_ref().is_err_and(|absent| absent.is_without_run));
            let last = seen.into_iter().filter_map(Result::err).next_back();
            let last = last.expect("there is an occasion");
            return Err(Absent { is_without_run, ..last });
        }
        let load = |one: &Measuring<'_>| match (quantity.run(), quantity.at()) {
            (Some(run), Some(at)) => one.load_of(run, at),
            (Some(run), None) => one.tool_load(run),
            _ => String::new(),
        };
        let loads = match own.len() {
            1 => vec![String::new()],
            _ => own.iter().map(load).collect(),
        };
        Ok(Sighted { name, quantity, seen, loads })
    }

    /// The value of what is asked, for these quantities in their order.
    ///
    /// # Errors
    /// If no occasion has all of them.
    pub(crate) fn evaluate(
        &self,
        asked: &Asked<'_>,
        sighted: &[Sighted<'_>],
    ) -> Result<Valued, String> {
        let (all, left_out) = self.usable(sighted);
        if all.is_empty() {
            return Err(format!("no run has all of it: {}", left_out.join("; ")));
        }
        let opened: Vec<Vec<String>> =
            all.iter().map(|at| self.openings(*at, asked, sighted)).collect();
        let clean = all.iter().zip(&opened).filter(|(_, reasons)| reasons.is_empty());
        let clean: Vec<usize> = clean.map(|(at, _)| *at).collect();
        let value = |runs: &[usize]| self.together(runs, asked, sighted);
        // A run with a warning may widen what the others say, and cannot narrow it.
        let Together { estimate, low, high } = match clean.len() {
            0 => value(&all),
            some if some == all.len() => value(&all),
            _ => value(&clean).or_wider(value(&all)),
        };
        let mut openings: Vec<String> = Vec::new();
        if clean.is_empty() {
            for reason in opened.into_iter().flatten() {
                if !openings.contains(&reason) {
                    openings.push(reason);
                }
            }
        }
        let repetitions = |one: &Sighted<'_>| {
            let of_runs = one.quantity.run().is_some();
            let own = all.iter().filter_map(|at| one.seen[*at].as_ref().ok()?.n);
            of_runs.then(|| own.reduce(|sum, n| sum + n)).flatten()
        };
        let n = sighted.iter().filter_map(repetitions).min();
        Ok(Valued { estimate, ends: (low, high), n, openings, left_out })
    }

    /// The value of one quantity by itself.
    ///
    /// # Errors
    /// If no occasion has it.
    pub(crate) fn plain(&self, sighted: &Sighted<'_>) -> Result<Valued, String> {
        let asked =
            Asked { name: "itself", value: &|values| values[0], draws: DRAWS, cores_min: 0 };
        self.evaluate(&asked, std::slice::from_ref(sighted))
    }

    /// The occasions that have all quantities, under the same load: the largest such group, of
    /// several the latest. And why the others are left out.
    fn usable(&self, sighted: &[Sighted<'_>]) -> (Vec<usize>, Vec<String>) {
        let of_runs: Vec<&Sighted<'_>> =
            sighted.iter().filter(|one| one.quantity.run().is_some()).collect();
        if of_runs.is_empty() {
            return (vec![0], Vec::new());
        }
        let mut groups: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
        let mut left_out = Vec::new();
        for (at, occasion) in self.occasions.iter().enumerate() {
            if let Some(absent) = of_runs.iter().find_map(|one| one.seen[at].as_ref().err()) {
                left_out.push(format!("{}: {}", occasion.run, absent.reason));
                continue;
            }
            let loads: Vec<&str> = of_runs.iter().map(|one| &*one.loads[at]).collect();
            match groups.iter_mut().find(|(known, _)| *known == loads) {
                Some((_, members)) => members.push(at),
                None => groups.push((loads, vec![at])),
            }
        }
        let largest = groups.iter().map(|(_, members)| members).max_by_key(|members| members.len());
        let chosen = largest.cloned().unwrap_or_default();
        for at in groups.iter().flat_map(|(_, members)| members).filter(|at| !chosen.contains(at)) {
            left_out.push(format!("{}: another load or another plan", self.occasions[*at].run));
        }
        (chosen, left_out)
    }

    /// Why an occasion must not decide.
    fn openings(&self, at: usize, asked: &Asked<'_>, sighted: &[Sighted<'_>]) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for one in sighted {
            reasons.extend(one.seen[at].iter().flat_map(|seen| seen.openings.clone()));
            if one.quantity.is_modelled() {
                reasons.push(format!("{}: {}", one.name, openings::MODELLED));
            }
            let small = |run| self.measuring[0][at].too_small(run, asked.cores_min);
            reasons.extend(one.quantity.run().and_then(small));
        }
        reasons
    }

    fn together(&self, runs: &[usize], asked: &Asked<'_>, sighted: &[Sighted<'_>]) -> Together {
        let index = Widening::index(runs.len());
        let is_seen_so = index == Widening::index(self.occasions.len());
        let of = |at: &usize| {
            let measured = sighted.iter().map(|one| match &one.seen[*at] {
                Ok(seen) if is_seen_so => seen.clone(),
                Ok(seen) => {
                    let again = self.measuring[index][*at].measure(one.quantity);
                    again.unwrap_or_else(|_| seen.clone())
                }
                Err(_) => unreachable!("an occasion that is used has all quantities"),
            });
            let measured: Vec<Measured> = measured.collect();
            let name = format!("{} {}", self.occasions[*at].run, asked.name);
            one_run(asked, &name, &measured, Widening::ALL[index])
        };
        let is_bounded = sighted.iter().any(|one| one.quantity.is_bounded());
        together(runs.iter().map(of).collect(), is_bounded)
    }
}

impl Sighted<'_> {
    fn known(&self) -> impl Iterator<Item = &Measured> {
        let all = if self.quantity.run().is_some() { self.seen.len() } else { 1 };
        self.seen.iter().take(all).filter_map(|one| one.as_ref().ok())
    }

    /// Its unit.
    pub(crate) fn unit(&self) -> String {
        self.known().next().map_or("1".to_owned(), |one| one.unit.clone())
    }

    /// Where it comes from, in all runs.
    pub(crate) fn links(&self) -> Vec<crate::outcome::Link> {
        self.known().flat_map(|one| one.links.clone()).collect()
    }

    /// What is to be known of it, each remark once.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.known().filter_map(|one| one.note.clone()) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
}

/// What one run says of a value.
fn one_run(asked: &Asked<'_>, name: &str, measured: &[Measured], widening: Widening) -> OneRun {
    if let Some((estimate, known)) = by_repetition(asked.value, measured) {
        let draws = known.draws(seed(name)).into_iter().take(asked.draws);
        let draws = draws.map(|draw| widened(draw, estimate, widening.repeated));
        return OneRun { estimate, draws: Some(draws.collect()) };
    }
    let estimates: Vec<f64> = measured.iter().map(|one| one.estimate).collect();
    let estimate = (asked.value)(&estimates);
    if measured.iter().all(|one| one.draws.is_none()) {
        return OneRun { estimate, draws: None };
    }
    let mut values = estimates;
    let at = |draw: usize| {
        for (value, one) in values.iter_mut().zip(measured) {
            *value = one.draws.as_ref().map_or(one.estimate, |draws| draws[draw]);
        }
        (asked.value)(&values)
    };
    OneRun { estimate, draws: Some((0..asked.draws.min(DRAWS)).map(at).collect()) }
}

/// The mean of a value over repetitions and what is known of it, where all that is uncertain in it
/// was measured in the same trials: two figures of one trial vary together, and taken apart their
/// ratio would have a wider or a narrower interval than it has. `None` where that is not so, and
/// for one quantity alone, whose draws know what is possible.
fn by_repetition(value: &dyn Fn(&[f64]) -> f64, measured: &[Measured]) -> Option<(f64, Known)> {
    let uncertain = measured.iter().filter(|one| one.draws.is_some());
    let repeated: Vec<&Repeated> =
        uncertain.map(|one| one.repeated.as_ref()).collect::<Option<_>>()?;
    let first = repeated.first()?;
    let is_one_cell = repeated.iter().all(|own| own.place == first.place);
    let are_two = repeated.iter().any(|own| own.values != first.values);
    if !is_one_cell || !are_two {
        return None;
    }
    let of = |repetition: usize| {
        let of = |one: &Measured| match &one.repeated {
            Some(own) if one.draws.is_some() => own.values[repetition],
            _ => one.estimate,
        };
        value(&measured.iter().map(of).collect::<Vec<f64>>())
    };
    let values: Vec<f64> = (0..first.values.len()).map(of).collect();
    let known = Known::mean_of(&values)?;
    Some((known.estimate(), known))
}
