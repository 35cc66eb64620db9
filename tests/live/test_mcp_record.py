#!/usr/bin/python3
"""test_mcp_record.py - the one tool of `witty-profiler mcp` that does something: record. WITTY names the program.

Needs root.
"""
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../serve"))
from mcp_client import META, Server, call  # noqa: E402

failures = []


def check(what, good):
    if not good:
        failures.append(what)
        print("FAILED", what)


def recordings(folder):
    return sorted(os.listdir(folder))


def until(what, condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            check(f"{what}: not in {seconds} s", False)
            return
        time.sleep(0.05)


def complete(folder):
    """It tells its progress, answers other questions meanwhile, and the new file can be asked about."""
    with Server([], "--allow-record", "--record-dir", folder) as s:
        result, _ = s.ask("summary")
        check("no file yet", result.get("isError") and "no file" in result["content"][0]["text"])
        message = call("rec", "record", duration_s=3, pids=[os.getpid()])
        message["params"]["_meta"] = dict(META, progressToken="p")
        s.send(message)
        s.send(call("two", "record", duration_s=1))
        s.send(call("bad", "record", duration_s=601))
        got, progress = {}, []
        while "rec" not in got:
            m = json.loads(s.line())
            if m.get("method") == "notifications/progress":
                progress.append(m["params"])
            else:
                got[m["id"]] = m["result"]
        check("others are answered meanwhile", list(got) == ["two", "bad", "rec"])
        check("one at a time", got["two"].get("isError") and got["bad"].get("isError"))
        check(f"progress {progress}", progress and all(p["progressToken"] == "p" and p["total"] == 3 for p in progress)
              and [p["progress"] for p in progress] == sorted({p["progress"] for p in progress}))
        answer = got["rec"]["structuredContent"]
        check(f"recorded {answer}", answer["file"] in recordings(folder) and answer["window_ns"] > 2e9
              and answer["entities"] > 0)
        about = s.data("summary")
        check("it is the newest file", about["file"] == answer["file"] and about["about"]["complete"])
        mine = s.data("explain_entity", id=f"process:{os.getpid()}")["entity"]
        check("who was asked for", mine["pid"] == os.getpid())
        result, _ = s.ask("record", duration_s=1, pids=[4194303])
        check(f"no such process: {result}", result.get("isError") and "4194303" in result["content"][0]["text"])
        check("it ends", s.close() == 0)
    check("only what was recorded", recordings(folder) == [answer["file"]])


def cancelled(folder):
    before = recordings(folder)
    with Server([], "--allow-record", "--record-dir", folder) as s:
        s.send(call("rec", "record", duration_s=300))
        until("it began", lambda: len(recordings(folder)) > len(before))
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "rec"}})
        until("its file is gone", lambda: recordings(folder) == before)
        result, _ = s.ask("summary")
        check("no answer to what was cancelled, and no file", result.get("isError"))
        check("it ends", s.close() == 0)
    with Server([], "--allow-record", "--record-dir", folder) as s:
        s.send(call("rec", "record", duration_s=300))
        until("it began again", lambda: len(recordings(folder)) > len(before))
        start = time.monotonic()
        check("the end of the input ends it", s.close() == 0 and time.monotonic() - start < 120)
    check("nothing is left", recordings(folder) == before)


def main():
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        complete(folder)
        cancelled(folder)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
