//! A shell script that starts agents by ssh, waits for them, and ends them when it ends.

use weigh_model::protocol::Invalid;

use super::check::plain;
use super::options::LaunchOptions;
use super::shell;

/// Prints the script.
pub(super) fn print(options: &LaunchOptions) -> Result<String, Invalid> {
    let LaunchOptions { agents, hosts, .. } = options;
    check_hosts(options)?;
    let mut starts = String::new();
    for (rank, host) in (0..*agents).zip(hosts.iter().cycle()) {
        let mut words = options.agent_words_on_host();
        words.extend(["--rank".to_owned(), rank.to_string()]);
        // One line for the shell there, and a word of a line for the shell here.
        let agent = shell::line(words.iter().map(String::as_str))?;
        starts += &format!("start {}\n", shell::line([host.as_str(), &agent])?);
    }
    Ok(format!("{HEAD}{starts}{WAIT}"))
}

fn check_hosts(options: &LaunchOptions) -> Result<(), Invalid> {
    let fix = "type --host [USER@]HOST for each host";
    if options.hosts.is_empty() {
        return Err(Invalid::new("--host", "it is missing", fix));
    }
    for host in &options.hosts {
        plain("--host", host, fix)?;
        let fits = |c: char| c.is_alphanumeric() || "-._@:[]%/".contains(c);
        if !host.chars().all(fits) {
            return Err(Invalid::new("--host", format!("{host:?} is not a host of ssh"), fix));
        }
    }
    if options.hosts.len() > options.agents as usize {
        let problem = format!("{} are fewer than the hosts", options.agents);
        let fix = format!("type --agents {}, or leave a host out", options.hosts.len());
        return Err(Invalid::new("--agents", problem, fix));
    }
    Ok(())
}

/// Start of the script. Descriptor 8 is the only writing end of a pipe that every ssh reads: it is
/// closed when the script ends, also by SIGKILL. The standard input of the shell on the host ends
/// then, or when its connection does, and it ends the agent.
const HEAD: &str = r#"#!/usr/bin/env bash
# Start: bash FILE. Stop: Ctrl-C, or kill the script: it ends the agents on all hosts.
set -u
folder=$(mktemp -d) || exit
mkfifo "$folder/open" || exit
exec 9<>"$folder/open" 8>"$folder/open" 7<"$folder/open" 9<&-
rm -r "$folder"
agents=()

# Runs on a host: the agent, until its end or that of standard input.
there='
agent=
trap "kill \$agent 2>/dev/null" TERM
exec 3<&0
"$@" </dev/null 3<&- &
agent=$!
{ while read -r _; do :; done; kill "$agent"; } <&3 3<&- >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$agent"
status=$?
# A signal ends only the wait.
while kill -0 "$agent" 2>/dev/null; do wait "$agent"; status=$?; done
kill "$watcher" 2>/dev/null
exit "$status"'

start() {
    ssh -o BatchMode=yes -o ServerAliveInterval=5 -- "$1" "exec sh -c '$there' sh $2" \
        <&7 7<&- 8>&- &
    agents+=("$!")
}

end() {
    trap '' INT TERM HUP
    exec 8>&-
    kill "${agents[@]}" 2>/dev/null
    wait
    exit "$1"
}

trap 'end 130' INT
trap 'end 143' TERM HUP

"#;

/// End of the script.
const WAIT: &str = r#"
# If an agent fails, the others are ended.
for _ in "${agents[@]}"; do
    wait -n
    status=$?
    [ "$status" -eq 0 ] || end "$status"
done
"#;
