#!/bin/bash
# Record real programs that exchange data in every way, and compare with what is known of them.
#   WITTY=PROGRAM real_paths.sh [CASE]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"
exec /usr/bin/python3 -B "$here/real_paths.py" "$WITTY" "$@"
