#!/bin/bash
# Record real servers under load, and compare the flows with what those programs count themselves.
#   WITTY=PROGRAM real_programs.sh [redis|nginx|iperf3|postgres]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}

skip() {
	echo "SKIP: $*"
	exit 77
}

[ -x "$WITTY" ] || skip "no program '$WITTY'"
[ "$(id -u)" = 0 ] || skip "needs root"
[ -e /sys/kernel/btf/vmlinux ] || skip "this kernel has no BTF"
exec /usr/bin/python3 "$here/real_programs.py" "$WITTY" "$@"
