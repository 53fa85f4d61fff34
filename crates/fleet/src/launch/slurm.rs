//! A batch script for Slurm: one task on each of N nodes, which no other job shares.

use std::time::Duration;

use weigh_model::protocol::Invalid;

use super::options::LaunchOptions;
use super::shell;

/// Prints the script.
pub(super) fn print(options: &LaunchOptions) -> Result<String, Invalid> {
    let LaunchOptions { agents, cores, .. } = options;
    let words = options.agent_words_on_host();
    let agent = shell::line(words.iter().map(String::as_str))?;
    let (name, time) = (options.job_name(), time_limit(options.deadline));
    // Since Slurm 22.05 srun does not take the number of cores over from sbatch.
    Ok(format!(
        "\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={agents}
#SBATCH --ntasks={agents}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={cores}
#SBATCH --exclusive
#SBATCH --no-requeue
#SBATCH --time={time}
#SBATCH --output={name}-%j.log
# Start: sbatch FILE. Stop: scancel --name={name}.
# Agents take their rank from SLURM_PROCID. If one fails, srun ends all of them.
exec srun --ntasks={agents} --ntasks-per-node=1 --cpus-per-task={cores} \\
    --kill-on-bad-exit=1 --label \\
    {agent}
"
    ))
}

/// A time limit as Slurm writes it: days-hours:minutes:seconds.
fn time_limit(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    format!("{days}-{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60)
}
