#!/bin/sh
# Runs tools and the commands of weigh that are called like them in turn, against one server, and
# prints the figures of both in columns: what the tool printed, what we say it would have printed,
# and what is exact. A tool that is missing is left out, and said to be.
#
#   benches/facades.sh [ROUNDS]          three rounds if nothing else is said
#
# WEIGH, WRK, AUTOCANNON and STRESSER name other programs than those on PATH.
set -eu

rounds=${1:-3}
weigh=${WEIGH:-target/release/weigh}
wrk=${WRK:-wrk}
autocannon=${AUTOCANNON:-autocannon}
stresser=${STRESSER:-mqtt-stresser}
scratch=$(mktemp -d)
servers=

end() {
    for server in $servers; do kill "$server" 2>/dev/null || true; done
    rm -rf "$scratch"
}
trap end EXIT
trap 'exit 1' INT TERM

# serve PROTOCOL: starts a reference server, and leaves its URL in $url.
serve() {
    "$weigh" serve "$1" >"$scratch/$1" 2>/dev/null &
    servers="$servers $!"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        url=$(sed -n 's/^listening on //p' "$scratch/$1" | head -n 1)
        [ -n "$url" ] && return
        sleep 0.5
    done
    echo "no $1 server: does $weigh serve $1 work here?" >&2
    exit 1
}

# row FIGURE THEIRS: what the tool printed, beside our two columns of the row of this name.
row() {
    ours=$(awk -v name="$1  " 'index($0, name) == 1 { $0 = substr($0, length(name) + 1)
        sub(/^ +/, ""); print; exit }' "$scratch/ours")
    printf '%-34s %14s    %s\n' "$1" "$2" "$ours"
}

# pair TOOL ARGUMENTS...: both in turn, with the same arguments.
pair() {
    command=$1
    name=$2
    shift 2
    printf '\n%s %s\n%-34s %14s    %s\n' "$name" "$*" '' 'it printed' 'emulated, and exact'
    # shellcheck disable=SC2086
    $command "$@" >"$scratch/theirs" 2>&1 || true
    "$weigh" like "$name" "$@" --quiet --runs "$scratch/runs" >"$scratch/ours" 2>&1 || true
}

# field PATTERN NUMBER: a word of the first line of the tool's output that holds the pattern.
field() { grep -m 1 -e "$1" "$scratch/theirs" | tr -d '│' | awk "{ print \$$2 }"; }

of_autocannon() {
    row 'Latency 50%' "$(field Latency 4)"
    row 'Latency 99%' "$(field Latency 8)"
    row 'Latency Avg' "$(field Latency 10)"
    row 'Req/Sec 50%' "$(field Req/Sec 4)"
    row 'Req/Sec Avg' "$(field Req/Sec 6)"
    row 'Req/Sec Stdev' "$(field Req/Sec 7)"
    row 'Req/Sec Min' "$(field Req/Sec 8)"
    row 'requests' "$(field 'requests in' 1) in $(field 'requests in' 4)"
}

of_wrk() {
    row 'Latency Avg' "$(field ' Latency  ' 2)"
    row 'Latency Stdev' "$(field ' Latency  ' 3)"
    row 'Latency +/- Stdev' "$(field ' Latency  ' 5)"
    row 'Latency 50%' "$(field ' 50%' 2)"
    row 'Latency 99%' "$(field ' 99%' 2)"
    row 'Req/Sec Avg' "$(field Req/Sec 2)"
    row 'Req/Sec Stdev' "$(field Req/Sec 3)"
    row 'requests' "$(field 'requests in' 1)"
    row 'Requests/sec' "$(field Requests/sec 2)"
}

of_stresser() {
    row 'Published Messages' "$(field 'Published Messages' 3)"
    row 'Received Messages' "$(field 'Received Messages' 3)"
    for which in 1 2; do
        title=$([ $which = 1 ] && echo Publishing || echo Receiving)
        for what in Fastest Slowest Median; do
            theirs=$(grep -e "^$what" "$scratch/theirs" | sed -n "${which}p" | awk '{ print $2 }')
            below=$(echo "$what" | tr '[:upper:]' '[:lower:]')
            row "$title, $below msg/sec" "$theirs"
        done
    done
}

has() { command -v "${1%% *}" >/dev/null 2>&1 || { echo "SKIPPED: $1 is not here"; return 1; }; }

serve http
http=$url/messages
serve mqtt
broker=$(echo "$url" | sed 's/^mqtt:/tcp:/')
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    printf '\nround %s\n' "$round"
    if has "$autocannon"; then
        pair "$autocannon" autocannon -c 10 -a 300 "$http" && of_autocannon
        pair "$autocannon" autocannon -c 10 -d 3 "$http" && of_autocannon
        pair "$autocannon" autocannon -c 10 -d 3 -R 400 "$http" && of_autocannon
    fi
    if has "$wrk"; then
        pair "$wrk" wrk -t1 -c10 -d3s --latency "$http" && of_wrk
        pair "$wrk" wrk -t2 -c10 -d3s --latency "$http" && of_wrk
    fi
    if has "$stresser"; then
        pair "$stresser" mqtt-stresser -broker "$broker" -num-clients 10 -num-messages 1000
        of_stresser
        pair "$stresser" mqtt-stresser -broker "$broker" -num-clients 1500 -num-messages 7
        of_stresser
    fi
done
