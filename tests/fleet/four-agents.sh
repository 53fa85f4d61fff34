#!/bin/sh
# Four agents, each in a network and a time namespace of its own, measure Mosquitto and the reference
# broker in one run. Needs no root; everything ends with the script.
#   tests/fleet/four-agents.sh WEIGH [OPTIONS OF weigh compare]
# The run is in ./runs. With no options: four pairs at QoS 1, 400 messages/s, 5 s, three repetitions.
set -eu
PATH=$PATH:/usr/sbin:/sbin

if [ "${WEIGH_INSIDE:-}" = "" ]; then
    # One PID namespace around everything: its first process ends all others.
    export WEIGH_INSIDE=yes
    exec unshare -Urnpf --mount-proc --kill-child sh "$0" "$@"
fi

weigh=$1
shift
[ $# -gt 0 ] || set -- --pattern deliver --qos 1 -c 16 -R 400/s -d 5s --reps 3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT INT TERM

ip link set lo up
ip link add hub type bridge
ip addr add 10.77.0.1/24 dev hub
ip link set hub up

answers() {
    n=0
    until nc_port "$1"; do
        n=$((n + 1))
        [ $n -lt 200 ] || { echo "port $1 does not answer" >&2; exit 1; }
        sleep 0.05
    done
}
# Listening sockets, by the port in hexadecimal digits (proc_net_tcp(5)).
nc_port() { grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp; }

nats-server -js -a 10.77.0.1 -p 4222 -sd "$place/nats" >"$place/nats.log" 2>&1 &
printf 'listener 1883 10.77.0.1\nallow_anonymous true\nuser root\n' >"$place/mosquitto.conf"
mosquitto -c "$place/mosquitto.conf" >"$place/mosquitto.log" 2>&1 &
"$weigh" serve mqtt --listen 10.77.0.1:1884 >"$place/reference.log" 2>&1 &
answers 4222
answers 1883
answers 1884

# Clocks that are hours apart: no stamp of one host means anything on another.
rank=0
for seconds in 10 300 2000 50000; do
    unshare -n -T --monotonic=$seconds --fork sh -c '
        until ip link show load >/dev/null 2>&1; do sleep 0.02; done
        ip link set lo up && ip addr add 10.77.0.'$((rank + 10))'/24 dev load && ip link set load up
        exec "$0" agent --bus nats://10.77.0.1:4222 --rank '$rank' \
            --may-load 10.77.0.1:1883 10.77.0.1:1884' "$weigh" >"$place/agent-$rank.log" 2>&1 &
    ip link add "port$rank" type veth peer name "peer$rank"
    ip link set "port$rank" master hub up
    # The process enters its namespace a moment after it was started.
    until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    ip link set "peer$rank" netns $!
    nsenter -t $! -n ip link set "peer$rank" name load
    rank=$((rank + 1))
done

"$weigh" compare mqtt://10.77.0.1:1883 mqtt://10.77.0.1:1884 --fleet nats://10.77.0.1:4222 \
    --agents 4 --i-may-load-this --warmup 500ms "$@" || {
    code=$?
    cat "$place"/agent-*.log >&2
    exit $code
}
