//! Cost models against answers that are known before: SciPy's `nnls`, made by
//! `scipy/make_nnls.py`, and simulated costs whose coefficients are the truth.

use nalgebra::{DMatrix, DVector};
use serde_json::Value;
use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::cost_model::{Coefficients, CostModel, Row, non_negative, predict};
use weigh_stats::random::Random;

#[test]
fn non_negative_least_squares_are_scipys() {
    let answers: Value = serde_json::from_str(include_str!("scipy/nnls.json")).expect("JSON");
    let problems = answers["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 40);
    let mut at_zero = 0;
    for (index, problem) in problems.iter().enumerate() {
        let rows: Vec<Vec<f64>> =
            problem["matrix"].as_array().expect("rows").iter().map(numbers).collect();
        let matrix = DMatrix::from_fn(rows.len(), rows[0].len(), |row, column| rows[row][column]);
        let right = DVector::from_vec(numbers(&problem["right"]));
        let found = non_negative(&matrix, &right);
        let expected = DVector::from_vec(numbers(&problem["found"]));
        at_zero += found.iter().filter(|value| **value == 0.0).count();
        let norm = problem["norm"].as_f64().expect("a number");
        let apart = ((&matrix * &found - &right).norm() - norm).abs();
        assert!(apart < 1e-10 * (1.0 + norm), "problem {index}: {found} leaves more than {norm}");
        for ((found, expected), column) in found.iter().zip(&expected).zip(matrix.column_iter()) {
            let apart = (found - expected).abs() * column.norm();
            assert!(apart < 1e-8 * (1.0 + right.norm()), "problem {index}: {found} {expected}");
        }
    }
    assert!(at_zero > 20, "only {at_zero} coefficients were bound: the problems test too little");
}

/// The design of a cost experiment in small: ten cells, two or three runs each, of what stands,
/// connections held, messages and connections opened.
#[test]
fn the_interval_holds_the_truth_about_as_often_as_it_says() {
    println!("   runs  spread  base  connection  message  opened  forecast");
    let mut all = Vec::new();
    for (repetitions, spread) in [(2, 0.03), (3, 0.03), (3, 0.10), (5, 0.05)] {
        let covered = coverage(Scatter { repetitions, runs: spread, cells: 0.0 }, false);
        let shown: Vec<String> = covered.iter().map(|share| format!("{share:.3}")).collect();
        println!("{repetitions:7}  {spread:6.2}  {}", shown.join("  "));
        all.push(covered);
    }
    for share in all.iter().flatten() {
        assert!((0.90..=0.985).contains(share), "{all:?}");
    }
}

/// The same where each cell is off by something that is in all of its runs, as large as their own
/// scatter or three times as large. With a sign for every run the intervals hold the truth the less
/// often the more repetitions there are; with one for every cell they nearly keep what they say.
#[test]
fn what_is_in_all_runs_of_a_cell_is_in_the_interval() {
    println!("   runs  of cells  by      base  connection  message  opened  forecast");
    for (repetitions, cells) in [(2, 0.03), (5, 0.03), (5, 0.10), (10, 0.10)] {
        let scatter = Scatter { repetitions, runs: 0.03, cells };
        let [by_run, by_cell] = [false, true].map(|by_cell| coverage(scatter, by_cell));
        for (by, covered) in [("run ", &by_run), ("cell", &by_cell)] {
            let shown: Vec<String> = covered.iter().map(|share| format!("{share:.3}")).collect();
            println!("{repetitions:7}  {cells:8.2}  {by}  {}", shown.join("  "));
        }
        let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
        assert!(by_cell.iter().all(|share| (0.86..=0.995).contains(share)), "{by_cell:?}");
        assert!(mean(&by_cell) > 0.9, "{by_cell:?}");
        if repetitions > 2 {
            assert!(mean(&by_run) < mean(&by_cell) - 0.05, "{by_run:?} {by_cell:?}");
        }
    }
}

/// A message of larger bodies costs more, and the model does not know: no cell foretells it.
#[test]
fn a_missing_term_shows_where_cells_are_held_out() {
    let mut random = Random::new(5);
    let scatter = Scatter { repetitions: 3, runs: 0.02, cells: 0.0 };
    let (mut with, groups) = runs(scatter, &mut random);
    // Every second cell has bodies that cost twice a message.
    for (row, group) in with.iter_mut().zip(&groups) {
        let bytes = if group % 2 == 0 { row.drivers[2] } else { 0.0 };
        row.cost += 2.0 * TRUTH[2] * bytes;
        row.drivers.push(bytes);
    }
    let without: Vec<Row> =
        with.iter().map(|row| Row { drivers: row.drivers[..4].to_vec(), ..row.clone() }).collect();
    let error = |rows: &[Row]| {
        let found = predict(&[0.0], |_| rows.to_vec(), &groups, 3, FLOOR);
        let errors: Vec<f64> = found.iter().filter_map(|cell| cell.relative_error()).collect();
        assert!(errors.len() > 7, "{found:?}");
        (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
    };
    let (whole, missing) = (error(&with), error(&without));
    assert!(whole < 0.06, "the whole model errs by {whole}");
    assert!(missing > 0.3, "without the term it errs by {missing} only");
}

/// The share of simulated experiments whose intervals hold each true coefficient, and the cost of
/// a load far beyond those that were run. The signs of the bootstrap are drawn for cells, or for
/// runs.
fn coverage(scatter: Scatter, by_cell: bool) -> Vec<f64> {
    let beyond = [1.0, 50_000.0, 5_000.0, 0.0];
    let mut held = [0u32; 5];
    let mut random = Random::new(11 + scatter.repetitions as u64);
    for set in 0..SETS {
        let (rows, cells) = runs(scatter, &mut random);
        let groups = if by_cell { cells } else { (0..rows.len()).collect() };
        let bootstrap = Bootstrap { resamples: 400, seed: u64::from(set) };
        let model = CostModel::fit(&rows, &groups, FLOOR, bootstrap).expect("a sound design");
        let cost = |coefficients: &[f64]| {
            coefficients.iter().zip(beyond).map(|(each, amount)| each * amount).sum::<f64>()
        };
        let truth = cost(&TRUTH);
        let cost = |found: &Coefficients| cost(&found.each);
        let holds = (0..4).map(|at| model.interval(at).contains(TRUTH[at]));
        let holds = holds.chain([model.interval_of(cost).contains(truth)]);
        held.iter_mut().zip(holds).for_each(|(held, holds)| *held += u32::from(holds));
    }
    held.iter().map(|held| f64::from(*held) / f64::from(SETS)).collect()
}

/// CPU seconds of a second: of the process itself, and of each connection, message and opening.
const TRUTH: [f64; 4] = [0.004, 1e-6, 20e-6, 120e-6];

/// A thousandth of a core.
const FLOOR: f64 = 1e-3;

const SETS: u32 = 600;

/// How far simulated runs are off, as shares of their cost.
#[derive(Clone, Copy)]
struct Scatter {
    /// Runs of each cell.
    repetitions: usize,
    /// Each run for itself.
    runs: f64,
    /// All runs of a cell together.
    cells: f64,
}

fn runs(scatter: Scatter, random: &mut Random) -> (Vec<Row>, Vec<usize>) {
    let kept = [(200.0, 500.0), (200.0, 2_000.0), (200.0, 6_000.0), (2_000.0, 500.0)];
    let more = [(2_000.0, 4_000.0), (8_000.0, 1_000.0), (8_000.0, 4_000.0)];
    let opened = [100.0, 400.0, 1_000.0].map(|rate| vec![1.0, 0.0, rate, rate]);
    let kept = kept.into_iter().chain(more);
    let cells = kept.map(|(held, rate)| vec![1.0, held, rate, 0.0]).chain(opened);
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for (group, drivers) in cells.enumerate() {
        let cost: f64 = TRUTH.iter().zip(&drivers).map(|(each, amount)| each * amount).sum();
        // Without an effect of cells no number is drawn for it: the runs are those they were.
        let of_cell = if scatter.cells > 0.0 { scatter.cells * random.normal() } else { 0.0 };
        for _ in 0..scatter.repetitions {
            let cost = cost * (1.0 + of_cell + scatter.runs * random.normal());
            rows.push(Row { drivers: drivers.clone(), cost });
            groups.push(group);
        }
    }
    (rows, groups)
}

fn numbers(value: &Value) -> Vec<f64> {
    let number = |value: &Value| value.as_f64().expect("a number");
    value.as_array().expect("numbers").iter().map(number).collect()
}
