//! Prints what starts the agents of a fleet on other hosts: a Kubernetes manifest, a batch script
//! for Slurm, a shell script with ssh, a compose file. Weighbridge places no processes itself.
//!
//! Every text that a user gave is quoted for the format that it is put into, and every launcher has
//! the same rules: one agent for each rank, all start or none, and none is started again. An agent
//! that ended is a part of the load that is missing, so the other agents are ended with it.

mod bus_files;
mod check;
mod compose;
mod kubernetes;
mod options;
mod shell;
mod slurm;
mod ssh;
mod yaml;

use weigh_model::protocol::Invalid;

pub use options::{Credentials, CredentialsKind, LaunchOptions};

/// What starts the agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// An Indexed Job, for `kubectl apply`.
    Kubernetes,
    /// A batch script, for `sbatch`.
    Slurm,
    /// A shell script that starts the agents by ssh, and ends them when it ends.
    Ssh,
    /// A compose file: all agents on one host, each in a container with cores of its own.
    Compose,
}

impl LaunchOptions {
    /// Prints a launcher of the agents.
    ///
    /// # Errors
    /// An option that is wrong or that this launcher needs: its flag of `weigh fleet print`, the
    /// problem, and what to type instead.
    pub fn print(&self, launcher: Launcher) -> Result<String, Invalid> {
        check::all(self)?;
        match launcher {
            Launcher::Kubernetes => kubernetes::print(self),
            Launcher::Slurm => slurm::print(self),
            Launcher::Ssh => ssh::print(self),
            Launcher::Compose => compose::print(self),
        }
    }
}

#[cfg(test)]
mod tests;
