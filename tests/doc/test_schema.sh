#!/bin/bash
# test_schema.sh - docs/schema.md is what `witty-profiler schema` prints. WITTY names the program.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$WITTY" schema >"$made"
if ! diff -u docs/schema.md "$made"; then
    echo "docs/schema.md is not current: witty-profiler schema >docs/schema.md" >&2
    exit 1
fi
