#!/bin/bash
# Record real servers under load, and compare the flows with what those programs count themselves.
#   WITTY=PROGRAM real_programs.sh [redis|nginx|iperf3|postgres]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"
exec /usr/bin/python3 "$here/real_programs.py" "$WITTY" "$@"
