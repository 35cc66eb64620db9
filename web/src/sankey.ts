// Flows as bands from who asks to who serves: clients and files, processes, devices.

import { sankey, sankeyJustify, SankeyGraph, sankeyLinkHorizontal } from "d3-sankey";

import type { Link } from "./data";
import { isolated, pressable, s } from "./dom";
import { bytes } from "./format";
import type { Model } from "./model";
import { state, update } from "./state";
import { kindClass } from "./topology_draw";

/** All data of a kind between two actors; `a` stands to the left of `b`. */
interface Band { a: number; b: number; kind: string; there: number; back: number; known: boolean }
interface Knot { row: number }
type Edge = { source: number; target: number; value: number; band: Band };

/* Who comes before whom along the ways of data that the analysis found; else who gives more comes first. */
function votes(model: Model): Map<string, number> {
  const map = new Map<string, number>();
  const row = new Map(model.doc.actors.map((a, i) => [a.id, i]));
  for (const p of model.doc.topology.paths)
    p.actors.forEach((id, i) => {
      for (const later of p.actors.slice(i + 1)) {
        const key = `${row.get(id)} ${row.get(later)}`;
        map.set(key, (map.get(key) ?? 0) + 1 / p.actors.length);
      }
    });
  return map;
}

/* Left, middle or right, where that is given by what it is. */
function column(model: Model, row: number): number {
  const a = model.doc.actors[row];
  if (a.kind === "device") return 2;
  if (a.kind === "outside") return 0;
  if (a.kind === "storage") return a.bytes_out >= a.bytes_in ? 0 : 2;
  return a.role === "client" ? 0.5 : 1;
}

/* An order in which as much as possible goes forward: take sinks from the end and sources from the beginning, else
   who gives most more than it takes. */
function ordered(model: Model, rows: number[], forward: Map<string, number>): Map<number, number> {
  const left = new Set(rows), head: number[] = [], tail: number[] = [];
  const sum = (row: number, out: boolean): number => {
    let ret = 0;
    for (const other of left) ret += forward.get(out ? `${row} ${other}` : `${other} ${row}`) ?? 0;
    return ret;
  };
  while (left.size) {
    const sorted = [...left].map((row) => ({ row, out: sum(row, true), in: sum(row, false) }));
    const source = sorted.find((x) => x.in === 0), sink = sorted.find((x) => x.out === 0);
    const pick = source ?? sink ?? sorted.reduce((m, x) => (x.out - x.in > m.out - m.in ? x : m));
    (pick === sink && pick !== source ? tail : head).push(pick.row);
    left.delete(pick.row);
  }
  const all = [...head, ...tail.reverse()].sort((x, y) => column(model, x) - column(model, y));
  return new Map(all.map((row, i) => [row, i]));
}

function bandsOf(model: Model, links: Link[], amount: (l: Link) => number | undefined): { bands: Band[]; rows: number[] } {
  const rows = [...new Set(links.flatMap((l) => [l.from, l.to]))];
  const vote = votes(model), forward = new Map<string, number>();
  for (const l of links) {
    const ahead = vote.get(`${l.from} ${l.to}`) ?? 0, behind = vote.get(`${l.to} ${l.from}`) ?? 0;
    const key = behind > ahead ? `${l.to} ${l.from}` : `${l.from} ${l.to}`;
    forward.set(key, (forward.get(key) ?? 0) + (amount(l) ?? 1) + 1);
  }
  const at = ordered(model, rows, forward);
  const map = new Map<string, Band>();
  for (const l of links) {
    const there = (at.get(l.from) ?? 0) < (at.get(l.to) ?? 0);
    const [a, b] = there ? [l.from, l.to] : [l.to, l.from];
    const key = `${a} ${b} ${l.kind}`;
    let band = map.get(key);
    if (!band) map.set(key, band = { a, b, kind: l.kind, there: 0, back: 0, known: false });
    const n = amount(l);
    if (n !== undefined) { band.known = true; band[there ? "there" : "back"] += n; }
  }
  return { bands: [...map.values()], rows: rows.sort((x, y) => (at.get(x) ?? 0) - (at.get(y) ?? 0)) };
}

