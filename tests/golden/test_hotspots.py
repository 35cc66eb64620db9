#!/usr/bin/env python3
"""test_hotspots.py - what `hotspots` says of openEuler's capture, and of what else can be in a file.

WITTY names the program, WITTY_CAPTURE the capture (../shared/data beside the repository). The texts that
are expected are in hotspots/; WITTY_UPDATE_GOLDEN=1 writes them anew.
"""
import difflib
import json
import os
import subprocess
import sys
import tempfile

WITTY = os.environ["WITTY"]
HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURE = os.environ.get("WITTY_CAPTURE", os.path.join(HERE, "../../../shared/data/openeuler-vllm-tp4.json"))
failures = []


def check(what, good, *more):
    if not good:
        failures.append(" ".join([what, *map(str, more)]))


def run(*args):
    return subprocess.run([WITTY, "hotspots", *args], capture_output=True, text=True, timeout=120)


def say(*args):
    done = run(*args)
    check("exit status of " + " ".join(args), done.returncode == 0, done.stderr)
    return done.stdout


def golden(name, text):
    path = os.path.join(HERE, "hotspots", name)
    if os.environ.get("WITTY_UPDATE_GOLDEN"):
        with open(path, "w") as f:
            f.write(text)
    with open(path) as f:
        want = f.read()
    diff = list(difflib.unified_diff(want.splitlines(), text.splitlines(), "expected", name, lineterm="", n=1))
    check(name + " differs:\n" + "\n".join(diff[:40]), not diff)


def not_recorded():
    """Who waits for whom is not in it: that is told, not that nobody does."""
    for what in ("waitfor", "waits", "wakes"):
        done = subprocess.run([WITTY, "show", CAPTURE, what], capture_output=True, text=True, timeout=120)
        check(f"show {what} says so", done.returncode == 0 and "not recorded" in done.stdout
              and "nobody" not in done.stdout, done.stdout, done.stderr)
    found = json.loads(subprocess.run([WITTY, "show", CAPTURE, "waitfor", "--format", "json"], capture_output=True,
                                      text=True, timeout=120).stdout)
    check("JSON says so", found["recorded"] is False and not found["chains"])


def capture():
    """Cumulative counters are no rates; where threads run and have their memory is known."""
    golden("openeuler.txt", say(CAPTURE))
    golden("openeuler.md", say(CAPTURE, "--format", "md", "--limit", "4"))
    text = say(CAPTURE, "--format", "json")
    check("the same bytes each time", text == say(CAPTURE, "--format", "json"))
    found = json.loads(text)
    golden("openeuler.json", json.dumps({"classes": found["classes"], "nodes": found["nodes"],
                                         "not_known": found["not_known"], "threads": found["threads"][:2]}, indent=1) + "\n")
    check("no window", found["window_ns"] is None and found["waits"] is None)
    check("41 threads", len(found["threads"]) == 41)
    for t in found["threads"]:
        rates = {k: v for k, v in t.items() if k.endswith("_s") or k in ("cpu_pct", "runq_pct", "blocked_pct")}
        check("no rate out of a total", all(v is None for v in rates.values()), t["thread"]["id"], rates)
        check("two points at most", t["points"] <= t["possible"] <= 2 and t["level"] in ("normal", "light"))
    check("no switches", found["context_switches"] == [])
    similarity = {p["id"]: p["similarity"] for p in found["numa_affinity"]["processes"]}
    for pid, want in ((1895087, 0.100), (1895088, 0.180), (1895089, 0.861), (1895090, 0.110)):
        check(f"cosine of {pid}", abs(similarity[f"process:{pid}"] - want) < 0.0005, similarity[f"process:{pid}"])
    threads = {t["thread"]["id"]: t for t in found["threads"]}
    for tid, node in ((1895530, 3), (1895760, 7), (1895998, 3), (1896232, 5)):
        t = threads[f"thread:{tid}"]
        check(f"acl_thread {tid}", t["cpu_node"] == node and t["class"] == "driver", t["cpu_node"], t["class"])
    severities = {t["id"]: t["severity"] for t in found["numa_affinity"]["threads"]}
    check("severity", severities["thread:1895087"] == "severe" and severities["thread:1895089"] == "good", severities)


