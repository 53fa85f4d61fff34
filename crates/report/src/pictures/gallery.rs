//! All pictures of a run, as options of ECharts: made once here, drawn by `charts` on the page and
//! on the command line. Options contain no colours and no functions, only their names (`"$c1"`,
//! `"@mark"`), and refer to data that pictures share (`{"$rows": [...]}`).

use serde::Serialize;
use serde_json::Value;
use weigh_model::event::Event;

use super::picture::{Kind, Picture};
use super::{
    axes, cost, curves, dots, flow, histograms, loads, modelled, over_time, scale, search, session,
    shared, way, wire,
};
use crate::summary::headlines::{headline_metric, metrics};
use crate::summary::trials::trials_by_cell;
use crate::summary::{Matrix, Summary};

/// All pictures of a run, and their shared data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gallery {
    /// Names and colours of the cells, and the figures of every metric: options refer to them.
    pub shared: Value,
    /// The pictures, in the order of the page.
    pub pictures: Vec<Picture>,
}

impl Gallery {
    /// The pictures of `summary`, made from `events`.
    pub fn new(summary: &Summary, events: &[Event]) -> Gallery {
        let matrix = Matrix::new(&summary.cells);
        let trials = trials_by_cell(summary, events);
        let mut pictures = search::pictures(summary);
        pictures.extend(loads::pictures(summary));
        // Stages have their own pictures: with those of each metric there would be ten times as
        // many.
        for metric in metrics(summary).into_iter().filter(|name| !name.starts_with("stage.")) {
            pictures.extend(axes::pictures(summary, &matrix, metric));
            pictures.extend(dots::pictures(summary, metric));
        }
        let recorded = curves::Recorded::of(summary, &trials);
        pictures.extend(curves::pictures(summary, &matrix, &recorded));
        pictures.extend(cost::pictures(summary));
        pictures.extend(way::pictures(summary, &matrix));
        pictures.extend(wire::pictures(summary));
        pictures.extend(modelled::pictures(summary));
        pictures.extend(session::pictures(&matrix, &trials, events));
        pictures.extend(flow::pictures(summary, &matrix));
        pictures.extend(histograms::pictures(&matrix, &recorded));
        pictures.extend(over_time::pictures(&matrix, &summary.cells, &trials, events));
        pictures.iter_mut().for_each(|picture| scale::drop_unplaceable(&mut picture.option));
        Gallery { shared: shared::data(summary, &matrix, &metrics(summary)), pictures }
    }

    /// The picture for the first screen: a search for a limit, else the metric of the answer, along
    /// the first axis if there is one. `None` if nothing was measured.
    pub fn headline(&self, summary: &Summary) -> Option<&Picture> {
        let search = self.pictures.iter().find(|picture| picture.kind == Kind::Search);
        if search.is_some() {
            return search;
        }
        let metric = headline_metric(summary)?;
        let of_metric = || self.pictures.iter().filter(|picture| picture.subject == metric);
        let axis = of_metric().find(|picture| picture.kind == Kind::Axis);
        axis.or_else(|| of_metric().find(|picture| picture.kind == Kind::Dots))
    }
}
