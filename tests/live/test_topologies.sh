#!/bin/bash
# Record real programs, and compare what `topology` draws of them with drawings that are checked in.
#   WITTY=PROGRAM test_topologies.sh [redis|nginx|postgres|make|mpi|ddp]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"
exec /usr/bin/python3 "$here/topologies.py" "$WITTY" "$@"
