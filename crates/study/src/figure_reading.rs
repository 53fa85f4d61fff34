//! Reads the pictures of a study: every series must be there, theirs among the published figures
//! and ours among the runs.

use weigh_plan::{Problem, Problems};

use crate::outcome::AxisShown;
use crate::reading::{Around, Slip, check_ids, no_cell, tell};
use crate::run_checks::Meant;
use crate::study::{Figure, OurSeries, TheirSeries};
use crate::written::{AxisFile, AxisScaleFile, FigureFile, OursFile, StudyFile, TheirsFile};

pub(crate) fn read(file: &StudyFile, around: &Around<'_>, wrong: &mut Problems) -> Vec<Figure> {
    check_ids(file.figure.iter().map(|figure| &figure.id), "figure", wrong);
    file.figure.iter().map(|written| figure(written, around, wrong)).collect()
}

fn figure(written: &FigureFile, around: &Around<'_>, wrong: &mut Problems) -> Figure {
    if written.theirs.is_empty() && written.ours.is_empty() {
        let text = format!("the figure {} has no series", written.id.get_ref());
        let mend = "write [[figure.theirs]] or [[figure.ours]] below it";
        wrong.add(Problem::at(written.id.span(), text, mend));
    }
    let mut theirs = Vec::new();
    for series in &written.theirs {
        match their(series.get_ref(), around) {
            Ok(series) => theirs.push(series),
            Err(slip) => tell(wrong, series.span(), slip),
        }
    }
    let mut ours = Vec::new();
    for series in &written.ours {
        match our(series.get_ref(), around) {
            Ok(series) => ours.push(series),
            Err(slip) => tell(wrong, series.span(), slip),
        }
    }
    Figure {
        id: written.id.get_ref().clone(),
        title: written.title.clone(),
        caption: written.caption.clone(),
        x: axis(&written.x),
        y: axis(&written.y),
        has_trend: written.trend.is_some(),
        theirs,
        ours,
    }
}

fn axis(written: &AxisFile) -> AxisShown {
    let (label, unit) = (written.label.clone(), written.unit.clone());
    AxisShown { label, unit, is_log: written.scale == AxisScaleFile::Log }
}

fn their(written: &TheirsFile, around: &Around<'_>) -> Result<TheirSeries, Slip> {
    let cells = around.published.along(&written.table, &written.series);
    if cells.is_empty() {
        return Err(no_cell(&written.table, &written.series, ""));
    }
    Ok(TheirSeries { label: written.label.clone(), cells, scale: written.scale })
}

fn our(written: &OursFile, around: &Around<'_>) -> Result<OurSeries, Slip> {
    let plan = around.matrix(&written.run)?;
    around.metric(&written.metric)?;
    let at = around.selector(plan, &written.at)?;
    let over = around.axis(plan, &written.over)?;
    around.check_cells(plan, &at, Meant::Along(&over, 1), false)?;
    Ok(OurSeries {
        label: written.label.clone(),
        run: written.run.clone(),
        metric: written.metric.clone(),
        over,
        at,
        scale: written.scale,
    })
}
