#!/bin/bash
# Record real programs that something holds up, and see whether that is found.
#   WITTY=PROGRAM real_diagnosis.sh [CASE]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"
exec /usr/bin/python3 -B "$here/real_diagnosis.py" "$WITTY" "$@"
