//! Reads the pictures of a study: every series must exist, those of `theirs` among the published
//! figures and those of `ours` among the runs.

use weigh_plan::{Problem, Problems};

use crate::outcome::AxisShown;
use crate::run_checks::Meant;
use crate::slips::{Around, Slip, check_ids, no_cell, tell};
use crate::study::{Figure, OurSeries, TheirSeries};
use crate::written::{AxisFile, AxisScaleFile, FigureFile, OursFile, StudyFile, TheirsFile};

pub(crate) fn read(file: &StudyFile, around: &Around<'_>, wrong: &mut Problems) -> Vec<Figure> {
    check_ids(file.figure.iter().map(|figure| &figure.id), "figure", wrong);
    file.figure.iter().map(|written| figure(written, around, wrong)).collect()
}

fn figure(written: &FigureFile, around: &Around<'_>, wrong: &mut Problems) -> Figure {
    if written.theirs.is_empty() && written.ours.is_empty() {
        let text = format!("the figure {} has no series", written.id.get_ref());
        let fix = "write [[figure.theirs]] or [[figure.ours]] below it";
        wrong.add(Problem::at(written.id.span(), text, fix));
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
    let TheirsFile { label, table, series, x, scale } = written;
    let none = || no_cell(table, series, "");
    let cells = match x {
        // A figure that the paper prints of no place, drawn at this one.
        Some(_) => vec![around.published.find(table, series, "").ok_or_else(none)?],
        None => around.published.along(table, series),
    };
    if cells.is_empty() {
        return Err(none());
    }
    let place = |at: &usize| around.published.cells[*at].x_value();
    if let Some(pair) = cells.windows(2).find(|pair| place(&pair[0]) == place(&pair[1])) {
        let text = format!("{series} has two figures at x = {}", around.published.cells[pair[0]].x);
        return Err((text, "let * stand for fewer of them".to_owned()));
    }
    Ok(TheirSeries { label: label.clone(), cells, at: *x, scale: *scale })
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
