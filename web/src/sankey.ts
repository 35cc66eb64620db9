// Flows as bands from who asks to who serves: clients and files, processes, devices.

import { sankey, sankeyJustify, SankeyGraph, sankeyLinkHorizontal } from "d3-sankey";

import type { Link } from "./data";
import { isolated, pressable, s } from "./dom";
import { bytes } from "./format";
import type { Model } from "./model";
import { state, update } from "./state";
import { kindClass } from "./topology_draw";

/** One end of bands: an actor, or several of the same program that are too many to be told apart. */
interface End { key: string; row: number; label: string; count: number }
/** All data of a kind between two ends; `a` stands to the left of `b`. */
interface Band { a: End; b: End; kind: string; there: number; back: number; known: boolean }
type Edge = { source: number; target: number; value: number; band: Band };

export interface SankeyOptions {
  links: Link[]; amount: (l: Link) => number | undefined;
  most: number;     // bands
  selected: number; // row of the actor whose bands are all there, -1
}

const ALIKE = 3; // so many of one program are drawn one by one
const PAIRS_APART = 6; // of one program, which give each other much

/* Their name where it is the same; in that of the program digits are one. */
function nameOf(model: Model, rows: Set<number>): string {
  const [first] = rows, names = new Set([...rows].map((r) => model.doc.actors[r].name ?? ""));
  const [own] = names;
  return names.size === 1 && own && own !== "python3" && own !== "python" ? own : model.doc.actors[first].program ?? own;
}

/* Of those that would be one: who exchange as much as what is drawn, which as a band from and to one end is not. */
function apart(o: SankeyOptions, key: (row: number) => string): Set<number> {
  const pairs = new Map<string, { link: Link; n: number }>();
  let most = 0;
  for (const link of o.links) {
    const n = o.amount(link) ?? 0, id = `${Math.min(link.from, link.to)} ${Math.max(link.from, link.to)}`;
    most = Math.max(most, n);
    if (key(link.from) === key(link.to)) pairs.set(id, { link, n: n + (pairs.get(id)?.n ?? 0) });
  }
  const large = [...pairs.values()].filter((p) => p.n > most / 20).sort((x, y) => y.n - x.n).slice(0, PAIRS_APART);
  return new Set(large.flatMap((p) => [p.link.from, p.link.to]));
}

/* Ranks, the selected one and who exchange much with their like keep their own bands. */
function endsOf(model: Model, o: SankeyOptions): (row: number) => End {
  const program = (row: number): string => {
    const a = model.doc.actors[row];
    return a.kind !== "process" || a.group !== undefined || row === o.selected || !a.program ? `row ${row}` : `${a.ns} ${a.container ?? ""} ${a.program}`;
  };
  const alone = apart(o, program);
  const key = (row: number): string => (alone.has(row) ? `row ${row}` : program(row));
  const members = new Map<string, Set<number>>();
  for (const l of o.links)
    for (const row of [l.from, l.to]) {
      const k = key(row);
      if (!members.has(k)) members.set(k, new Set());
      members.get(k)?.add(row);
    }
  const ends = new Map<string, End>();
  return (row) => {
    const list = members.get(key(row)), several = list && list.size > ALIKE;
    const k = several ? key(row) : `row ${row}`;
    let end = ends.get(k);
    if (!end) {
      const n = several ? [...list].reduce((sum, r) => sum + (model.doc.actors[r].stands_for ?? 1), 0) : 1;
      ends.set(k, end = { key: k, row, count: n, label: several ? `${n} \u00d7 ${nameOf(model, list)} together` : model.actorLabel(row) });
    }
    return end;
  };
}

