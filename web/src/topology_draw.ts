// Draws the boxes and the flows between them.

import type { Link } from "./data";
import { cutName, isolated, pressable, s } from "./dom";
import { bytes, percent, plural, time } from "./format";
import type { Box, Model } from "./model";
import { Layout, moreId, Placed, standIn } from "./topology_layout";

/** All flows of a kind between what is drawn for two ends. */
export interface Curve {
  from: Placed; to: Placed; kind: string; bytes: number; known: boolean; links: Link[]; path?: SVGPathElement; amount?: SVGTextElement;
}

export const CURVES_MAX = 150;
const AMOUNTS = 8; // of the largest flows

export function curvesOf(model: Model, l: Layout, links: Link[], amount: (x: Link) => number | undefined): Curve[] {
  const map = new Map<string, Curve>();
  for (const link of links) {
    const from = standIn(l, model.boxOfActor[link.from]), to = standIn(l, model.boxOfActor[link.to]);
    if (!from || !to || from === to) continue;
    const key = `${idOf(from)}\n${idOf(to)}\n${link.kind}`;
    let c = map.get(key);
    if (!c) map.set(key, c = { from, to, kind: link.kind, bytes: 0, known: false, links: [] });
    const n = amount(link);
    c.links.push(link);
    if (n !== undefined) { c.known = true; c.bytes += n; }
  }
  return [...map.values()].sort((a, b) => b.bytes - a.bytes);
}

export function idOf(p: Placed): string {
  return p.more ? moreId(p.box) : p.box.id;
}

const COLOURS: Record<string, number> = { tcp: 0, pipe: 1, fifo: 1, rdma: 2, unix: 3, shared_memory: 4, udp: 5, device: 6, storage: 7 };

/** One of eight colours, the same for a kind in every view and on every page. */
export function kindColour(kind: string): number {
  return COLOURS[kind] ?? [...kind].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 8;
}

export function kindClass(kind: string): string {
  return "kind-" + kindColour(kind);
}

/* Where the line from the middle of a box to a point leaves the box. */
function edgeOf(p: Placed, tx: number, ty: number): [number, number] {
  const cx = p.x + p.w / 2, cy = p.y + p.h / 2, dx = tx - cx, dy = ty - cy;
  const scale = Math.min(dx ? p.w / 2 / Math.abs(dx) : Infinity, dy ? p.h / 2 / Math.abs(dy) : Infinity, 1);
  return [cx + dx * scale, cy + dy * scale];
}

interface Path { d: string; at: (t: number) => [number, number] }

function curvePath(a: Placed, b: Placed): Path {
  const ax = a.x + a.w / 2, ay = a.y + a.h / 2, bx = b.x + b.w / 2, by = b.y + b.h / 2;
  const length = Math.hypot(bx - ax, by - ay) || 1, bow = Math.min(60, length * 0.16);
  // To the right of the way, so that both directions lie beside each other.
  const mx = (ax + bx) / 2 - ((by - ay) / length) * bow, my = (ay + by) / 2 + ((bx - ax) / length) * bow;
  const [x0, y0] = edgeOf(a, mx, my), [x1, y1] = edgeOf(b, mx, my);
  const n = (v: number): string => v.toFixed(1);
  const at = (t: number): [number, number] => {
    const u = 1 - t;
    return [u * u * x0 + 2 * u * t * mx + t * t * x1, u * u * y0 + 2 * u * t * my + t * t * y1];
  };
  return { d: `M${n(x0)} ${n(y0)}Q${n(mx)} ${n(my)} ${n(x1)} ${n(y1)}`, at };
}

type Point = [x: number, y: number];

/* From the middle of a curve to its ends. */
const PLACES = [...Array(10).keys()].flatMap((k) => [0.5 - 0.045 * k, 0.5 + 0.045 * k]);
const AMOUNT_W = 52, AMOUNT_H = 18, HEADING = 22; // of an open box, whose name stands at its top

