#!/usr/bin/python3
"""test_mcp.py - `witty-profiler mcp` as clients of each revision of the protocol see it. WITTY names the program."""
import json
import os
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import HOSTILE, META, MODERN, OUT_OF_TIME, WITTY  # noqa: E402
from mcp_client import Server, as_bytes, call, handshake, large_graph, request, small_graph, talk  # noqa: E402

OLD = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
SERVER = "io.modelcontextprotocol/serverInfo"
failures = []


def check(what, good):
    if not good:
        failures.append(what)
        print("FAILED", what)


def error(done, ident, code, what):
    reply = done[ident]
    check(f"{what}: {reply}", reply.get("error", {}).get("code") == code and reply["error"]["message"])
    return reply.get("error", {})


def newer_era(file):
    """Each request stands alone."""
    done = talk([request("d", "server/discover"), request(1, "tools/list"), call(2, "summary"),
                 call("three", "query", what="flows"), request(4, "resources/list"),
                 request(5, "resources/templates/list"), request(6, "prompts/list"),
                 request(7, "prompts/get", name="investigate_slow_job", arguments={"symptom": "half the tokens"}),
                 request(8, "resources/read", uri="witty://files/small.txt/topology"),
                 request(9, "resources/read", uri="witty://schema")], [file])
    check("it ends in order", done.status == 0 and not done.err)
    check("a reply each", len(done.messages) == 10)
    for m in done.messages:
        check(f"complete: {m}", m["result"]["resultType"] == "complete" and m["jsonrpc"] == "2.0")
        check("who answers", m["result"]["_meta"][SERVER]["name"] == "witty-profiler")
    for ident in ("d", 1, 4, 5, 6, 8, 9):
        check(f"{ident} can be kept", done[ident]["result"]["ttlMs"] >= 0
              and done[ident]["result"]["cacheScope"] in ("public", "private"))
    found = done["d"]["result"]
    check("versions", found["supportedVersions"] == [MODERN] and {"tools", "resources", "prompts"} <= set(
        found["capabilities"]) and found["instructions"])
    check("text is short", len(done[2]["result"]["content"][0]["text"]) < 200)
    flows = done["three"]["result"]["structuredContent"]
    check("largest flow first", flows["items"][0]["bytes"] == 70000 and flows["total"] == 4)
    check("symptom in the prompt", "half the tokens" in done[7]["result"]["messages"][0]["content"]["text"])
    check("topology as text", "server[100]" in done[8]["result"]["contents"][0]["text"])
    check("schema", "## process" in done[9]["result"]["contents"][0]["text"]
          or "process" in done[9]["result"]["contents"][0]["text"])
    for uri in [r["uri"] for r in done[4]["result"]["resources"]]:
        one = talk([request(1, "resources/read", uri=uri)], [file])
        check(f"{uri} can be read", one[1]["result"]["contents"][0]["uri"] == uri)


def older_era(file):
    for version in OLD:
        lines = handshake(version) + [request(1, "ping", False), request(2, "tools/list", False),
                                      call(3, "query", False, what="flows"), request(4, "server/discover", False),
                                      request(5, "resources/read", False, uri="witty://nothing")]
        done = talk(lines, [file])
        check(f"{version}: agreed", done[0]["result"]["protocolVersion"] == version
              and done[0]["result"]["serverInfo"]["name"] == "witty-profiler")
        check(f"{version}: no reply to a notification", len(done.messages) == 6)
        check(f"{version}: nothing of the newer era", "resultType" not in done.out.decode())
        check(f"{version}: ping", done[1]["result"] == {})
        structured = version >= "2025-06-18"
        tools = done[2]["result"]["tools"]
        check(f"{version}: output schemas", all(("outputSchema" in t) == structured for t in tools))
        result = done[3]["result"]
        check(f"{version}: structured", ("structuredContent" in result) == structured)
        if not structured:
            check(f"{version}: all in the text", json.loads(result["content"][0]["text"])["total"] == 4)
        error(done, 4, -32601, f"{version}: discover")
        error(done, 5, -32002, f"{version}: no resource")
    done = talk(handshake("1999-01-01") + [request(1, "tools/list", False)], [file])
    check("unknown revision: the newest of that era", done[0]["result"]["protocolVersion"] == OLD[-1])
    check("which is served", done[1]["result"]["tools"])
    done = talk(handshake("2025-06-18") + [call(1, "summary"), call(2, "summary", False)], [file])
    check("both eras in one process", done[1]["result"]["resultType"] == "complete"
          and "resultType" not in done[2]["result"])
    done = talk(handshake("2025-11-25") + [call(1, "query", False, what="flows")], [file], "--mirror")
    both = done[1]["result"]
    check("mirrored", json.loads(both["content"][0]["text"]) == both["structuredContent"])