/* Who asks comes before who serves, and who is on the way of data before who is behind; else who gives more. */
function votes(model: Model, links: Link[]): Map<string, number> {
  const map = new Map<string, number>();
  for (const l of links)
    if (l.asks !== undefined) map.set(l.asks ? `${l.from} ${l.to}` : `${l.to} ${l.from}`, 2);
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
function ordered(model: Model, ends: End[], forward: Map<string, number>): Map<End, number> {
  const left = new Set(ends), head: End[] = [], tail: End[] = [];
  const sum = (end: End, out: boolean): number => {
    let ret = 0;
    for (const other of left) ret += forward.get(out ? `${end.key}\n${other.key}` : `${other.key}\n${end.key}`) ?? 0;
    return ret;
  };
  while (left.size) {
    const sorted = [...left].map((end) => ({ end, out: sum(end, true), in: sum(end, false) }));
    const source = sorted.find((x) => x.in === 0), sink = sorted.find((x) => x.out === 0);
    const pick = source ?? sink ?? sorted.reduce((m, x) => (x.out - x.in > m.out - m.in ? x : m));
    (pick === sink && pick !== source ? tail : head).push(pick.end);
    left.delete(pick.end);
  }
  const all = [...head, ...tail.reverse()].sort((x, y) => column(model, x.row) - column(model, y.row));
  return new Map(all.map((end, i) => [end, i]));
}

interface Pair { x: End; y: End; kind: string; xy: number; yx: number; known: boolean; own: boolean }

/* The largest, each pair of ends and kind once. */
function pairsOf(model: Model, o: SankeyOptions): Pair[] {
  const endOf = endsOf(model, o), map = new Map<string, Pair>();
  for (const l of o.links) {
    let x = endOf(l.from), y = endOf(l.to);
    if (x === y) continue;
    const there = x.key < y.key;
    if (!there) [x, y] = [y, x];
    const key = `${x.key}\n${y.key}\n${l.kind}`;
    let p = map.get(key);
    if (!p) map.set(key, p = { x, y, kind: l.kind, xy: 0, yx: 0, known: false, own: false });
    const n = o.amount(l);
    p.own ||= l.from === o.selected || l.to === o.selected;
    if (n !== undefined) { p.known = true; p[there ? "xy" : "yx"] += n; }
  }
  const sorted = [...map.values()].sort((a, b) => b.xy + b.yx - a.xy - a.yx);
  return sorted.filter((p, i) => i < o.most || p.own).slice(0, o.most * 2);
}

function bandsOf(model: Model, o: SankeyOptions): { bands: Band[]; ends: End[] } {
  const pairs = pairsOf(model, o), ends = [...new Set(pairs.flatMap((p) => [p.x, p.y]))];
  const forward = new Map<string, number>();
  const vote = votes(model, o.links), at = (a: End, b: End): number => vote.get(`${a.row} ${b.row}`) ?? 0;
  for (const p of pairs) {
    const ahead = at(p.x, p.y), behind = at(p.y, p.x);
    const first = ahead === behind ? p.xy >= p.yx : ahead > behind;
    const key = first ? `${p.x.key}\n${p.y.key}` : `${p.y.key}\n${p.x.key}`;
    forward.set(key, (forward.get(key) ?? 0) + p.xy + p.yx + 1);
  }
  const place = ordered(model, ends, forward), n = (e: End): number => place.get(e) ?? 0;
  const bands = pairs.map((p): Band => n(p.x) < n(p.y) ? { a: p.x, b: p.y, kind: p.kind, there: p.xy, back: p.yx, known: p.known }
    : { a: p.y, b: p.x, kind: p.kind, there: p.yx, back: p.xy, known: p.known });
  return { bands, ends: ends.sort((x, y) => n(x) - n(y)) };
}

export function sankeyPicture(model: Model, o: SankeyOptions): SVGSVGElement {
  const { bands, ends } = bandsOf(model, o);
  const most = Math.max(1, ...bands.map((b) => b.there + b.back));
  const index = new Map(ends.map((e, i) => [e, i]));
  const W = 1180, H = Math.min(1400, Math.max(220, ends.length * 30));
  const graph: SankeyGraph<End, Edge> = {
    nodes: ends.map((e) => ({ ...e })),
    // What is too small to be seen gets a line all the same.
    links: bands.map((band) => ({ source: index.get(band.a) ?? 0, target: index.get(band.b) ?? 0, value: Math.max(band.there + band.back, most / 150), band })),
  };
  const made = sankey<End, Edge>().nodeWidth(14).nodePadding(16).nodeAlign(sankeyJustify).extent([[230, 10], [W - 230, H - 10]])(graph);
  const svg = s("svg", { class: "picture sankey", viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": "Flows as bands; the table below has the same content" });
  const lines = s("g", { class: "bands" }), amounts = s("g", { "aria-hidden": "true" }), nodes = s("g");
  const path = sankeyLinkHorizontal<End, Edge>();
  for (const l of made.links) {
    const { band } = l, width = Math.max(1.5, l.width ?? 1), total = band.there + band.back || 1;
    const label = `${band.a.label} \u2192 ${band.b.label}: ${band.known ? bytes(band.there) : "amount not known"}` +
      `${band.back ? `, back ${bytes(band.back)}` : ""}; ${band.kind}`;
    const g = s("g", { class: `band ${kindClass(band.kind)}${band.known ? "" : " unknown"}`, "data-kind": band.kind, "data-a": band.a.row, "data-b": band.b.row }, s("title", {}, label));
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
    if (width > 15 && band.known) {
      const text = band.there >= band.back ? `${bytes(band.there)} \u2192` : `\u2190 ${bytes(band.back)}`;
      amounts.append(s("text", { x: ((l.source as { x1?: number }).x1 ?? 0) + 8, y: (l.y0 ?? 0) + (width > 40 ? 15 - width / 2 : 4), class: "amount" }, text));
    }
    lines.append(g);
  }
  for (const n of made.nodes) {
    const x0 = n.x0 ?? 0, x1 = n.x1 ?? 0, y0 = n.y0 ?? 0, y1 = n.y1 ?? 0, box = model.boxOfActor[n.row];
    const first = !n.targetLinks?.length;
    const g = s("g", { class: `knot${box.id === state.selected ? " selected" : ""}` }, s("title", {}, n.label),
      s("rect", { x: x0, y: y0, width: x1 - x0, height: Math.max(2, y1 - y0), rx: 2 }),
      s("text", { x: first ? x0 - 6 : x1 + 6, y: (y0 + y1) / 2 + 4, "text-anchor": first ? "end" : "start" }, isolated(n.label, 34)));
    pressable(g, model.doc.actors[n.row].kind, () => update({ selected: box.id === state.selected ? "" : box.id }));
    nodes.append(g);
  }
  svg.append(lines, amounts, nodes);
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
