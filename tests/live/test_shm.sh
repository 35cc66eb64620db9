#!/bin/bash
# Record a workload that shares memory in every way, and compare objects, mappers and sizes.
#   WITTY=PROGRAM SHM=PROGRAM test_shm.sh [CASE]...
# Three times: the whole host, by process id, and by /proc alone.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}
SHM=${SHM:?set SHM to the shared-memory workload}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"

tmp=$(mktemp -d)
huge=/proc/sys/vm/nr_hugepages
had=''
pid=''
cleanup() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	[ -z "$had" ] || echo "$had" >"$huge"
	rm -rf "$tmp" ${id:+/dev/shm/"$id"-* /dev/shm/sem."$id"-* "$disk/$id"-*}
}
trap cleanup EXIT

# Five huge pages more than what others have.
if [ -w "$huge" ]; then
	had=$(cat "$huge")
	echo $((had + 5)) >"$huge"
fi

mkfifo "$tmp/in" "$tmp/out"
disk=${SHM_DISK:-$tmp/disk}
mkdir -p "$disk"
SHM_DISK=$disk "$SHM" "$tmp/truth" "$@" <"$tmp/in" >"$tmp/out" &
pid=$!
id=witty-shm-$pid
exec 3>"$tmp/in"
read -r word main skipped <"$tmp/out" || word=''
[ "$word" = ready ] || { echo "FAILED: the workload did not start"; exit 1; }

failed=()
# look NAME CHECK_OPTION RECORD_OPTION...: of a busy host, where looks are late, for longer
look() {
	local name=$1 option=$2 seconds
	shift 2
	for seconds in 1 6 30; do
		echo "== $name, $seconds s"
		if ! "$WITTY" record --force -d "${seconds}s" -o "$tmp/$name.wpdb" "$@"; then
			failed+=("$name")
			return
		fi
		"$WITTY" show "$tmp/$name.wpdb" shared-memory --format json >"$tmp/$name.json"
		# shellcheck disable=SC2086 # an empty option is none
		"$here/check_shm.py" "$tmp/truth" "$tmp/$name.json" $option && return
	done
	failed+=("$name")
}
look whole ''
look by-pid '' -p "$main"
look by-proc --by-proc --no-ebpf

exec 3>&-
wait "$pid" || failed+=(workload)
pid=''
[ "$skipped" = 0 ] || echo "$skipped cases need what this machine has not"
if [ ${#failed[@]} -gt 0 ]; then
	echo "FAILED: ${failed[*]}"
	exit 1
fi
echo "all shared memory agrees"
