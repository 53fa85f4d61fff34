//! Real Slurm, two nodes on this host: what `weigh fleet print slurm` prints starts one agent on
//! each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use weigh_testbed::listening::free_port;

use crate::launching::program;
use crate::rig::{Place, cells, has, signal, until};
use crate::serving::Server;

/// Slurm with two nodes on this host; dropping it ends its daemons.
struct Slurm {
    daemons: Vec<Child>,
    configuration: PathBuf,
}

impl Slurm {
    fn start(place: &Place) -> Slurm {
        let folder = place.folder().display().to_string();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let user = Command::new("id").arg("-un").output().expect("id").stdout;
        let mut text = CONFIGURATION
            .replace("{folder}", &folder)
            .replace("{host}", host.trim().split('.').next().unwrap_or_default())
            .replace("{user}", String::from_utf8_lossy(&user).trim());
        for name in ["{port_0}", "{port_1}", "{port_2}"] {
            let port = free_port([127, 0, 0, 1].into()).expect("a port");
            text = text.replace(name, &port.to_string());
        }
        for name in ["state", "c1", "c2"] {
            fs::create_dir(place.folder().join(name)).expect("a folder");
        }
        place.write("slurm.conf", &text);
        let key: String = (0..64).map(|byte| char::from(b'0' + byte % 10)).collect();
        place.write("munge.key", &key);
        for (name, mode) in [("munge.key", 0o400), (".", 0o755)] {
            let path = place.folder().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
        }
        let configuration = place.folder().join("slurm.conf");
        let mut slurm = Slurm { daemons: Vec::new(), configuration };
        let in_folder = |name: &str, file: &str| format!("--{name}={folder}/{file}");
        let files = [
            ("key-file", "munge.key"),
            ("socket", "munge.socket"),
            ("pid-file", "munged.pid"),
            ("seed-file", "munge.seed"),
            ("log-file", "munged.log"),
        ];
        let mut munged = vec!["--foreground".to_owned(), "--force".to_owned()];
        munged.extend(files.iter().map(|(name, file)| in_folder(name, file)));
        slurm.daemon("munged", &munged, place);
        let socket = place.folder().join("munge.socket");
        until("munged listens", || socket.exists());
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        slurm.daemon("slurmctld", &words("-D"), place);
        slurm.daemon("slurmd", &words("-D -N c1"), place);
        slurm.daemon("slurmd", &words("-D -N c2"), place);
        until("both nodes are idle", || {
            let states = slurm.command("sinfo", &["-h", "-N", "-o", "%T"]).output();
            states.is_ok_and(|said| said.stdout == b"idle\nidle\n")
        });
        slurm
    }

    fn daemon(&mut self, name: &str, arguments: &[String], place: &Place) {
        let log =
            fs::File::options().create(true).append(true).open(place.folder().join("daemons"));
        let log = log.expect("a log");
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = self.command(&format!("/usr/sbin/{name}"), &words);
        command.stdout(log.try_clone().expect("a copy")).stderr(log);
        self.daemons.push(command.spawn().expect(name));
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(arguments).env("SLURM_CONF", &self.configuration).stdin(Stdio::null());
        command
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // munged last: the others authenticate by it.
        for daemon in self.daemons.iter_mut().rev() {
            signal("TERM", daemon.id());
            let _ = daemon.wait();
        }
    }
}

/// A cluster of two nodes with two cores each, all of them this host.
const CONFIGURATION: &str = "\
ClusterName=weigh
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port_0}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=c1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port_1} CPUs=2
NodeName=c2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port_2} CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
";

