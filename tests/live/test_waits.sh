#!/bin/bash
# Record a program that blocks in every way, and compare with what it says about it.
#   WITTY=PROGRAM WAITS=PROGRAM test_waits.sh [REFUSED]...
# REFUSED: what the recorder is not to use, so that its fallback is tested.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}
WAITS=${WAITS:?set WAITS to the program of tests/live/waits}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"

make_tmp
refuse=() check=()
for r in "$@"; do
	refuse+=(--refuse "$r")
	[ "$r" = sched.task_pt_regs ] && check+=(--without-cause)
done

"$WITTY" record --max-overhead off "${refuse[@]}" -o "$tmp/waits.wpdb" -- "$WAITS" "$tmp/truth.json" "${WAITS_DIR:-/var/tmp}" \
	"$tmp/waits.wpdb"
"$WITTY" show "$tmp/waits.wpdb" waits --format json >"$tmp/waits.json"
"$WITTY" show "$tmp/waits.wpdb" wakes --format json >"$tmp/wakes.json"
"$WITTY" show "$tmp/waits.wpdb" entities --type thread --format json >"$tmp/threads.json"
"$WITTY" show "$tmp/waits.wpdb" entities --type futex --format json >"$tmp/futexes.json"
"$here/check_waits.py" "${check[@]}" "$tmp/truth.json" "$tmp/waits.json" "$tmp/wakes.json" "$tmp/threads.json" \
	"$tmp/futexes.json"
