//! Operations on a study: read it, judge it, and list figures that are not in a claim.

use weigh_plan::World;

use crate::occasion::Occasion;
use crate::outcome::Outcome;
use crate::study::{About, Study};
use crate::texts::{StudyProblems, StudyTexts};
use crate::{coverage, judging, reading};

impl Study {
    /// Reads a study and holds its files against each other. `world` says which protocols and
    /// targets there are.
    ///
    /// # Errors
    /// Everything that is wrong with its files, each with its place.
    pub fn read(texts: &StudyTexts, world: &dyn World) -> Result<Study, StudyProblems> {
        reading::read(texts, world)
    }

    /// The answers to its claims and its pictures, as far as there are runs. Several occasions are
    /// judged together; pictures and what was run are those of the longest of them, of several that
    /// are equally long the last.
    ///
    /// # Panics
    /// If there is no occasion: one without runs will do.
    pub fn outcome(&self, about: &About, occasions: &[Occasion]) -> Outcome {
        judging::outcome(self, about, occasions)
    }

    /// The published figures that stand in no claim, no picture and no list of parameters, as
    /// indices of [`Published::cells`].
    pub fn unused_cells(&self) -> Vec<usize> {
        coverage::unused(self)
    }

    /// What was run of it so far, without claims and pictures: these take time to work out, which
    /// a measurement in progress would notice.
    pub fn progress(&self, about: &About, occasion: &Occasion) -> Outcome {
        judging::progress(self, about, occasion)
    }
}
