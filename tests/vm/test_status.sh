#!/bin/bash
# test_status.sh [run.sh options] - the harness itself: exit status, quoting, time limit,
# a dead kernel, shared folders, the host's file system, modules.
set -Eeuo pipefail
cd "$(dirname "$0")"

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guest is x86-64, this host is not'; exit 77; }
./fetch-kernel.sh linux-image-amd64 >/dev/null
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fails=0
expect() {                              # expect STATUS OUTPUT ARG...
    local want=$1 out=$2 rc=0 got
    shift 2
    got=$(./run.sh "$@" 2>"$tmp/err") || rc=$?
    if [ "$rc" = "$want" ] && [ "$got" = "$out" ]; then return; fi
    echo "test_status: got $rc '$got' (want $want '$out') from: $*"
    cat "$tmp/err"
    fails=$((fails + 1))
}

expect 0 "a  b'c \$x" "$@" -- echo "a  b'c \$x"
expect 200 '' "$@" -- sh -c 'exit 200'
expect 127 'sh: 1: nosuch: not found' "$@" -- sh -c nosuch
expect 124 '' "$@" -t 8 -- sleep 60
expect 125 '' "$@" -- sh -c 'echo c >/proc/sysrq-trigger; sleep 9'
expect 125 '' "$@" -k linux-image-no-such -- true

# shellcheck disable=SC2016 # for the shell in the guest
facts='id -un; grep -c "^unix_diag " /proc/modules; stat -fc %T /sys/fs/cgroup
       touch /usr/made 2>/dev/null || echo read-only; echo hi >"$1/made"'
echo in >"$tmp/there"
mkdir "$tmp/ro"
expect 0 $'root\n1\ncgroup2fs\nread-only' "$@" -H -s "$tmp" -M unix_diag -- \
    sh -c "$facts" sh "$tmp"
expect 0 in "$@" -H -r "$tmp" -- sh -c "cat $tmp/there; touch $tmp/ro/made 2>/dev/null; true"
[ "$(cat "$tmp/made")" = hi ] || { echo 'test_status: nothing shared'; fails=$((fails + 1)); }
[ ! -e "$tmp/ro/made" ] || { echo 'test_status: -r is writable'; fails=$((fails + 1)); }
[ "$fails" = 0 ]
