#!/usr/bin/env python3
"""test_api.py - our own routes: their description, every parameter with wrong and odd values, filters, cursors,
tags, compression, events."""
import gzip
import http.client
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import jsonschema

from server import LONG, Server, run

ODD = ["", "0", "1", "-1", "007", "1.5", "1e9", "99999999999999999999", "NaN", "null", "true", "false", "x", "a" * 60, "a" * 5000,
       "process:1", "process:999999", "../../etc/passwd", "%00", "\u00e4\u20ac\U0001f600", "\x7f", "' OR 1=1 --", "<script>", "{}", "[]",
       "1.5.9", "1.", ".1", "18446744073709551615.1", "1.99999999999999999999", "&&", "=", "a|b", "snapshot,finding", "\n", "%"]


# What clients say they accept, and what they get (RFC 9110, 12.5.3).
ACCEPTED = [("", None), ("gzip", "gzip"), ("GZip", "gzip"), ("x-gzip", "gzip"), ("zstd", "zstd"), ("gzip, zstd", "zstd"),
            ("gzip, deflate, br, zstd", "zstd"), ("gzip;q=1.0, zstd;q=0.9", "gzip"), ("gzip;q=0.2,zstd;q=0.3", "zstd"),
            ("gzip;q=0", None), ("gzip; q=0.0, zstd ;q=0.000", None), ("*", "zstd"), ("*;q=0", None), ("zstd;q=0, *", "gzip"),
            ("gzip, *;q=0", "gzip"), ("identity, gzip;q=0.5", None), ("identity;q=0.5, gzip", "gzip"), ("identity;q=0", None),
            ("deflate, br", None), ("gzipped", None), ("notgzip", None), ("gzip;x=y;q=0", None), ("gzip;q=x", None), (";;,,", None),
            ("gzip;q=5", None), ("br;q=1, zstd ; q = 0.001", "zstd")]


