#!/bin/bash
# Record real programs that exchange data in every way, and compare with what is known of them.
#   WITTY=PROGRAM real_paths.sh [CASE]...
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
exec /usr/bin/python3 -B "$here/real_paths.py" "$WITTY" "$@"
