#!/bin/bash
# test_rules.sh - docs/rules.md is what `witty-profiler bottlenecks --list-rules` prints, and each limit that a text
# of it names is one of its row. WITTY names the program.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$WITTY" bottlenecks --list-rules >"$made"
if ! diff -u docs/rules.md "$made"; then
    echo "docs/rules.md is not current: witty-profiler bottlenecks --list-rules >docs/rules.md" >&2
    exit 1
fi
# `group.name` in a condition or severity, but not under Limits of the same rule.
awk '/^### /{rule=$2; limits=""; n=0}
     /^- \*\*(Fires|Severity)/{text[n++]=$0}
     /^- \*\*Limits/{limits=$0}
     /^- \*\*Advice/{for (i=0;i<n;i++) while (match(text[i], /`[a-z0-9-]+\.[a-z0-9-]+`/)) {
         name=substr(text[i],RSTART,RLENGTH); text[i]=substr(text[i],RSTART+RLENGTH)
         if (index(limits,name)==0) {print rule " names " name ", which it has not among its limits"; bad=1}}}
     END{exit bad}' "$made"