def unzstd(data):
    return subprocess.run(["zstd", "-d", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def document():
    return S.get("/openapi.json").json()


def resolve(doc, schema):
    if isinstance(schema, dict) and "$ref" in schema:
        at = doc
        for part in schema["$ref"].lstrip("#/").split("/"):
            at = at[part]
        return resolve(doc, at)
    return schema


def operations(doc):
    for path, item in doc["paths"].items():
        for method, op in item.items():
            yield method.upper(), path, op


def openapi():
    """Version 3.1: what its schema asks for, and that all that is referred to is there."""
    doc = document()
    assert doc["openapi"].startswith("3.1.") and {"title", "version"} <= set(doc["info"])
    ids = set()
    for method, path, op in operations(doc):
        assert path.startswith("/") and method in ("GET", "POST", "DELETE"), (method, path)
        assert op["operationId"] not in ids, op["operationId"]
        ids.add(op["operationId"])
        assert op["summary"] and op["responses"] and op["x-role"] in ("read", "control")
        names = set()
        for p in op["parameters"]:
            assert p["in"] in ("path", "query") and p["name"] not in names and "schema" in p, p
            names.add(p["name"])
            assert p["in"] == "query" or p["required"] is True
            jsonschema.Draft202012Validator.check_schema(resolve(doc, p["schema"]))
        assert {p["name"] for p in op["parameters"] if p["in"] == "path"} == {
            x.strip("{}") for x in path.split("/") if x.startswith("{")}, path
        for status, response in op["responses"].items():
            assert status.isdigit() and response["description"]
            for media in response.get("content", {}).values():
                jsonschema.Draft202012Validator.check_schema(resolve(doc, media["schema"]))
        if method == "POST" and path == "/subscriber":
            assert op["requestBody"]["content"]["application/json"]
    text = S.get("/help").body.decode()
    assert all(f"{m} {p} - " in text for m, p, _ in operations(doc)), "one table for both"
    assert len(ids) >= 30, len(ids)


def answers_match():
    """Each route that needs no parameters answers in the shape that its description tells."""
    doc = document()
    for method, path, op in operations(doc):
        if method != "GET" or "{" in path or path in ("/api/v1/events", "/api/v1/paths", "/api/v1/diff"):
            continue
        answer = S.until(lambda: (lambda a: a.status != 503 and a)(S.get(path)), path)
        if path in ("/api/v1/recordings", "/api/v1/fleet"):  # without --state-dir, and of `fleet`
            assert answer.status == 404
            continue
        assert answer.status == 200, (path, answer.status, answer.body[:200])
        (mime, media), = op["responses"]["200"]["content"].items()
        assert answer.headers["content-type"] == mime, path
        if mime == "application/json":
            schema = dict(media["schema"])
            if "$ref" in schema:
                schema = resolve(doc, schema)
            jsonschema.validate(answer.json(), schema)


def tries(op, path, rng):
    """Paths with each parameter odd once, some odd together, one that is not known, and one twice."""
    names = [p["name"] for p in op["parameters"] if p["in"] == "query"]
    rests = ODD if "{" in path else [None]
    for rest in rests:
        at = path[:path.index("{")] + urllib.parse.quote(rest, safe="") if rest is not None else path
        yield at
    at = path[:path.index("{")] + "process:1" if "{" in path else path
    for name, value in itertools.product(names, ODD):
        yield f"{at}?{name}={urllib.parse.quote(value)}"
    for _ in range(15):
        yield at + "?" + "&".join(f"{n}={urllib.parse.quote(rng.choice(ODD))}" for n in names)
    yield at + "?nonsense=1"
    yield at + "?" + "&".join(f"{n}=1&{n}=1" for n in names[:1])
    yield at + "?" + "&".join(f"x{i}=1" for i in range(300))


def fuzz():
    rng, seen, count = random.Random(4), {}, 0
    doc = document()
    c = S.connection()
    for method, path, op in operations(doc):
        if path == "/api/v1/events":
            continue
        for target in tries(op, path, rng):
            if path in ("/control/trigger", "/api/v1/page") and count % 10:
                count += 1
                continue
            body = rng.choice(ODD) if method == "POST" else None
            try:
                c.request(method, target, body=body.encode() if body else None)
                raw = c.getresponse()
                data = raw.read()
            except (http.client.HTTPException, ConnectionError):
                c.close()
                c = S.connection()
                continue
            seen[raw.status] = seen.get(raw.status, 0) + 1
            assert raw.status in (200, 400, 404, 405, 410, 413, 414, 503), (method, target[:200], raw.status, data[:200])
            if raw.getheader("Content-Type") == "application/json" and method != "HEAD":
                document_ = json.loads(data)
                assert raw.status < 400 or set(document_) == {"detail"}, (target, data[:200])
            count += 1
    c.close()
    print(f"{count} requests: {dict(sorted(seen.items()))}")
    assert S.get("/status").status == 200 and seen.get(200) and seen.get(400) and seen.get(404)


def filters():
    processes = S.get("/api/v1/entities?type=process&limit=10000").json()
    assert processes["total"] == len(processes["items"]) and processes["next"] is None
    assert all(p["type"] == "process" for p in processes["items"])
    own = [p for p in processes["items"] if p["pid"] == os.getpid()]
    assert len(own) == 1, "this test is a process that is seen"
    named = S.get("/api/v1/entities?type=process&name=python").json()["items"]
    assert named and all("python" in json.dumps(p) for p in named)
    one = S.get("/api/v1/entities/" + own[0]["id"]).json()
    assert one["entity"]["id"] == own[0]["id"] and one["out"] + one["in"]
    near = S.get(f"/api/v1/neighbours/{own[0]['id']}?hops=2&limit=20").json()
    ids = {e["id"] for e in near["entities"]}
    assert near["center"] in ids and 2 <= len(ids) <= 40 and all(e["source"] in ids and e["target"] in ids for e in near["edges"])
    assert S.get("/api/v1/edges?type=own&limit=3").json()["items"][0]["type"] == "own"
    assert S.get("/api/v1/entities?type=nothing").status == 400
    assert S.get("/api/v1/paths?from=process:1").status == 400
    numa = S.get("/api/v1/numa").json()
    assert numa["nodes"] and set(numa) == {"nodes", "memory", "processes", "threads"}, list(numa)


def cursors():
    """Page by page one gets the same list as at once, though newer snapshots come meanwhile."""
    first = S.get("/api/v1/entities?limit=7").json()
    # So that there are some pages, and not hundreds, meanwhile the snapshot would be given up on a slow machine.
    some = max(7, first["total"] // 20)
    whole = S.get(f"/api/v1/entities?limit=10000&snapshot={first['snapshot']}").json()["items"]
    items, page = first["items"], first
    while page["next"]:
        page = S.get(f"/api/v1/entities?limit={some}&cursor=" + page["next"]).json()
        assert page["snapshot"] == first["snapshot"] and len(page["items"]) <= some
        items = items + page["items"]
    assert items == whole and len(items) == first["total"]
    assert S.get("/api/v1/entities?cursor=999999.0").status == 410
    assert S.get("/api/v1/entities?cursor=x").status == 400
    kept = S.get("/api/v1/snapshots").json()
    assert [k["snapshot"] for k in kept] == sorted(k["snapshot"] for k in kept) and kept
    at = S.get(f"/api/v1/entities?limit=1&at={kept[0]['end_ns']}").json()
    assert at["snapshot"] in {k["snapshot"] for k in kept}


def tags_and_compression():
    S.ask("POST", "/control/stop")
    # One may be under way: this one comes behind it, and is the last.
    assert S.ask("POST", "/control/trigger").status == 200
    S.until(lambda: S.get("/api/v1/snapshots").json()[-1]["analysed"], "the last analysis")
    for path in ("/graph", "/compressed_graph", "/api/v1/summary", "/api/v1/entities?limit=50", "/api/v1/topology", "/api/v1/findings"):
        plain = S.get(path)
        tag = plain.headers["etag"]
        assert S.get(path, If_None_Match=tag).status == 304, path
        assert S.get(path, If_None_Match='"other", ' + tag).status == 304 and S.get(path, If_None_Match="W/" + tag).status == 304
        assert S.get(path, If_None_Match='"other"').status == 200
        for encoding, unpack in (("gzip", gzip.decompress), ("zstd", unzstd)):
            packed = S.get(path, Accept_Encoding=encoding + ", deflate")
            assert packed.headers.get("content-encoding") == (encoding if len(plain.body) > 2000 else packed.headers.get("content-encoding")), path
            if packed.headers.get("content-encoding"):
                assert unpack(packed.body) == plain.body and len(packed.body) < len(plain.body), path
                assert packed.headers["etag"] == tag[:-1] + f'-{encoding}"'
                assert S.get(path, If_None_Match=packed.headers["etag"]).status == 304
        assert "Accept-Encoding" in plain.headers["vary"]
    for accepted, chosen in ACCEPTED:
        answer = S.get("/graph", Accept_Encoding=accepted)
        assert answer.headers.get("content-encoding") == chosen, (accepted, answer.headers)
    head = S.ask("HEAD", "/graph")
    assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) > 100
    S.ask("POST", "/control/start")
    S.until(lambda: S.get("/graph", If_None_Match=tag).status == 200, "a newer snapshot")


def page():
    S.until(lambda: S.get("/", Accept="text/html").status == 200, "the page")
    answer = S.get("/", Accept="text/html,application/xhtml+xml")
    assert answer.headers["content-type"].startswith("text/html") and answer.body.lstrip().lower().startswith(b"<!doctype html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert S.get("/", Accept="application/json").headers["content-type"] == "application/json"
    # What interfaces moved in each interval is there, as in the page of a recording; these requests are of it.
    S.until(lambda: any(sum(x["values"]) > 0 for x in S.get("/api/v1/page").json().get("time", {}).get("moved", []) if x["name"] == "nic lo"),
            "amounts of intervals in the page")


def read_events(c, count, seconds=LONG):
    """Events of a stream as (id, type, data)."""
    text, events, end = "", [], time.monotonic() + seconds
    while len(events) < count:
        c.settimeout(max(0.1, end - time.monotonic()))
        part = c.recv(65536)
        assert part, "the stream ended"
        text += part.decode()
        events = [dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
                  for block in text.replace("\r\n", "\n").split("\n\n") if "data: " in block]
    return events


def stream(path, **headers):
    c = socket.create_connection(("127.0.0.1", S.port), timeout=LONG)
    lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    # Of version 1.0, so that it comes without chunks in between.
    c.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n{lines}\r\n".encode())
    return c


def events():
    with stream("/api/v1/events?types=snapshot") as c:
        got = read_events(c, 4)
    numbers = [json.loads(e["data"])["snapshot"] for e in got]
    assert numbers == sorted(set(numbers)) and all(e["event"] == "snapshot" for e in got)
    with stream("/api/v1/events", Last_Event_ID=got[1]["id"]) as c:
        again = read_events(c, 2)
    assert int(again[0]["id"]) == int(got[1]["id"]) + 1, (got[1], again[0])
    before = S.get("/metrics").body.decode()
    many = [stream("/api/v1/events?types=snapshot") for _ in range(60)]
    S.until(lambda: b"witty_event_clients 60" in S.get("/metrics").body, "all streams")
    for c in many:
        read_events(c, 2)
        c.close()
    S.until(lambda: b"witty_event_clients 0" in S.get("/metrics").body, "all streams have ended")
    assert "witty_event_clients" in before


with Server("--rate", "0", "--keep", "10m") as S:
    run([openapi, answers_match, filters, cursors, tags_and_compression, page, events, fuzz])
