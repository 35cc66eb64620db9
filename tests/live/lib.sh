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
