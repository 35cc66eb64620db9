#!/bin/bash
# Record real programs, and compare what `topology` draws of them with drawings that are checked in.
#   WITTY=PROGRAM test_topologies.sh [redis|nginx|postgres|make|mpi|ddp]...
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
exec /usr/bin/python3 "$here/topologies.py" "$WITTY" "$@"
