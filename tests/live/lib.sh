# shellcheck shell=bash
# Sourced by the live tests, with WITTY set: makes sure that they can run.

skip() {
	echo "SKIP: $*"
	exit 77
}

[ -x "$WITTY" ] || {
	echo "FAILED: no program '$WITTY'"
	exit 1
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -e /sys/kernel/btf/vmlinux ] || skip "this kernel has no BTF"

# A folder $tmp, which is gone at the end, as are the processes in pids.
make_tmp() {
	tmp=$(mktemp -d)
	pids=()
	trap clean_tmp EXIT
}

clean_tmp() {
	local p
	for p in "${pids[@]}"; do
		kill -KILL "$p" 2>/dev/null || true
	done
	rm -rf "$tmp"
}

# await_intervals FILE N PID: until the recording has so many, which its recorder, process PID, makes.
await_intervals() {
	local n
	for _ in $(seq 1200); do
		n=$("$WITTY" show "$1" summary --format json 2>/dev/null | sed -n 's/.*"intervals": *\([0-9]*\).*/\1/p')
		[ "${n:-0}" -ge "$2" ] && return
		kill -0 "$3" 2>/dev/null || break
		sleep 0.1
	done
	echo "FAILED: the recording did not come to $2 intervals"
	return 1
}
