"""Reads each format back by a parser that is not ours: boxes, links and groups, all in one form.

A box is (id, [lines]); a link is (from, to, label); a group is (label, ids of the boxes right within).
"""
import html
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET

import networkx

HERE = os.path.dirname(os.path.abspath(__file__))


class Drawing:
    def __init__(self):
        self.boxes, self.links, self.groups = {}, [], []

    def texts(self):
        """Lines of all boxes, sorted."""
        return sorted(self.boxes.values())


def run(*args):
    done = subprocess.run(args, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, f"{args[0]} refuses {args[-1]}: {done.stderr.decode(errors='replace')[:300]}"
    return done.stdout


def dot_text(s):
    """What Graphviz draws for the value of a label, by lines."""
    lines, line, at = [], "", 0
    while at < len(s):
        if s[at] == "\\" and at + 1 < len(s):
            at += 1
            if s[at] in "nlr":
                lines.append(line)
                line = ""
            else:
                assert s[at] == "\\" or s[at] == '"', f"escape of a name: {s}"
                line += s[at]
        else:
            line += s[at]
        at += 1
    return [html.unescape(x) for x in [*lines, line]]


def read_dot(path):
    """By Graphviz."""
    d, data = Drawing(), json.loads(run("dot", "-Tdot_json", path), strict=False)
    objects = {o["_gvid"]: o for o in data.get("objects", [])}
    inner = set()
    for o in objects.values():
        inner |= {(o["name"], s) for s in o.get("subgraphs", [])}
    for o in objects.values():
        if not o["name"].startswith("cluster_"):
            d.boxes[o["name"]] = dot_text(o["label"])
    for o in objects.values():
        if o["name"].startswith("cluster_"):
            below = {n for s in o.get("subgraphs", []) for n in objects[s].get("nodes", [])}
            own = [objects[n]["name"] for n in o.get("nodes", []) if n not in below]
            d.groups.append((dot_text(o["label"])[0], sorted(own)))
    for e in data.get("edges", []):
        starts = e["kind"] == "starts"
        d.links.append((objects[e["tail"]]["name"], objects[e["head"]]["name"],
                        "starts" if starts else dot_text(e["label"])[0]))
    return d


def read_svg(path):
    """By an XML parser: what Graphviz drew."""
    run("xmllint", "--noout", "--nonet", path)
    d, ns = Drawing(), {"s": "http://www.w3.org/2000/svg"}
    root = ET.parse(path).getroot()
    for e in root.iter():
        tag = e.tag.split("}")[1] if "}" in e.tag else e.tag
        assert tag in ("svg", "g", "title", "text", "polygon", "path", "ellipse", "polyline", "a"), f"<{tag}> in a picture"
        assert not any(a.startswith("on") for a in e.attrib), f"a handler in <{tag}>"
    for g in root.iter("{http://www.w3.org/2000/svg}g"):
        name = (g.findtext("s:title", "", ns) or "").strip()
        texts = ["".join(t.itertext()) for t in g.findall(".//s:text", ns)]
        if g.get("class") == "node":
            d.boxes[name] = texts
        elif g.get("class") == "edge":
            a, b = name.split("->")
            d.links.append((a, b, texts[0] if texts else "starts"))
        elif g.get("class") == "cluster":
            d.groups.append((texts[0] if texts else "", None))
    return d


def read_mermaid(path):
    """By Mermaid."""
    d = Drawing()
    data = json.loads(run("node", os.path.join(HERE, "mermaid_parse.mjs"), path))
    for v in data["vertices"]:
        d.boxes[v["id"]] = v["text"]
    for e in data["edges"]:
        d.links.append((e["from"], e["to"], e["text"][0] or "starts"))
    for g in data["subgraphs"]:
        d.groups.append((g["text"][0], sorted(n for n in g["nodes"] if n[0] == "n")))
    return d


def inside(boxes, inner, outer):
    return (0 <= boxes[inner][0] and 0 <= boxes[inner][1] and
            boxes[inner][0] + boxes[inner][2] <= boxes[outer][2] and
            boxes[inner][1] + boxes[inner][3] <= boxes[outer][3])


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def read_drawio(path):
    """By an XML parser, with the rules of mxGraph: ids are unique, parents and ends are there."""
    run("xmllint", "--noout", "--nonet", path)
    d, root = Drawing(), ET.parse(path).getroot()
    assert root.tag == "mxfile" and [c.tag for c in root] == ["diagram"], "no mxfile with a diagram"
    cells, places, parents, members = {}, {}, {}, {}
    for item in root.find("diagram/mxGraphModel/root"):
        cell = item if item.tag == "mxCell" else item.find("mxCell")
        name = item.get("id")
        assert name and name not in cells, f"id {name} twice"
        cells[name] = (item, cell)
        parents[name] = cell.get("parent")
        assert name == "0" or parents[name] in cells, f"{name} lies in {parents[name]}, which comes later"
        assert "html=1" not in (cell.get("style") or ""), "a label would be read as HTML"
    for name, (item, cell) in cells.items():
        label = item.get("label") or ""
        if cell.get("vertex"):
            g = cell.find("mxGeometry")
            assert g.get("as") == "geometry"
            places[name] = [float(g.get(k)) for k in ("x", "y", "width", "height")]
        if name[0] == "n" and name != "note":
            d.boxes[name] = label.split("\n")
            members.setdefault(parents[name], []).append(name)
        elif cell.get("edge"):
            ends = cell.get("source"), cell.get("target")
            assert all(e in cells for e in ends), f"edge {name} without an end"
            d.links.append((*ends, label or item.get("kind")))
        elif name[0] == "g":
            d.groups.append((label, name))
    d.groups = [(label, sorted(members.get(name, []))) for label, name in d.groups]
    for name in places:
        if parents[name] in places:
            assert inside(places, name, parents[name]), f"{name} sticks out of {parents[name]}"
        for other in places:
            if name < other and parents[name] == parents[other] and "note" not in (name, other):
                assert not overlap(places[name], places[other]), f"{name} lies over {other}"
    return d


def from_networkx(g):
    d = Drawing()
    for name, data in g.nodes(data=True):
        d.boxes[name] = [data["label"], *([data["detail"]] if data.get("detail") else [])]
    for a, b, data in g.edges(data=True):
        d.links.append((a, b, data["label"]))
    groups = {}
    for name, data in g.nodes(data=True):
        for kind in ("ranks", "container", "host"):
            if data.get(kind) is not None:
                groups.setdefault((data.get("host"), data.get("container"), data.get("ranks"), kind), []).append(name)
                break
    d.groups = groups
    return d


def read_gexf(path):
    """By networkx, and the rules of the schema of 1.2: what is required, of which kind, in which order."""
    run("xmllint", "--noout", "--nonet", path)
    ns = "{http://www.gexf.net/1.2draft}"
    root = ET.parse(path).getroot()
    assert root.tag == ns + "gexf" and root.get("version") == "1.2"
    assert [c.tag for c in root] == [ns + "meta", ns + "graph"]
    g = root.find(ns + "graph")
    assert [c.tag for c in g] == [ns + t for t in ("attributes", "attributes", "nodes", "edges")]
    kinds = {"string": str, "long": int, "double": float}
    for block, items in (("node", "nodes"), ("edge", "edges")):
        types = {a.get("id"): kinds[a.get("type")] for b in g.findall(ns + "attributes")
                 if b.get("class") == block for a in b}
        for item in g.find(ns + items):
            assert item.get("id") and item.get("label") is not None
            for value in item.iter(ns + "attvalue"):
                types[value.get("for")](value.get("value"))
    return from_networkx(networkx.read_gexf(path))


def read_graphml(path):
    """By networkx."""
    run("xmllint", "--noout", "--nonet", path)
    return from_networkx(networkx.read_graphml(path, force_multigraph=True))


READERS = {"dot": read_dot, "svg": read_svg, "mmd": read_mermaid, "drawio": read_drawio, "gexf": read_gexf,
           "graphml": read_graphml}
LINE = re.compile(r"^((?:[^;\n]+;)+)([^;\n]+) (\d+)$")


def read_folded(path):
    """By the grammar that flamegraph.pl has: frames between semicolons, a count behind the last blank."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            match = LINE.match(line.rstrip("\n"))
            assert match, f"no stack: {line!r}"
            yield [*match.group(1)[:-1].split(";"), match.group(2)], int(match.group(3))