export function sankeyPicture(model: Model, links: Link[], amount: (l: Link) => number | undefined): SVGSVGElement {
  const { bands, rows } = bandsOf(model, links, amount);
  const most = Math.max(1, ...bands.map((b) => b.there + b.back));
  const index = new Map(rows.map((row, i) => [row, i]));
  const W = 1180, H = Math.min(1600, Math.max(260, rows.length * 26));
  const graph: SankeyGraph<Knot, Edge> = {
    nodes: rows.map((row) => ({ row })),
    // What is too small to be seen gets a line all the same.
    links: bands.map((band) => ({ source: index.get(band.a) ?? 0, target: index.get(band.b) ?? 0, value: Math.max(band.there + band.back, most / 150), band })),
  };
  const made = sankey<Knot, Edge>().nodeWidth(14).nodePadding(14).nodeAlign(sankeyJustify).extent([[180, 10], [W - 180, H - 10]])(graph);
  const svg = s("svg", { class: "picture sankey", viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": "Flows as bands; the table below has the same content" });
  const lines = s("g", { class: "bands" }), nodes = s("g");
  const path = sankeyLinkHorizontal<Knot, Edge>();
  for (const l of made.links) {
    const { band } = l, width = Math.max(1.5, l.width ?? 1), total = band.there + band.back || 1;
    const label = `${model.actorLabel(band.a)} \u2192 ${model.actorLabel(band.b)}: ${band.known ? bytes(band.there) : "amount not known"}; back: ${bytes(band.back)}; ${band.kind}`;
    const g = s("g", { class: `band ${kindClass(model, band.kind)}${band.known ? "" : " unknown"}`, "data-a": band.a, "data-b": band.b }, s("title", {}, label));
    const put = (share: number, offset: number, cls: string): void => {
      if (share <= 0) return;
      const y0 = l.y0, y1 = l.y1;
      l.y0 = (y0 ?? 0) + offset;
      l.y1 = (y1 ?? 0) + offset;
      g.append(s("path", { d: path(l) ?? "", class: cls, "stroke-width": Math.max(1.2, width * share) }));
      l.y0 = y0;
      l.y1 = y1;
    };
    const there = band.known ? band.there / total : 1;
    put(there, -width * (1 - there) / 2, "there");
    put(1 - there, width * there / 2, "back");
    lines.append(g);
  }
  for (const n of made.nodes) {
    const x0 = n.x0 ?? 0, x1 = n.x1 ?? 0, y0 = n.y0 ?? 0, y1 = n.y1 ?? 0, label = model.actorLabel(n.row), box = model.boxOfActor[n.row];
    const leftSide = x0 < W / 2;
    const g = s("g", { class: `knot${box.id === state.selected ? " selected" : ""}` }, s("title", {}, label),
      s("rect", { x: x0, y: y0, width: x1 - x0, height: Math.max(2, y1 - y0), rx: 2 }),
      s("text", { x: leftSide ? x0 - 6 : x1 + 6, y: (y0 + y1) / 2 + 4, "text-anchor": leftSide ? "end" : "start" }, isolated(label, 27)));
    pressable(g, label, () => update({ selected: box.id === state.selected ? "" : box.id }));
    nodes.append(g);
  }
  svg.append(lines, nodes);
  mark(svg, model);
  return svg;
}

/* With an actor selected, its bands stand out. */
function mark(svg: SVGSVGElement, model: Model): void {
  const row = model.boxes.get(state.selected)?.actor ?? -1;
  if (row < 0) return;
  for (const g of svg.querySelectorAll(".band"))
    g.classList.toggle("dim", g.getAttribute("data-a") !== String(row) && g.getAttribute("data-b") !== String(row));
}
