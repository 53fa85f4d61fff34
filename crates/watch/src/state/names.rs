//! Names of trials while the run continues: what varies among the trials decides what is in them.

use weigh_model::trial::Point;
use weigh_report::summary::cell_names;

/// Names of the trials that began. `names` of `state.js` follows the same rule.
#[derive(Debug, Default)]
pub struct Names {
    /// Points of the plan.
    cases: Vec<Point>,
    /// Points of the trials that began, each once.
    begun: Vec<Point>,
    /// The points among which names are distinguished, and their names.
    known: Vec<(Point, String)>,
}

impl Names {
    /// Names in a run of a plan with these points.
    pub fn of_plan(cases: Vec<Point>) -> Names {
        let mut names = Names { cases, ..Names::default() };
        names.update();
        names
    }

    /// Adds the point of a trial that begins. If it is not in the plan, a search has chosen its
    /// load: then only trials are compared, because none of them is at a point of the plan.
    pub fn begin(&mut self, point: &Point) {
        if self.begun.contains(point) {
            return;
        }
        self.begun.push(point.clone());
        if !self.known.iter().any(|(own, _)| own == point) {
            self.update();
        }
    }

    /// Name of the case at `point`, as in tables.
    pub fn name(&self, point: &Point) -> Option<&str> {
        self.known.iter().find(|(own, _)| own == point).map(|(_, name)| &**name)
    }

    fn update(&mut self) {
        let is_search = self.begun.iter().any(|own| !self.cases.contains(own));
        let points = if is_search { &self.begun } else { &self.cases };
        let names = cell_names(&points.iter().collect::<Vec<_>>());
        self.known = points.iter().cloned().zip(names).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(words: &[(&str, &str)]) -> Point {
        words.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect()
    }

    #[test]
    fn a_plan_names_its_trials_before_they_begin() {
        let cases = ["a", "b"].map(|own| point(&[("protocol", "tcp"), ("load.size", own)]));
        let mut names = Names::of_plan(cases.to_vec());
        names.begin(&cases[1]);
        assert_eq!(names.name(&cases[1]), Some("tcp size=b on reference"));
    }

    /// What a search adds to all of its trials is not part of their names.
    #[test]
    fn a_search_names_the_load_of_each_trial() {
        let rate = |rate| point(&[("protocol", "tcp"), ("load.rate", rate)]);
        let trial = |own| {
            let mut point = rate(own);
            point.insert("load.duration".to_owned(), "300ms".into());
            point
        };
        let mut names = Names::of_plan(vec![rate("500/s")]);
        let trials = ["500/s", "1000/s", "2000/s"].map(trial);
        trials.iter().for_each(|own| names.begin(own));
        let all: Vec<_> = trials.iter().filter_map(|own| names.name(own)).collect();
        assert_eq!(
            all,
            ["500/s", "1000/s", "2000/s"].map(|own| format!("tcp rate={own} on reference"))
        );
    }
}
