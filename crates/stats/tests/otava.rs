//! Change points in histories are those of Apache Otava, made by `otava/make.py` and stored with
//! its version: exactly those of its two passes where the second judges both neighbours of a
//! point that it took out, and in all but a few histories those of Otava as it is, which judges
//! the two points after it.

use serde_json::Value;
use weigh_stats::change_point::Search;

#[test]
fn change_points_are_otavas() {
    let answers: Value = serde_json::from_str(include_str!("otava/answers.json")).expect("JSON");
    let histories = answers["histories"].as_array().expect("histories");
    let (mut compared, mut as_it_is) = (0, 0);
    for (index, history) in histories.iter().enumerate() {
        let found = Search::default().change_points(&numbers(&history["values"]));
        let places: Vec<f64> = found.iter().map(|point| point.index as f64).collect();
        as_it_is += usize::from(places == numbers(&history["otava"]));
        let expected = history["both_neighbours"].as_array().expect("points");
        let expected: Vec<Vec<f64>> = expected.iter().map(numbers).collect();
        let expected_places: Vec<f64> = expected.iter().map(|point| point[0]).collect();
        assert_eq!(places, expected_places, "history {index}");
        for (point, expected) in found.iter().zip(&expected) {
            let apart = (point.p - expected[1]).abs();
            assert!(apart <= 1e-6 * expected[1] + 1e-15, "{point:?} {expected:?}");
        }
        compared += found.len();
    }
    println!("{as_it_is} of {} as Otava is, {compared} change points", histories.len());
    assert!(compared > 60 && as_it_is >= 36, "{as_it_is} {compared}");
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
}
