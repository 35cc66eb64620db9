#!/bin/bash
# test_limits.sh - docs/limits.md is what `witty-profiler hotspots --list-limits` prints, and what it prints
# as a file is read back. WITTY names the program.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$WITTY" hotspots --list-limits --format md >"$made/limits.md"
if ! diff -u docs/limits.md "$made/limits.md"; then
    echo "docs/limits.md is not current: witty-profiler hotspots --list-limits --format md >docs/limits.md" >&2
    exit 1
fi
for preset in default hpc server; do
    "$WITTY" hotspots --list-limits --preset "$preset" >"$made/a"
    "$WITTY" hotspots --list-limits --limits "$made/a" --preset "$preset" >"$made/b"
    cmp "$made/a" "$made/b"
done
