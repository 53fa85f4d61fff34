//! Real servers in the plans of a study: each is started once before the first plan that needs it,
//! so that one that does not start fails at once and not in every trial.

use std::collections::BTreeMap;
use std::path::Path;

use weigh_model::plan::TargetLife;
use weigh_testbed::pinning::CoreSet;

use crate::case::lanes::{Against, Lane};
use crate::exit::Stop;
use crate::study::context::StudyContext;
use crate::study::parts::Part;
use crate::targets::hosts::Stage;
use crate::targets::pool::Targets;
use crate::targets::running::Running;

/// Results of the servers started so far, by how each is started.
#[derive(Default)]
pub struct ServerTrials(BTreeMap<String, Option<String>>);

impl ServerTrials {
    /// Returns why a server of this plan does not start; `None` if all do. Their files are in
    /// `folder` in the meantime.
    pub fn obstacle(
        &mut self,
        context: &StudyContext<'_>,
        part: &Part,
        folder: &Path,
    ) -> Option<String> {
        let is_managed = |lane: &&Lane| matches!(lane.against, Against::Managed(_));
        let lanes = part.cases.iter().map(|case| &case.lane).filter(is_managed);
        lanes.into_iter().find_map(|lane| {
            let key = Running::key(lane, 1);
            let tried = self.0.entry(key).or_insert_with(|| start(context, lane, folder).err());
            tried.clone()
        })
    }
}

/// Starts a server and stops it again.
fn start(context: &StudyContext<'_>, lane: &Lane, folder: &Path) -> Result<(), String> {
    let said = |stop: Stop| stop.to_string();
    let mut targets = Targets::new(
        TargetLife::Fresh,
        context.ground.catalogue,
        1,
        folder.to_owned(),
        &context.program,
    );
    let started = CoreSet::allowed().map_err(|error| error.to_string()).and_then(|cores| {
        let lease = targets.lease(lane, &Stage::default(), &cores, "tried").map_err(said)?;
        targets.give_back(lease, None);
        Ok(())
    });
    if started.is_ok() {
        let _ = std::fs::remove_dir_all(folder);
    }
    started
}
