//! Optional parts of a build, and which of them a plan needs.

use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_report::exports::HAS_MESSAGES;

use crate::case::Case;
use crate::case::lanes::Against;
use crate::case::pipeline::{IS_BUILT, check_built, is_pipeline};
use crate::exit::FULL_BUILD;

/// Optional parts that a plan can need.
///
/// # Examples
///
/// ```
/// use weigh_runner::case::build::Build;
///
/// let small = Build { has_pipeline: false, ..Build::FULL };
/// let wrong = small.check_target("pipeline").unwrap_err();
/// assert!(wrong.fix.contains("--features full"));
/// assert!(small.check_target("mosquitto").is_ok());
/// assert!(Build::FULL.check_target("pipeline").is_ok());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// True with the services of the storage pipeline.
    pub has_pipeline: bool,
    /// True if single messages can be recorded.
    pub has_messages: bool,
}

impl Build {
    /// This build.
    pub const OWN: Build = Build { has_pipeline: IS_BUILT, has_messages: HAS_MESSAGES };

    /// A build with all parts, to read plans that need not run here.
    pub const FULL: Build = Build { has_pipeline: true, has_messages: true };

    /// Checks that the build has what these cases of `plan` need.
    ///
    /// # Errors
    /// The first missing part, and how to get it.
    pub fn check(self, plan: &Plan, cases: &[Case]) -> Result<(), Invalid> {
        if plan.observe.messages && !self.has_messages {
            let problem = "this build of weigh cannot record single messages";
            return Err(Invalid::new("observe.messages", problem, FULL_BUILD));
        }
        cases.iter().try_for_each(|case| self.check_case(case))
    }

    /// Checks that the build has what a case needs.
    ///
    /// # Errors
    /// The missing part, and how to get it.
    pub fn check_case(self, case: &Case) -> Result<(), Invalid> {
        match &case.lane.against {
            Against::Pipeline(_) => check_built(self.has_pipeline),
            _ => Ok(()),
        }
    }

    /// Checks that the build has the target of this name.
    ///
    /// # Errors
    /// The missing part, and how to get it.
    pub fn check_target(self, name: &str) -> Result<(), Invalid> {
        if is_pipeline(name) { check_built(self.has_pipeline) } else { Ok(()) }
    }
}
