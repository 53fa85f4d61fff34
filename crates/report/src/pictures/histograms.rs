//! Histograms of the recorded times of a cell.

use serde_json::{Value, json};

use super::curves::{Recorded, TIMES, Times};
use super::picture::{Kind, Picture};
use crate::figures::capital;
use crate::summary::Matrix;

/// A picture for every cell and time.
pub(crate) fn pictures(matrix: &Matrix, recorded: &Recorded) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for cell in 0..matrix.labels.len() {
        let times = TIMES.into_iter().filter_map(|time| Some((time, recorded.times(cell, time)?)));
        pictures.extend(times.map(|(time, times)| picture(time, cell, matrix, times)));
    }
    pictures
}

fn picture(time: &str, cell: usize, matrix: &Matrix, times: &Times) -> Picture {
    let ends = (times.bins.first(), times.bins.last());
    let low = ends.0.map_or(0.0, |bin| bin.0);
    let high = ends.1.map_or(1.0, |bin| bin.1);
    let lost = match times.lost {
        0 => String::new(),
        lost => format!(" In addition {} were lost.", crate::figures::count(lost)),
    };
    Picture {
        name: format!("histogram-{:03}-{time}", cell + 1),
        kind: Kind::Histogram,
        subject: cell.to_string(),
        part: String::new(),
        title: format!("{} of {}", capital(time), matrix.labels[cell]),
        note: format!(
            "{} messages of all repetitions, in bins of equal width on the logarithmic scale.{}",
            crate::figures::count(times.count),
            lost
        ),
        height: 220,
        about: json!({ "unit": "count", "total": times.count }),
        option: json!({
            "grid": { "top": 10, "left": 64, "right": 18, "height": 170 },
            "tooltip": { "trigger": "item", "formatter": "@bins" },
            "xAxis": {
                "type": "value", "min": low, "max": high, "splitLine": { "show": false },
                "axisLine": { "show": true },
                "axisLabel": { "formatter": "@decade", "customValues": marks(low, high) },
            },
            "yAxis": { "type": "value", "axisLabel": { "formatter": "@count" }, "splitNumber": 4 },
            "series": [{
                "type": "custom", "renderItem": "@drawBin",
                "color": format!("$c{}", matrix.colours[cell]),
                "encode": { "x": [0, 1], "y": 2 },
                "data": times.bins,
            }],
        }),
    }
}

/// Marks at round figures between the ends, which are powers of ten: more marks on a short axis.
fn marks(low: f64, high: f64) -> Vec<Value> {
    let powers = (low.floor() as i32..=high.ceil() as i32).map(f64::from);
    let steps: &[f64] = match high - low {
        narrow if narrow < 0.3 => {
            &[1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        }
        one if one < 1.3 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        few if few < 3.3 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let all = powers.flat_map(|power| steps.iter().map(move |step| power + step.log10()));
    all.filter(|mark| (low..=high).contains(mark)).map(|mark| json!(mark)).collect()
}
