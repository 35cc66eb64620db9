#!/bin/bash
# Record known traffic over every path that is not a socket, and compare the recording with it.
#   WITTY=PROGRAM PATHS=PROGRAM test_paths.sh [CASE]...
# Without CASE: all cases. WAYS says how to record, by default all of
#   before  the objects are older than the recording
#   by-pid  likewise, with only these processes recorded
#   around  the recording starts the program
#   older   likewise, by the hooks that older kernels have
# The workload waits for looks of the recorder before it begins, between users that never met, and before it ends.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}
PATHS=${PATHS:?set PATHS to the ground-truth program}
WAYS=${WAYS:-before by-pid around older}
first=${WAYS%% *}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"

make_tmp

failed=()
cases=()
for c in "$@"; do
	cases+=(--case "$c")
done

# check NAME: compare NAME.wpdb with NAME.json; the table of the first is to be seen
check() {
	local part args=()
	[ "$1" = "$first" ] && args=(--table)
	mkdir "$tmp/$1"
	for part in edges entities flows summary; do
		"$WITTY" show "$tmp/$1.wpdb" "$part" --format json >"$tmp/$1/$part.json"
	done
	"$here/check_paths.py" "$tmp/$1.json" "$tmp/$1" "${args[@]}" || failed+=("$1")
}

# before NAME [-p]: the objects are older than the recording, and the hooks have time to see them
before() {
	local name=$1 rc=0 paths_pid record_pid args=()
	echo "== $name"
	mkfifo "$tmp/$name.ready"
	"$PATHS" --wait-start --recording "$tmp/$name.wpdb" --out "$tmp/$name.json" "${cases[@]}" >"$tmp/$name.ready" &
	paths_pid=$!
	pids+=("$paths_pid")
	read -r _ <"$tmp/$name.ready"
	[ "${2:-}" = -p ] && args=(-p "$paths_pid")
	"$WITTY" record -d 30m --max-overhead off -o "$tmp/$name.wpdb" "${args[@]}" &
	record_pid=$!
	pids+=("$record_pid")
	await_intervals "$tmp/$name.wpdb" 2 "$record_pid" || rc=1
	kill -USR1 "$paths_pid"
	wait "$paths_pid" || rc=1
	kill -INT "$record_pid" 2>/dev/null || rc=1
	wait "$record_pid" || rc=1
	if [ "$rc" != 0 ]; then
		echo "FAILED: $name: record or workload"
		failed+=("$name")
		return
	fi
	check "$name"
}

# around NAME [OPTION]...: the recording starts the program
around() {
	local name=$1
	shift
	echo "== $name"
	if ! "$WITTY" record --max-overhead off -o "$tmp/$name.wpdb" "$@" -- "$PATHS" --recording "$tmp/$name.wpdb" \
		--out "$tmp/$name.json" "${cases[@]}"; then
		echo "FAILED: $name: record"
		failed+=("$name")
		return
	fi
	check "$name"
}

for way in $WAYS; do
	case $way in
	before) before before ;;
	by-pid) before by-pid -p ;;
	around) around around ;;
	older) around older --refuse ipc.tp_btf ;;
	*)
		echo "error: no way '$way'"
		exit 2
		;;
	esac
done

if [ ${#failed[@]} -gt 0 ]; then
	echo "FAILED: ${failed[*]}"
	exit 1
fi
echo "every access, every flow and every byte agrees"
