//! Replaces fleets in a build without them: asking for one is an error.

use std::sync::Arc;

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::Failure;
use weigh_model::fleet::FleetPlaced;

use crate::case::Case;
use crate::exit::Stop;
use crate::fleet::request::FleetRequest;
use crate::fleet::work::{Generated, Work};
use crate::watcher::Watcher;

/// False: this build has no fleets.
pub const IS_BUILT: bool = false;

/// Agents, which this build does not have.
pub enum Hosts {}

impl Hosts {
    /// Returns the error of a build without fleets.
    ///
    /// # Errors
    /// Always.
    pub fn gather(
        _request: &FleetRequest,
        _version: String,
        _watcher: &dyn Watcher,
    ) -> Result<Hosts, Stop> {
        Err(Stop::unbuilt("fleet (--fleet)"))
    }

    /// Never called: there are no agents.
    pub fn retries(&self) -> u32 {
        match *self {}
    }

    /// Never called: there are no agents.
    pub fn lost_bus(&self) -> Option<Stop> {
        match *self {}
    }

    /// Never called: there are no agents.
    pub fn count(&self) -> u32 {
        match *self {}
    }

    /// Never called: there are no agents.
    pub fn carried(&self) -> u32 {
        match *self {}
    }

    /// Never called: there are no agents.
    pub fn are_on_this_machine(&self) -> bool {
        match *self {}
    }

    /// Never called: there are no agents.
    pub fn elsewhere(&self) -> Vec<String> {
        match *self {}
    }

    /// Never called: there are no agents.
    ///
    /// # Errors
    /// Never.
    pub fn check_private(&self, _cases: &[Case]) -> Result<(), Stop> {
        match *self {}
    }

    /// Never called: there are no agents.
    ///
    /// # Errors
    /// Never.
    pub fn placed(&self, _shards: u32) -> Result<FleetPlaced, Stop> {
        match *self {}
    }

    /// Never called: there are no agents.
    ///
    /// # Errors
    /// Never.
    pub fn generate(
        &self,
        _work: &Work<'_>,
        _observer: &Arc<dyn TrialObserver>,
    ) -> Result<Generated, Failure> {
        match *self {}
    }

    /// Never called: there are no agents.
    ///
    /// # Errors
    /// Never.
    pub fn take_over(&self, _run: &str, _trial: &str, _at: (u32, u32)) -> Result<(), String> {
        match *self {}
    }

    /// Never called: there are no agents.
    pub fn discard(&self, _run: &str, _kept: Option<(&str, u32)>) {
        match *self {}
    }

    /// Never called: there are no agents.
    ///
    /// # Errors
    /// Never.
    pub fn taken_over(&self, _work: &Work<'_>) -> Result<Generated, Failure> {
        match *self {}
    }
}
