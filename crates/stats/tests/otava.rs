//! Change points in histories are those of Apache Otava, made by `otava/make.py` and stored with
//! its version.

use serde_json::Value;
use weigh_stats::change_point::Search;

#[test]
fn change_points_are_otavas() {
    let answers: Value = serde_json::from_str(include_str!("otava/answers.json")).expect("JSON");
    let histories = answers["histories"].as_array().expect("histories");
    let mut compared = 0;
    for (index, history) in histories.iter().enumerate() {
        let numbers = |value: &Value| -> Vec<f64> {
            value.as_array().expect("a list").iter().map(|v| v.as_f64().expect("number")).collect()
        };
        let found = Search::default().change_points(&numbers(&history["values"]));
        let expected: Vec<Vec<f64>> =
            history["change_points"].as_array().expect("points").iter().map(numbers).collect();
        let places = |points: &[Vec<f64>]| points.iter().map(|p| p[0] as usize).collect::<Vec<_>>();
        let ours: Vec<usize> = found.iter().map(|point| point.index).collect();
        assert_eq!(ours, places(&expected), "history {index}");
        // Otava keeps the p of the point to the left when it takes one out, so that only the places
        // can be compared.
        assert!(found.iter().all(|point| point.p < 0.001), "history {index}: {found:?}");
        compared += ours.len();
    }
    assert!(compared > 30, "only {compared} change points");
}