def hostile(folder):
    """Names are data: nothing of them reaches a terminal or Markdown as more than text."""
    name = "a|b`<c>\x1b[31m\n*d*"
    process = {"entity_namespace": "local", "entity_type": "ProcessEntity", "details": {}, "pid": 7, "ppid": 1,
               "name": name, "cmdline": "a"}
    thread = {"entity_namespace": "local", "entity_type": "ThreadEntity", "details": {}, "tid": 7, "process": process,
              "name": name}
    numa = [{"entity_namespace": "local", "entity_type": "NumaEntity", "details": {}, "numa_id": i} for i in range(2)]
    both = {"entity_namespace": "local", "entity_type": "NumaSetEntity", "details": {}, "numa_id_str": "0-1"}
    status = {"voluntary_ctxt_switches": 1, "involuntary_ctxt_switches": 1, "cpus_allowed_list": "0-3",
              "numa_index_to_cpu_runtime": {"1": 5e9}}
    access = {"proc_status": status, "numa_affinity_info": {"cpu_runtime_pct_in_each_numa": [0, 1],
                                                             "mem_pages_in_each_numa": [100, 0]}}
    edges = [{"edge_type": "OwnEdge", "weight": None, "source_node": process, "target_node": thread},
             {"edge_type": "NumaAccessEdge", "weight": None, "source_node": process, "target_node": both,
              "numa_access_info": access},
             {"edge_type": "AccessWithProcStatusEdge", "weight": None, "source_node": thread, "target_node": both,
              "proc_status": status}]
    path = os.path.join(folder, "hostile.json")
    with open(path, "w") as f:
        json.dump({"nodes": [process, thread, both, *numa], "edges": edges}, f)
    text, md = say(path), say(path, "--format", "md")
    check("no escape in text", "\x1b" not in text + md and "severe: " not in text)
    check("a row stays a row", all(line.count("|") - line.count("\\|") in (0, 5, 6, 7, 8, 9) for line in md.splitlines()), md)
    check("no HTML in Markdown", "<c>" not in md.replace("\\<", "").replace("\\>", ""), md)
    check("it is there", "a|b`<c>?[31m?*d*[7]" in text, text)
    check("advice", "numactl --cpunodebind=0 --membind=0" in text, text)


def options(folder):
    limits = os.path.join(folder, "my.limits")
    with open(limits, "w") as f:
        f.write("# mine\nhot.remote = 95 %\nnuma.warning = 0.05\n")
    text = say(CAPTURE, "--limits", limits, "--preset", "hpc")
    check("limits are named", "limits: preset hpc, 2 changed by a file" in text, text[:600])
    # Two of the busy ones have a larger share.
    check("limits decide", "2 light, 39 normal" in text, text[:200])
    wrong = [(("--preset", "fast"), 2, "error: hotspots: no preset 'fast': default, hpc or server"),
             (("--format", "html"), 2, "error: hotspots: --format takes text, md or json, not 'html'"),
             (("--limits", os.path.join(folder, "none")), 1, "error: open limits"),
             (("--limits", os.path.join(folder, "bad")), 1, f"error: limits '{folder}/bad' line 2: no limit 'hot.cqu'")]
    with open(os.path.join(folder, "bad"), "w") as f:
        f.write("hot.cpu = 70 %\nhot.cqu = 70 %\n")
    for args, status, message in wrong:
        done = run(CAPTURE, *args)
        check("refusal", done.returncode == status and not done.stdout and done.stderr.startswith(message) and
              len(done.stderr.splitlines()) <= 2, args, done.returncode, done.stderr)
    done = run(os.path.join(folder, "none.wpdb"))
    check("no file", done.returncode == 1 and done.stderr.startswith("error: "), done.stderr)


def main():
    if not os.path.exists(CAPTURE):
        print("skipped: no capture of openEuler's tool beside the source tree")
        return 77
    with tempfile.TemporaryDirectory(prefix="witty-hot-") as folder:
        capture()
        not_recorded()
        hostile(folder)
        options(folder)
    print("\n".join(failures) or "as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
