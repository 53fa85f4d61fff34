#!/bin/sh
# A real API server of Kubernetes, with its controllers for Jobs, reads what `weigh fleet print kubernetes`
# prints: checked by the server, created, made into pods, read back, and deleted. Pods are not run: there is
# no node.
#   tests/fleet/kubernetes.sh WEIGH PROGRAMS
# WEIGH is the program, PROGRAMS a folder with kube-apiserver, kube-controller-manager and kubectl.
set -eu
PATH=$PATH:/usr/sbin:/sbin
weigh=$1
programs=$2
place=$(mktemp -d)
running=
ended() {
    code=$?
    for pid in $running; do kill "$pid" 2>/dev/null || :; done
    for pid in $running; do wait "$pid" 2>/dev/null || :; done
    [ $code -eq 0 ] || tail -n 5 "$place"/*.log >&2
    rm -rf "$place"
    exit $code
}
trap ended EXIT
trap 'exit 1' INT TERM

fail() {
    echo "kubernetes.sh: $*" >&2
    exit 1
}
# Three free ports. Another process could take one before it is used; then the server says so.
ports=$(python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*[one.getsockname()[1] for one in held])')
set -- $ports
clients=http://127.0.0.1:$1 peers=http://127.0.0.1:$2 secure=$3

etcd --name test --data-dir "$place/etcd" --listen-client-urls "$clients" --advertise-client-urls "$clients" \
    --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "test=$peers" \
    >"$place/etcd.log" 2>&1 &
running="$running $!"

token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s,test,test,system:masters\n' "$token" >"$place/tokens"
openssl genrsa -out "$place/accounts.key" 2048 2>"$place/openssl.log"
"$programs/kube-apiserver" --etcd-servers "$clients" --bind-address 127.0.0.1 --advertise-address 127.0.0.1 \
    --secure-port "$secure" --cert-dir "$place/certificates" --token-auth-file "$place/tokens" \
    --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 \
    --service-account-issuer https://kubernetes.default --service-account-key-file "$place/accounts.key" \
    --service-account-signing-key-file "$place/accounts.key" >"$place/apiserver.log" 2>&1 &
running="$running $!"

export KUBECONFIG="$place/config"
cat >"$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:$secure", insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: "$token"}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
END
k() { "$programs/kubectl" --cache-dir "$place/cache" "$@"; }
# Waits at most two minutes for a command to succeed.
until_true() {
    n=0
    until "$@" >"$place/last.log" 2>&1; do
        n=$((n + 1))
        [ $n -lt 240 ] || fail "gave up: $*"
        sleep 0.5
    done
}
until_true k get --raw /readyz

"$programs/kube-controller-manager" --kubeconfig "$KUBECONFIG" --leader-elect=false --secure-port 0 \
    --controllers job-controller,serviceaccount-controller,namespace-controller,garbage-collector-controller \
    --service-account-private-key-file "$place/accounts.key" >"$place/controllers.log" 2>&1 &
running="$running $!"
until_true k get serviceaccount default

# One manifest with every field that the program can print.
k create secret generic weigh-bus --from-literal=token=0123 --from-literal=ca.pem=none >/dev/null
"$weigh" fleet print kubernetes --agents 3 --cores 2 --bus tls://bus.load:4222 --bus-ca weigh-bus/ca.pem \
    --token-file weigh-bus/token --may-load broker:1883 --image registry.example/weigh:0.1 --host-network \
    --fleet-name test >"$place/agents.yaml"
# Unknown fields and wrong types are errors of the server, not of the client.
k apply --server-side --validate=strict --dry-run=server -f "$place/agents.yaml"
[ -z "$(k get jobs -o name)" ] || fail "a dry run made a job"
k apply --server-side --validate=strict -f "$place/agents.yaml"
job=$(k get jobs -o name)
read_back() { k get "$job" -o "jsonpath=$1"; }
[ "$(read_back '{.spec.completionMode} {.spec.completions} {.spec.parallelism} {.spec.backoffLimit}')" = "Indexed 3 3 0" ] ||
    fail "the job is another one: $(read_back '{.spec}')"
[ "$(read_back '{.spec.podFailurePolicy.rules[*].action}')" = "FailJob FailJob" ] || fail "no policy for failures"

# The controller makes a pod for each rank, and a change of nothing changes nothing.
names() { k get pods -o 'jsonpath={range .items[*]}{.metadata.labels.batch\.kubernetes\.io/job-completion-index} {.spec.restartPolicy} {.spec.topologySpreadConstraints[0].minDomains} {.spec.containers[0].resources.limits.cpu}{"\n"}{end}' | sort; }
three_pods() { [ "$(names)" = "$(printf '0 Never 3 2\n1 Never 3 2\n2 Never 3 2')" ]; }
until_true three_pods
ranks=$(k get pods -o 'jsonpath={.items[*].spec.containers[0].env[?(@.name=="JOB_COMPLETION_INDEX")].name}')
[ "$ranks" = "JOB_COMPLETION_INDEX JOB_COMPLETION_INDEX JOB_COMPLETION_INDEX" ] || fail "agents would not know their ranks: $ranks"
[ "$(k apply --server-side -f "$place/agents.yaml")" = "${job#*/} serverside-applied" ] ||
    [ "$(read_back '{.metadata.generation}')" = 1 ] || fail "applying it again changed it"

# A pod that fails ends the job: no agent is started again.
pod=$(k get pods -l batch.kubernetes.io/job-completion-index=1 -o name)
k patch "$pod" --subresource status --type merge -p '{"status":{"phase":"Failed","containerStatuses":[{"name":"agent","image":"i","imageID":"i","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":5,"reason":"Error","finishedAt":"2026-01-01T00:00:00Z"}}}]}}' >/dev/null
has_failed() { [ "$(read_back '{.status.conditions[?(@.type=="Failed")].reason}')" = PodFailurePolicy ]; }
until_true has_failed

k delete -f "$place/agents.yaml" --wait >/dev/null
no_pods() { [ -z "$(k get pods,jobs -o name)" ]; }
until_true no_pods
k version | sed -n 's/^Server Version: /kubernetes: the manifest is accepted, makes three pods, and fails with one of them; server /p'