/* A place for the amount on the curve where it hides no name and no other amount; undefined: there is none. */
function freePlace(path: Path, closed: Placed[], taken: Point[]): Point | undefined {
  const covers = (p: Placed, [x, y]: Point): boolean => x > p.x - 24 && x < p.x + p.w + 24 && y > p.y - 2 && y < p.y + p.h + 12;
  const hides = ([ax, ay]: Point, [x, y]: Point): boolean => Math.abs(ax - x) < AMOUNT_W && Math.abs(ay - y) < AMOUNT_H;
  const places = PLACES.map((t) => path.at(t));
  /* If there is no room but between two boxes: over their edges, where no text stands. */
  const inside = (p: Placed, [x, y]: Point): boolean => x > p.x - 18 && x < p.x + p.w + 6 && y > p.y && y < p.y + p.h + 4;
  const free = (hit: (p: Placed, at: Point) => boolean): Point | undefined => places.find((at) => !closed.some((p) => hit(p, at)) && !taken.some((o) => hides(o, at)));
  return free(covers) ?? free(inside);
}

/* A process and its device at different nodes: what people look for. */
function isAway(model: Model, c: Curve): boolean {
  return c.kind === "device" && c.links.some((l) => {
    const { actors } = model.doc;
    return actors[l.to].kind === "device" ? !!model.isAway(l.from, actors[l.to]) : actors[l.from].kind === "device" && !!model.isAway(l.to, actors[l.from]);
  });
}

/** @return the curves, which belong below closed boxes, and the amounts of the largest, which belong above */
export function drawCurves(model: Model, l: Layout, curves: Curve[], shown: number, press: (c: Curve) => void): [SVGGElement, SVGGElement] {
  const g = s("g", { class: "curves" }), amounts = s("g", { class: "amounts", "aria-hidden": "true" });
  const known = curves.filter((c) => c.known && c.bytes > 0);
  const most = known[0]?.bytes ?? 1, closed = l.all.map((p) => (p.open ? { ...p, h: HEADING } : p)), taken: Point[] = [], paths = new Map<Curve, Path>();
  // The widest last, on top of the others.
  curves.slice(0, shown).reverse().forEach((c) => {
    const share = Math.sqrt(c.bytes / most), away = isAway(model, c);
    const path = curvePath(c.from, c.to), width = away ? 2.2 : 1.2 + 6.5 * share;
    paths.set(c, path);
    const label = `${c.from.box.label} \u2192 ${c.to.box.label}: ${c.known ? bytes(c.bytes) : "amount not known"} by ${c.kind}` +
      (c.links.length > 1 ? `, ${plural(c.links.length, "flow")}` : "") + (away ? "; it runs on another node than this device" : "");
    c.path = s("path", { d: path.d, class: `curve ${kindClass(c.kind)}${c.known ? "" : " unknown"}${away ? " away" : ""}`, "stroke-width": width.toFixed(2),
      "marker-end": width > 4 ? "url(#arrow-wide)" : "url(#arrow)", click: (e) => { e.stopPropagation(); press(c); } }, s("title", {}, label));
    g.append(c.path);
  });
  // The largest has the first choice.
  for (const c of known.slice(0, AMOUNTS)) {
    const at = c.bytes < most / 50 ? undefined : freePlace(paths.get(c) ?? curvePath(c.from, c.to), closed, taken);
    if (!at) continue;
    taken.push(at);
    amounts.append(c.amount = s("text", { x: at[0], y: at[1], class: "amount", "text-anchor": "middle" }, bytes(c.bytes)));
  }
  return [g, amounts];
}

/* What is wrong with where a process runs, in few words. */
function misplaced(model: Model, box: Box): string {
  const a = box.kind === "process" ? model.doc.actors[box.actor] : undefined;
  if (!a || a.stands_for) return "";
  const device = model.devicesOf(box.actor).find((d) => model.isAway(box.actor, d));
  if (device) return `${device.label ?? "device"} at node ${device.near}`;
  const runs = a.place?.cpu[0]?.[0], has = a.place?.memory[0]?.[0];
  return runs !== undefined && has !== undefined && runs !== has && (a.place?.remote ?? 0) > 0.5 && (a.group !== undefined || box.hot >= 3) ? `memory at node ${has}` : "";
}

