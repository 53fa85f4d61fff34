#!/usr/bin/env bash
# The shell part of action.yml: installs a released binary after checking its SHA-256, then runs one
# command of weigh and exits with its code.
#
# Reads WEIGH_COMMAND, WEIGH_FAIL_IF (a condition a line), WEIGH_RUNS, WEIGH_VERSION (empty: the
# version of the action) and WEIGH_RELEASES (empty: the releases of the action's repository).
set -euo pipefail

fail() {
    printf '::error::%s\n' "$*" >&2
    exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command=${WEIGH_COMMAND:-}
runs=${WEIGH_RUNS:-runs}
version=${WEIGH_VERSION:-}
[ -n "$version" ] || version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)
[ -n "$command" ] || fail "no command was given: set the input command, such as compare http -n 1000"
[ -n "$version" ] || fail "no version is known: set the input version, such as 0.1.0"
case $(uname -m) in
    x86_64) machine=x86_64 ;;
    aarch64) machine=aarch64 ;;
    armv7l) machine=armv7 ;;
    *) fail "there is no release for $(uname -m): build weigh with cargo install" ;;
esac

releases=${WEIGH_RELEASES:-${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_ACTION_REPOSITORY:-}/releases/download}
name=weigh-$version-$machine-linux
place=${RUNNER_TEMP:-$(mktemp -d)}/weigh-$version
mkdir -p "$place"
for file in "$name.tar.gz" "$name.tar.gz.sha256"; do
    curl --fail --silent --show-error --location --retry 3 --output "$place/$file" \
        "$releases/v$version/$file" || fail "$releases/v$version/$file cannot be downloaded"
done
(cd "$place" && sha256sum --check --quiet "$name.tar.gz.sha256") ||
    fail "$name.tar.gz does not have the SHA-256 of its release"
tar --extract --gzip --file "$place/$name.tar.gz" --directory "$place" --strip-components 1
"$place/weigh" --version
[ -z "${GITHUB_PATH:-}" ] || printf '%s\n' "$place" >>"$GITHUB_PATH"

# The command is read as a shell reads words, without running anything in it: quotes count,
# substitutions do not.
mapfile -t words < <(printf '%s' "$command" | xargs printf '%s\n')
while IFS= read -r condition; do
    [ -z "${condition// /}" ] || words+=(--fail-if "$condition")
done <<<"${WEIGH_FAIL_IF:-}"

status=0
"$place/weigh" "${words[@]}" --runs "$runs" --github || status=$?
newest=$(find "$runs" -mindepth 1 -maxdepth 1 -type d -name '[0-9]*' 2>/dev/null | sort | tail -n 1)
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'run=%s\n' "$newest" >>"$GITHUB_OUTPUT"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -n "$newest" ]; then
    "$place/weigh" report "$newest" --markdown >>"$GITHUB_STEP_SUMMARY" || true
fi
exit "$status"
