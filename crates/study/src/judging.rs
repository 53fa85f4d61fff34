//! Judges.
use crate::outcome::{Outcome, STUDY_SCHEMA};
use crate::runs::Runs;
use crate::study::{About, Study};

pub(crate) fn outcome(study: &Study, about: &About, _runs: &Runs) -> Outcome {
    Outcome {
        schema: STUDY_SCHEMA.to_owned(),
        study: study.name.clone(),
        question: study.question.clone(),
        scale: about.scale,
        ways: about.ways.clone(),
        only: about.only.clone(),
        data: about.data.clone(),
        id: about.id.clone(),
        started: about.started.clone(),
        version: about.version.clone(),
        host: None,
        state: about.state.clone(),
        experiments: Vec::new(),
        claims: Vec::new(),
        figures: Vec::new(),
    }
}
