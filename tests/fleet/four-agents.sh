#!/bin/sh
# Four agents, each in a network and a time namespace of its own, measure Mosquitto and the reference
# broker in one run. Needs no root; everything ends with the script.
#   tests/fleet/four-agents.sh [--slurm] WEIGH [OPTIONS OF weigh compare]
# With --slurm, four nodes of Slurm are in these namespaces, and a job that `weigh fleet print slurm`
# prints starts the agents. That needs root: a user namespace of one user cannot start jobs.
# The run is in ./runs. With no options: four pairs at QoS 1, 400 messages/s, 5 s, three repetitions.
set -eu
PATH=$PATH:/usr/sbin:/sbin

apart=-Urnpf
[ "${1:-}" != --slurm ] || apart=-npf
if [ "${WEIGH_INSIDE:-}" = "" ]; then
    # One PID namespace around everything: its first process ends all others.
    export WEIGH_INSIDE=yes
    exec unshare $apart --mount-proc --kill-child sh "$0" "$@"
fi

launcher=
[ "$1" != --slurm ] || { launcher=slurm; shift; }
weigh=$(command -v "$1")
weigh=$(realpath "$weigh")
shift
[ $# -gt 0 ] || set -- --pattern deliver --qos 1 -c 16 -R 400/s -d 5s --reps 3
bus=nats://10.77.0.1:4222
place=$(mktemp -d)
# What still runs would write into the folder while it is removed.
trap 'kill -s KILL -- -1 2>/dev/null || true; rm -rf "$place"' EXIT
trap 'exit 1' INT TERM

ip link set lo up
ip link add hub type bridge
ip addr add 10.77.0.1/24 dev hub
ip link set hub up

becomes_true() {
    n=0
    until "$@"; do
        n=$((n + 1))
        [ $n -lt 600 ] || { echo "in vain: $*" >&2; exit 1; }
        sleep 0.05
    done
}
# Listening sockets, by the port in hexadecimal digits (proc_net_tcp(5)).
answers() { grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp; }

nats-server -js -a 10.77.0.1 -p 4222 -sd "$place/nats" >"$place/nats.log" 2>&1 &
printf 'listener 1883 10.77.0.1\nallow_anonymous true\nuser root\n' >"$place/mosquitto.conf"
mosquitto -c "$place/mosquitto.conf" >"$place/mosquitto.log" 2>&1 &
"$weigh" serve mqtt --listen 10.77.0.1:1884 >"$place/reference.log" 2>&1 &
becomes_true answers 4222
becomes_true answers 1883
becomes_true answers 1884

# Slurm with a node for each agent; all of them are this host.
controller() {
    export SLURM_CONF=$place/slurm.conf
    host=$(cut -d . -f 1 /proc/sys/kernel/hostname)
    mkdir "$place/state"
    chmod 755 "$place"
    cat >"$SLURM_CONF" <<CONF
ClusterName=weigh
SlurmctldHost=$host(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$place/munge.socket
CredType=cred/munge
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/%n
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd-%n.pid
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
CONF
    for node in 0 1 2 3; do
        mkdir "$place/c$node"
        echo "NodeName=c$node NodeHostname=$host NodeAddr=10.77.0.$((node + 10)) CPUs=2" >>"$SLURM_CONF"
    done
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP" >>"$SLURM_CONF"
    printf %064d 21 >"$place/munge.key"
    chmod 400 "$place/munge.key"
    munged --foreground --force --key-file="$place/munge.key" --socket="$place/munge.socket" \
        --pid-file="$place/munged.pid" --seed-file="$place/munge.seed" \
        --log-file="$place/munged.log" >"$place/munged.out" 2>&1 &
    becomes_true test -S "$place/munge.socket"
    slurmctld -D >"$place/slurmctld.log" 2>&1 &
    becomes_true answers 6817
}
[ "$launcher" != slurm ] || controller

# What runs in the namespaces of rank $1.
in_place() {
    if [ "$launcher" = slurm ]; then
        echo "exec slurmd -D -N c$1"
    else
        echo "exec '$weigh' agent --bus $bus --rank $1 --may-load 10.77.0.1:1883 10.77.0.1:1884"
    fi
}

# Clocks that are hours apart: no stamp of one host means anything on another.
rank=0
for seconds in 10 300 2000 50000; do
    unshare -n -T --monotonic=$seconds --fork sh -c '
        until ip link show load >/dev/null 2>&1; do sleep 0.02; done
        ip link set lo up && ip addr add 10.77.0.'$((rank + 10))'/24 dev load && ip link set load up
        '"$(in_place "$rank")" >"$place/agent-$rank.log" 2>&1 &
    ip link add "port$rank" type veth peer name "peer$rank"
    ip link set "port$rank" master hub up
    # The process enters its namespace a moment after it was started.
    until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    ip link set "peer$rank" netns $!
    nsenter -t $! -n ip link set "peer$rank" name load
    rank=$((rank + 1))
done

nodes_are_idle() { [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" = 4 ]; }
no_job_is_left() { jobs=$(squeue -h 2>/dev/null) && [ -z "$jobs" ]; }
if [ "$launcher" = slurm ]; then
    becomes_true nodes_are_idle
    "$weigh" fleet print slurm --agents 4 --cores 2 --bus $bus --binary "$weigh" \
        --may-load 10.77.0.1:1883 --may-load 10.77.0.1:1884 >"$place/agents.sbatch"
    (cd "$place" && sbatch agents.sbatch) >&2
fi

"$weigh" compare mqtt://10.77.0.1:1883 mqtt://10.77.0.1:1884 --fleet $bus \
    --agents 4 --i-may-load-this --warmup 500ms "$@" || {
    code=$?
    tail -n 30 "$place"/*.log >&2
    exit $code
}
# The agents end after the run, and so does their job.
[ "$launcher" != slurm ] || becomes_true no_job_is_left
