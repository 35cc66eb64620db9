#!/bin/bash
# Record the ground-truth workload, and compare the flows with what it says that it did.
#   WITTY=PROGRAM TRUTH=PROGRAM test_truth.sh [CASE]...
# Without CASE: all cases in one recording, once more with the connections opened before the
# recording starts, and once more by process id. With CASEs: one recording for each of them.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}
TRUTH=${TRUTH:?set TRUTH to the ground-truth workload}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"

make_tmp

failed=()

# check NAME: compare NAME.wpdb with NAME.json
check() {
	if ! "$WITTY" show "$tmp/$1.wpdb" flows --format json >"$tmp/$1.flows"; then
		echo "FAILED: $1: show flows"
		failed+=("$1")
		return
	fi
	if ! "$here/check_truth.py" "$tmp/$1.json" "$tmp/$1.flows"; then
		failed+=("$1")
	fi
}

# Start the workload, and return when its connections are open.
start_waiting() {
	mkfifo "$tmp/$1.ready"
	"$TRUTH" --wait-start --recording "$tmp/$1.wpdb" --out "$tmp/$1.json" >"$tmp/$1.ready" &
	truth_pid=$!
	pids+=("$truth_pid")
	read -r _ <"$tmp/$1.ready"
}

# whole NAME [CASE]: one recording around the workload
whole() {
	local name=$1
	shift
	echo "== $name"
	if ! "$WITTY" record --max-overhead off -o "$tmp/$name.wpdb" -- "$TRUTH" "$@" --recording "$tmp/$name.wpdb" \
		--out "$tmp/$name.json"; then
		echo "FAILED: $name: record"
		failed+=("$name")
		return
	fi
	check "$name"
}

# before NAME [-p]: the connections are older than the recording
before() {
	local name=$1 rc=0 record_pid args=()
	echo "== $name"
	start_waiting "$name"
	[ "${2:-}" = -p ] && args=(-p "$truth_pid")
	"$WITTY" record -d 30m --max-overhead off -o "$tmp/$name.wpdb" "${args[@]}" &
	record_pid=$!
	pids+=("$record_pid")
	await_intervals "$tmp/$name.wpdb" 2 "$record_pid" || rc=1
	kill -USR1 "$truth_pid"
	wait "$truth_pid" || rc=1
	kill -INT "$record_pid" 2>/dev/null || rc=1
	wait "$record_pid" || rc=1
	if [ "$rc" != 0 ]; then
		echo "FAILED: $name: record or workload"
		failed+=("$name")
		return
	fi
	check "$name"
}

if [ $# -gt 0 ]; then
	for c in "$@"; do
		whole "$c" --case "$c"
	done
else
	whole all
	before before
	before by-pid -p
fi

if [ ${#failed[@]} -gt 0 ]; then
	echo "FAILED: ${failed[*]}"
	exit 1
fi
echo "all flows and all bytes agree"
