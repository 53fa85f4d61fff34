//! From the words of a command line or a plan to cases that can be weighed.

pub mod abilities;
pub mod background;
pub mod cases;
pub mod conduct;
pub mod energy;
pub mod forecast;
pub mod known;
pub mod lane_options;
pub mod lanes;
pub mod limit_goals;
pub mod limit_length;
pub mod limit_load;
pub mod material;
pub mod options;
pub mod overhead;
pub mod patience;
pub mod pipeline;
pub mod plan_file;
pub mod preflight;
pub mod readings;
pub mod request_options;
pub mod searches;
pub mod share;
pub mod studies;
pub mod study_parts;
pub mod tls_options;