def wrong_messages(file):
    wrong = dict(META, **{"io.modelcontextprotocol/protocolVersion": "1900-01-01"})
    lines = [request(1, "tools/list", False),
             {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": wrong}},
             {"jsonrpc": "2.0", "id": 3, "method": "tools/list",
              "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}},
             {"jsonrpc": "2.0", "id": 4, "method": "tools/list",
              "params": {"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}},
             request(5, "no/such/method"), request(6, "initialize"), request(7, "ping"),
             request(8, "tools/call"), call(9, "no_such_tool"), call(10, "record", duration_s=1),
             request(11, "prompts/get", name="other"), request(12, "resources/read", uri="witty://files/x/summary"),
             request(13, "resources/read", uri="file:///etc/passwd"), request(14, "tools/list", cursor="zz"),
             {"jsonrpc": "1.0", "id": 15, "method": "ping"}, {"id": 16, "method": "ping"},
             {"jsonrpc": "2.0", "id": 17}, {"jsonrpc": "2.0", "id": 18, "method": 7},
             {"jsonrpc": "2.0", "id": 19, "method": "tools/list", "params": [1]},
             {"jsonrpc": "2.0", "id": 20, "method": "initialize", "params": {}}, request(21, "resources/list", cursor="7.1")]
    done = talk(lines, [file])
    check("it goes on", done.status == 0 and len(done.messages) == len(lines))
    error(done, 1, -32602, "neither handshake nor _meta")
    data = error(done, 2, -32022, "unknown revision")
    check("what it has", data["data"] == {"supported": [MODERN], "requested": "1900-01-01"})
    for ident in (3, 4, 8, 9, 10, 11, 12, 13, 14, 20, 21):
        error(done, ident, -32602, f"request {ident}")
    for ident in (5, 6, 7):
        error(done, ident, -32601, f"request {ident}")
    for ident in (15, 16, 17, 18, 19):
        error(done, ident, -32600, f"request {ident}")
    for line in (b"{", b"nonsense", b"[" * 100000, b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
                 b'"\xff\xfe"', b'{"a":"\x01"}', b"{}" * 10, b'{"jsonrpc":"2.0","id":1,"method":"p\\u0000"}'):
        done = talk(line + b"\n" + as_bytes([call(2, "summary")]), [file])
        reply = done.messages[0]
        check(f"{line[:40]}: {reply}", len(done.messages) == 2 and reply["error"]["code"] in (-32700, -32600)
              and done[2]["result"])
    for ident in (None, True, 1.5, {}, [], "x" * 1000):
        done = talk([{"jsonrpc": "2.0", "id": ident, "method": "ping"}, call(2, "summary")], [file])
        check(f"id {ident}", done.messages[0]["error"]["code"] == -32600 and "id" not in done.messages[0]
              and done[2]["result"])
    done = talk(handshake("2025-03-26") + [b"{"], [file])
    check("older: null where no id could be read", done.messages[-1]["id"] is None)
    done = talk([b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"y" * (3 << 20) + b'"}}',
                 call(2, "summary")], [file])
    check("a line of 3 MiB", done.messages[0]["error"]["code"] == -32600 and done[2]["result"])
    replies = [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": ""}},
               {"jsonrpc": "2.0", "method": "notifications/unknown"}, b"", b"  ", b"\r"]
    check("replies and notifications have none", not talk(replies, [file]).messages)


def batches(file):
    batch = json.dumps([request(1, "ping", False), {"jsonrpc": "2.0", "method": "notifications/x"}, 7,
                        request(2, "nothing", False), handshake("2025-03-26", 3)[0]]).encode()
    done = talk(handshake("2025-03-26") + [batch], [file])
    got = done.messages[-1]
    check(f"batch: {got}", isinstance(got, list) and len(got) == 4 and got[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
          and got[1]["error"]["code"] == -32600 and got[2]["error"]["code"] == -32601
          and got[3]["error"]["code"] == -32600)
    for lines in (handshake("2025-06-18") + [batch], [batch], handshake("2025-03-26") + [b"[]"]):
        done = talk(lines, [file])
        check("no batch", done.messages[-1]["error"]["code"] == -32600)
    check("only notifications: no reply",
          len(talk(handshake("2025-03-26") + [b'[{"jsonrpc":"2.0","method":"x"}]'], [file]).messages) == 1)


def streams(file):
    """How bytes arrive makes no difference; an end in the middle ends it."""
    lines = [request("d", "server/discover"), call(1, "query", what="flows"), call("ü", "explain_entity", id="process:100")]
    whole, slow = talk(lines, [file]), talk(lines, [file], slowly=True)
    check("a byte at a time", whole.out == slow.out and len(whole.messages) == 3)
    check("CRLF", talk(as_bytes(lines, b"\r\n"), [file]).out == whole.out)
    data = as_bytes(lines)
    for cut in (1, len(data) // 2, len(data) - 1):
        done = talk(data[:cut], [file])
        check(f"end after {cut} bytes", done.status == 0 and len(done.messages) == data[:cut].count(b"\n"))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2, "reason": "x"}}
    odd = [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": p} for p in ({}, {"requestId": None}, {
        "requestId": "unknown"}, {"requestId": [2]})]
    done = talk([call(1, "summary"), call(2, "summary"), cancel, *odd, call(3, "summary"), cancel], [file])
    check("cancelled while it waited", sorted(m["id"] for m in done.messages) == [1, 3])
    listen = request("l", "subscriptions/listen", notifications={"toolsListChanged": True})
    done = talk([listen, call(1, "summary")], [file])
    check("acknowledged first", done.messages[0]["method"] == "notifications/subscriptions/acknowledged"
          and done.messages[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
          and done.messages[0]["params"]["notifications"] == {})
    check("closed in order", done["l"]["result"]["resultType"] == "complete" and done["l"]["result"]["_meta"][
        "io.modelcontextprotocol/subscriptionId"] == "l")
    cancel["params"]["requestId"] = "l"
    check("listening can be cancelled", len(talk([listen, cancel], [file]).messages) <= 1)
    with subprocess.Popen([WITTY, "mcp", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdout.close()
        p.stdin.write(as_bytes([call(1, "summary")] * 3))
        p.stdin.close()
        check("nobody reads: it ends", p.wait(OUT_OF_TIME) == 0)


def tables(file):
    """Schemas are valid, and answers are as the schemas say."""
    tools = talk([request(1, "tools/list")], [file], "--allow-record")[1]["result"]["tools"]
    check("at most 8 tools", len(tools) <= 8)
    check("the same order each time", tools == talk([request(1, "tools/list")], [file], "--allow-record")[1][
        "result"]["tools"])
    names = [t["name"] for t in tools]
    without = [t["name"] for t in talk([request(1, "tools/list")], [file])[1]["result"]["tools"]]
    check("recording is asked for", set(names) - set(without) == {"record"})
    for t in tools:
        for key in ("inputSchema", "outputSchema"):
            jsonschema.Draft202012Validator.check_schema(t[key])
            check(f"{t['name']}: {key} is closed", t[key]["additionalProperties"] is False)
        check(f"{t['name']}: hints", t["annotations"]["readOnlyHint"] == (t["name"] != "record"))
    return {t["name"]: t for t in tools}


def good_calls():
    """A call of each kind on the small graph."""
    return [("summary", {}), ("query", {"what": "entities"}), ("query", {"what": "edges", "type": "flow"}),
            ("query", {"what": "flows", "min_bytes": 3000}), ("query", {"what": "waits"}), ("query", {"what": "wakes"}),
            ("query", {"what": "numa"}), ("query", {"what": "shared_memory"}),
            ("query", {"what": "paths", "from": "process:103", "to": "process:101"}),
            ("query", {"what": "entities", "name": "worker", "limit": 1}), ("explain_entity", {"id": "process:100"}),
            ("explain_entity", {"id": "process:100", "file": None}), ("diagnose", {}), ("hot_threads", {}),
            ("diagnose", {"about": "process:101", "severity": "notice", "layer": "compute"}),
            ("hot_threads", {"process": "process:100"}), ("diff", {"before": "small.txt", "after": "small.txt"})]


def answers(file, tools):
    with Server([file]) as s:
        for tool, arguments in good_calls():
            result, _ = s.ask(tool, **arguments)
            check(f"{tool} {arguments}: {result['content'][0]['text']}", not result.get("isError"))
            if result.get("isError"):
                continue
            schema = tools[tool]["outputSchema"]
            jsonschema.validate(result["structuredContent"], schema)
            jsonschema.validate({k: v for k, v in arguments.items() if v is not None}, tools[tool]["inputSchema"])
        flows = s.data("query", what="flows", min_bytes=3000)
        check("filter", [i["bytes"] for i in flows["items"]] == [70000, 5000])
        one = s.data("explain_entity", id="process:101")
        check("control characters are gone", HOSTILE not in json.dumps(one) and "\\u001b" not in json.dumps(one)
              and "\\u202e" not in json.dumps(one))
        check("long texts are cut", len(s.data("explain_entity", id="process:100")["entity"]["cmdline"]) < 300)
        for tool, arguments, word in (
                ("query", {}, "what"), ("query", {"what": "secrets"}, "entities"), ("query", {"what": 7}, "text"),
                ("query", {"what": "entities", "type": "no"}, "type"), ("query", {"what": "waits", "name": "x"}, "filter"),
                ("query", {"what": "entities", "limit": 0}, "1"), ("query", {"what": "entities", "limit": "5"}, "number"),
                ("query", {"what": "entities", "budget": 10 ** 9}, "25000"), ("query", {"what": "entities", "x": 1}, "x"),
                ("query", {"what": "entities", "name": "y" * 1000}, "long"), ("query", {"what": "paths"}, "from"),
                ("query", {"what": "entities", "cursor": "1"}, "cursor"), ("query", {"what": "entities", "cursor": "-1.0"}, "cursor"),
                ("explain_entity", {"id": "process:1"}, "process:1"), ("evidence", {"finding": "x@y"}, "diagnose"),
                ("diff", {"before": "small.txt"}, "after"), ("diagnose", {"about": "process:1"}, "process:1"),
                ("hot_threads", {"process": "thread:9"}, "thread:9"), ("diagnose", {"layer": "magic"}, "compute"), ("summary", {"file": "/etc/passwd"}, "small.txt"),
                ("summary", {"file": "../small.txt"}, "small.txt"), ("summary", {"file": ["a"]}, "text")):
            result, _ = s.ask(tool, **arguments)
            check(f"{tool} {arguments}: {result}", result.get("isError") and word in result["content"][0]["text"]
                  and "structuredContent" not in result)
        result = s.data("query", what="entities", limit=2)
        cursor = result["next_cursor"]
        result, _ = s.ask("query", what="flows", cursor=cursor)
        check("a cursor of another question", result.get("isError"))
        seen, cursor = [], None
        while True:
            page = s.data("query", what="entities", limit=2, **({"cursor": cursor} if cursor else {}))
            seen += [i["id"] for i in page["items"]]
            cursor = page.get("next_cursor")
            if not cursor:
                break
        check(f"pages have each once: {seen}", len(seen) == len(set(seen)) == 5)
        check("it ends", s.close() == 0)
    for bad in (["-"], ["/no/such/file"], [file, file], []):
        done = subprocess.run([WITTY, "mcp", *bad], input=b"", capture_output=True, check=False)
        check(f"{bad}: refused", done.returncode in (1, 2) and done.stderr.startswith(b"error: ") and not done.stdout)
    done = subprocess.run([WITTY, "mcp", "--budget", "7", file], input=b"", capture_output=True, check=False)
    check("budget 7", done.returncode == 2)


def budgets(folder, tools):
    """Within the budget on a graph of 129 000 entities, in all revisions."""
    path = os.path.join(folder, "large.txt")
    large_graph(path)
    rows = []
    calls = [("summary", {}), ("query", {"what": "entities"}), ("query", {"what": "edges"}), ("query", {"what": "flows"}),
             ("query", {"what": "numa"}), ("query", {"what": "waits"}), ("query", {"what": "entities", "name": "rank3"}),
             ("query", {"what": "paths", "from": "process:1003", "to": "process:1010"}),
             ("explain_entity", {"id": "process:1003"})]
    calls += more_calls()
    for options in ((), ("--mirror",)):
        with Server([path], *options) as s:
            for tool, arguments in calls:
                for budget in (500, 1500, 4000, 25000):
                    result, size = s.ask(tool, budget=budget, **arguments)
                    check(f"{tool} {arguments} {options}: {size} bytes, {budget} tokens", size <= 4 * budget)
                    check(f"{tool} {arguments} {budget}: {result['content'][0]['text']}", not result.get("isError"))
                    jsonschema.validate(result["structuredContent"], tools[tool]["outputSchema"])
                    rows.append(size / (4 * budget))
            entities = s.data("summary")["entities"]
            check(f"129 000 entities: {entities}", sum(entities.values()) == 129000)
    done = talk(handshake("2024-11-05") + [call(i, t, False, **a) for i, (t, a) in enumerate(calls, 1)], [path])
    for line in done.out.splitlines()[1:]:
        check(f"older: {len(line)} bytes", len(line) <= 16000)
    with Server([path]) as s:
        seen, cursor, pages = set(), None, 0
        while pages < 5:
            page = s.data("query", what="entities", type="thread", **({"cursor": cursor} if cursor else {}))
            seen |= {i["id"] for i in page["items"]}
            cursor, pages = page["next_cursor"], pages + 1
        check("pages of a large list", page["total"] == 52000 and len(seen) > 5 * 20)
    print(f"| answers on 129 000 entities | {len(rows)} | fullest {max(rows) * 100:.1f} % of its budget |")


def more_calls():
    """Of the analyses, which are whole on any graph."""
    return [("diagnose", {}), ("diagnose", {"severity": "warning"}), ("diagnose", {"layer": "memory"}),
            ("diagnose", {"about": "process:1003"}), ("hot_threads", {}), ("hot_threads", {"process": "process:1003"}),
            ("diff", {"before": "large.txt", "after": "large.txt"})]


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "small.txt")
        small_graph(file)
        newer_era(file)
        older_era(file)
        wrong_messages(file)
        batches(file)
        streams(file)
        tools = tables(file)
        answers(file, tools)
        budgets(folder, tools)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