/// The printed script runs on both nodes, an agent that fails ends the other, and a
/// deadline is accepted.
#[test]
fn slurm_starts_one_agent_on_each_node() {
    if !cfg!(feature = "fleet") || !is_installed() {
        return;
    }
    let place = Place::new("fleet-slurm");
    let slurm = Slurm::start(&place);
    let submitted = |name: &str, agent: &str| {
        let agent = program(&place, name, agent);
        let binary = agent.to_str().unwrap();
        let words = ["fleet", "print", "slurm", "--bus", "nats://bus:4222", "--agents", "2"];
        let more = ["--may-load", "broker:1883", "--cores", "2", "--binary", binary];
        let script =
            place.weigh(&[&words[..], &more[..], &["--fleet-name", name]].concat()).with(0);
        place.write("job", &script.stdout);
        let mut command = slurm.command("sbatch", &["--wait", "--parsable", "job"]);
        let ended = command.current_dir(place.folder()).output().expect("sbatch");
        let job = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
        let log = place.folder().join(format!("weigh-fleet-{name}-{job}.log"));
        let log = fs::read_to_string(log).unwrap_or_default();
        (ended.status.code(), log, String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let (code, log, errors) =
        submitted("says", "#!/bin/sh\necho \"rank $SLURM_PROCID on $SLURMD_NODENAME: $*\"\n");
    assert_eq!(code, Some(0), "{log}{errors}");
    for (rank, node) in [(0, "c1"), (1, "c2")] {
        let words = "agent --bus nats://bus:4222 --fleet-name says --may-load broker:1883 --once";
        let line = format!("{rank}: rank {rank} on {node}: {words}\n");
        assert!(log.contains(&line), "{line}{log}");
    }
    let one_fails = "#!/bin/sh\n[ \"$SLURM_PROCID\" = 0 ] || exit 7\nexec sleep 600\n";
    let (code, log, errors) = submitted("fails", one_fails);
    // The highest code of all tasks: that of the one that failed, or of SIGTERM.
    assert!([Some(7), Some(143)].contains(&code), "{code:?} {log}{errors}");
    assert!(log.contains("task 1: Exited with exit code 7"), "{log}");
    drop(slurm);
}

/// Agents that Slurm starts meet on the bus, and make one result; then the job is over.
#[test]
fn agents_of_a_job_make_one_result() {
    if !cfg!(feature = "fleet") || !is_installed() || !has("nats-server") {
        return;
    }
    let place = Place::new("fleet-slurm-run");
    let slurm = Slurm::start(&place);
    let bus = Server::begin(&place, &["fleet", "up", "--listen", "127.0.0.1:0"]);
    let target = Server::start(&place, &["tcp"]);
    let words = ["fleet", "print", "slurm", "--bus", &bus.url, "--agents", "2"];
    let more = ["--may-load", "127.0.0.1:*", "--binary", env!("CARGO_BIN_EXE_weigh")];
    let script = place.weigh(&[&words[..], &more[..]].concat()).with(0).stdout;
    place.write("job", &script);
    let mut command = slurm.command("sbatch", &["job"]);
    let submitted = command.current_dir(place.folder()).output().expect("sbatch");
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let load = ["compare", &target.url, "-c", "4", "-n", "400", "-R", "400/s", "--reps", "1"];
    let fleet = ["--fleet", &bus.url, "--agents", "2", "--warmup", "0s"];
    place.weigh(&[&load[..], &fleet[..]].concat()).with(0);
    let summary = place.summary();
    let hosts = summary["run"]["hosts"].as_array().expect("hosts");
    assert_eq!(hosts.iter().map(|host| &host["rank"]).collect::<Vec<_>>(), [0, 1]);
    let ledger = &cells(&summary)[0]["ledger"];
    assert_eq!((&ledger["scheduled"], &ledger["delivered"]), (&400.into(), &400.into()));
    until("the job is over", || {
        let jobs = slurm.command("squeue", &["-h"]).output();
        jobs.is_ok_and(|said| said.status.success() && said.stdout.is_empty())
    });
    let log = fs::read_to_string(place.folder().join("weigh-fleet-1.log")).expect("the log");
    assert!(!log.contains("error:"), "{log}");
    assert_eq!((bus.end("TERM").0, target.end("TERM").0), (Some(0), Some(0)));
    drop(slurm);
    place.nobody_is_left();
}

/// Each node has a network and a clock of its own. A user namespace of one user cannot start jobs,
/// so there is none around it: without root this is skipped.
#[cfg(feature = "fleet")]
#[test]
fn four_agents_of_a_job_with_networks_and_clocks_of_their_own_give_one_exact_result() {
    let more = ["nats-server", "mosquitto", "ip", "nsenter"];
    if is_installed() && more.map(has).iter().all(|own| *own) {
        crate::fleet::four_agents_apart("fleet-four-slurm", "--slurm", "-npf");
    }
}

fn is_installed() -> bool {
    ["munged", "slurmctld", "slurmd", "sbatch", "srun"].map(has).iter().all(|own| *own)
}