/* Second line of a box: what is known of it in few words. */
function subtitle(model: Model, box: Box): string {
  const a = model.actorOf(box), t = model.doc.threads[box.thread];
  if (t) return `${percent(model.share(t, t.run_ns))} running`;
  if (a?.kind === "device") return [a.fields?.model ?? a.type, a.users?.length ? "" : "no user"].filter(Boolean).join(", ");
  if (a && a.kind !== "process") return a.bytes_in + a.bytes_out ? `in ${bytes(a.bytes_in)}, out ${bytes(a.bytes_out)}` : "";
  if (a) {
    const cpu = a.cpu_ns === undefined ? "" : `cpu ${time(a.cpu_ns)}`;
    const wrong = misplaced(model, box);
    if (wrong) return [a.rank === undefined ? "" : model.rankLabel(a), wrong].filter(Boolean).join(", ");
    return [a.role === "worker rank" ? model.rankLabel(a) : a.role, cpu].filter(Boolean).join(", ");
  }
  return inside(model, box);
}

function inside(model: Model, box: Box): string {
  let processes = 0, devices = 0, ends = 0;
  const walk = (b: Box): void => {
    const n = model.actorOf(b)?.stands_for ?? 1;
    if (b.kind === "process") processes += n;
    else if (b.kind === "device") devices += n;
    else if (b.kind === "outside" || b.kind === "storage") ends += n;
    b.children.forEach(walk);
  };
  walk(box);
  return [processes && plural(processes, "process", "processes"), devices && plural(devices, "device"),
    ends && (box.id === "outside" ? plural(ends, "address", "addresses") : plural(ends, "file system"))].filter(Boolean).join(", ") || "nothing in it";
}

function heading(model: Model, box: Box): string {
  return box.kind === "process" ? box.label : `${box.label}  (${inside(model, box)})`;
}

function drawBox(model: Model, p: Placed, select: (p: Placed) => void, toggle: (p: Placed) => void): SVGGElement {
  const { box } = p;
  // What stands for those left out is as grave as the gravest of them, not as the box around it.
  const hot = p.more ? Math.max(0, ...box.children.slice(-p.more).map((c) => c.hot)) : box.hot;
  const g = s("g", { class: `box ${box.kind}${p.open ? " open" : ""}${p.more ? " more" : ""} hot-${hot}`, "data-id": idOf(p), transform: `translate(${p.x} ${p.y})` },
    s("title", {}, p.more ? `${p.more} more, less important: press to show them` : `${box.kind} ${box.label}`),
    s("rect", { width: p.w, height: p.h, rx: p.open ? 8 : 5 }));
  const taken = p.open || box.children.length || box.hot >= 3 ? 38 : 18, room = Math.floor((p.w - taken) / (p.open ? 8.6 : 7.4));
  if (p.more) {
    g.append(s("text", { x: 10, y: 20 }, `+ ${p.more} more`));
  } else if (p.open) {
    g.append(s("text", { x: 10, y: 18, class: "strong" }, isolated(heading(model, box), room)));
  } else {
    const two = p.h >= 40 ? subtitle(model, box) : "";
    g.append(s("text", { x: 8, y: two ? 19 : p.h / 2 + 4, class: "strong" }, isolated(cutName(box.label, room), room)));
    if (two) g.append(s("text", { x: 8, y: 36, class: misplaced(model, box) ? "sub wrong" : "sub" }, isolated(two, Math.floor((p.w - 16) / 5.9))));
  }
  if (box.hot >= 3 && !p.more && !p.open) g.append(s("path", { d: `M${p.w - 11} 4l7 12h-14z`, class: "warn" }));
  pressable(g, `${p.more ? "" : box.kind}${p.open ? ", open" : ""}`, (e) => { e.stopPropagation(); select(p); });
  if (box.children.length && !p.more) {
    const b = s("g", { class: "toggle", transform: `translate(${p.w - 15} ${p.open ? 14 : p.h - 11})` },
      s("circle", { r: 7.5 }), s("path", { d: p.open ? "M-4 0h8" : "M-4 0h8M0 -4v8" }), s("title", {}, p.open ? "close" : `open: ${plural(box.children.length, "item")}`));
    b.addEventListener("click", (e) => { e.stopPropagation(); toggle(p); });
    g.append(b);
    g.addEventListener("dblclick", (e) => { e.stopPropagation(); toggle(p); });
  }
  return g;
}

/** Open boxes lie below the curves, closed ones above. */
export function drawBoxes(model: Model, l: Layout, select: (p: Placed) => void, toggle: (p: Placed) => void): [SVGGElement, SVGGElement] {
  const below = s("g", { class: "boxes" }), above = s("g", { class: "boxes" });
  for (const p of l.all) (p.open ? below : above).append(drawBox(model, p, select, toggle));
  return [below, above];
}
