//! Names of earlier versions for warnings, until every crate uses the new ones.

pub use crate::binding::{GENERATOR_FULL_PERCENT, TARGET_FULL_PERCENT};
pub use crate::severity::Severity;
pub use crate::warnings::{Warning as Doubt, WarningRecord as DoubtRecord};
