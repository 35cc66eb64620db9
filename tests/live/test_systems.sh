#!/bin/bash
# Record parallel jobs of known pattern, and compare what `topology` says with what they are.
#   WITTY=PROGRAM SYSTEMS=PROGRAM test_systems.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
WITTY=${WITTY:?set WITTY to the witty-profiler program}
SYSTEMS=${SYSTEMS:?set SYSTEMS to the program that runs a job}

# shellcheck source=tests/live/lib.sh
. "$here/lib.sh"
exec /usr/bin/python3 "$here/systems.py" "$WITTY" "$SYSTEMS"
