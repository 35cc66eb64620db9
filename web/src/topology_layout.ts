// Where the boxes of the topology lie: nested, in rows, each as large as what is open in it.

import { FEW, type Box, type Model } from "./model";

export interface Placed {
  box: Box;
  x: number; y: number; w: number; h: number;
  open: boolean;
  more: number;       // 0: the box itself; else it stands for so many of its children
  children: Placed[];
}

export interface Layout { all: Placed[]; top: Placed[]; w: number; h: number; of: Map<string, Placed> }

const HEADER = 26, PAD = 10;
const MANY = 400;
const SIZE: Partial<Record<Box["kind"], [number, number]>> = {
  thread: [150, 30], device: [132, 44], outside: [170, 34], storage: [170, 34], numa: [200, 60], ends: [170, 44], host: [220, 60],
};

/** Open in the first view: all that holds processes, as long as that is not too much. */
function opensByItself(model: Model, box: Box): boolean {
  if (box.kind === "process" || box.kind === "thread" || box.kind === "device") return false;
  if (!box.children.length) return false;
  return box.kind !== "host" || model.root.children.filter((b) => b.kind === "host").indexOf(box) < 4;
}

export function isOpen(model: Model, box: Box, toggled: Set<string>): boolean {
  return box.children.length > 0 && opensByItself(model, box) !== toggled.has(box.id);
}

/* Each kind has room of its own, in the order of the kinds; a machine has all its nodes. */
export function isShown(child: Box, i: number, most: number): boolean {
  if (child.kind === "numa" || child.kind === "ends" || i < most) return true;
  const before = child.parent?.children.findIndex((c) => c.kind === child.kind) ?? 0;
  return i - before < most;
}

export const moreId = (box: Box): string => box.id + "#more";

function place(model: Model, box: Box, toggled: Set<string>, wanted: (b: Box) => boolean): Placed {
  const open = isOpen(model, box, toggled);
  const placed: Placed = { box, x: 0, y: 0, w: 0, h: 0, open, more: 0, children: [] };
  if (!open) {
    [placed.w, placed.h] = SIZE[box.kind] ?? [184, 48];
    return placed;
  }
  const children = box.children.filter(wanted);
  const most = toggled.has(moreId(box)) ? MANY : FEW;
  const shown = children.filter((c, i) => isShown(c, i, most));
  placed.children = shown.map((c) => place(model, c, toggled, wanted));
  if (shown.length < children.length)
    placed.children.push({ box, x: 0, y: 0, w: 184, h: 30, open: false, more: children.length - shown.length, children: [] });
  pack(placed);
  return placed;
}

const WANTED = 1.9; // width to height: that of the space for the picture

/* Rows from left to right up to a width; devices have a row of their own, at the top. @return height */
function rows(p: Placed, limit: number, gap: number, between: number): [number, number] {
  let x = PAD, y = HEADER + PAD, row = 0, right = 0, last = "";
  for (const c of p.children) {
    const newKind = last === "device" && c.box.kind !== "device";
    if (x > PAD && (x + c.w > limit + PAD || newKind)) {
      x = PAD;
      y += row + (last === "device" && newKind ? gap : between);
      row = 0;
    }
    c.x = x;
    c.y = y;
    x += c.w + gap;
    row = Math.max(row, c.h);
    right = Math.max(right, x - gap);
    last = c.box.kind;
  }
  return [Math.max(right + PAD, 150), y + row + PAD];
}

/* The width at which the box comes nearest to the shape that is wanted. */
function pack(p: Placed): void {
  // Room for the curves between processes, which go along the gaps.
  const busy = p.box.kind === "numa" || p.box.kind === "container", gap = p.box.kind === "host" ? 34 : busy ? 40 : 14;
  const between = p.box.kind === "host" ? 34 : busy ? 30 : 12;
  const widest = Math.max(0, ...p.children.map((c) => c.w));
  const all = p.children.reduce((sum, c) => sum + c.w + gap, 0);
  const wanted = p.box.kind === "host" ? WANTED : p.box.id === "outside" ? 0.3 : 1.4;
  let best = Infinity, width = widest;
  for (let limit = widest; ; limit += Math.max(40, widest / 4)) {
    const [w, hgt] = rows(p, limit, gap, between);
    const badness = Math.abs(Math.log(w / hgt / wanted)) + (w * hgt) / 4e7;
    if (badness < best) { best = badness; width = limit; }
    if (limit > all) break;
  }
  [p.w, p.h] = rows(p, width, gap, between);
  // A heading that is cut off tells nothing.
  p.w = Math.max(p.w, Math.min(p.box.label.length + 20, 38) * 8 + 38);
}

function absolute(p: Placed, x: number, y: number, out: Layout): void {
  p.x += x;
  p.y += y;
  out.all.push(p);
  out.of.set(p.more ? moreId(p.box) : p.box.id, p);
  for (const c of p.children) absolute(c, p.x, p.y, out);
}

/** @param wanted boxes that the filters leave; boxes around them are wanted too */
export function layout(model: Model, toggled: Set<string>, wanted: (b: Box) => boolean): Layout {
  const out: Layout = { all: [], top: [], w: 0, h: 0, of: new Map() };
  const roots = model.root.children.filter(wanted).map((b) => place(model, b, toggled, wanted));
  // What is outside stands to the left of the hosts, which follow one below the other.
  const ends = roots.filter((p) => p.box.kind === "ends"), hosts = roots.filter((p) => p.box.kind !== "ends");
  let y = 0, left = 0;
  for (const p of ends) {
    absolute(p, 0, y, out);
    y += p.h + 40;
    left = Math.max(left, p.w + 90);
  }
  out.h = y;
  const perRow = hosts.length > 3 ? Math.ceil(Math.sqrt(hosts.length)) : 1;
  let row = 0, x = left;
  y = 0;
  hosts.forEach((p, i) => {
    if (i && i % perRow === 0) { y += row + 40; x = left; row = 0; }
    absolute(p, x, y, out);
    x += p.w + 40;
    row = Math.max(row, p.h);
    out.w = Math.max(out.w, p.x + p.w);
    out.h = Math.max(out.h, p.y + p.h);
  });
  out.w = Math.max(out.w, left);
  out.top = roots;
  return out;
}

/** What is drawn in place of a box: itself, the closed one around it, or what stands for those left out. */
export function standIn(l: Layout, box: Box): Placed | undefined {
  let below: Box | null = null;
  for (let b: Box | null = box; b; below = b, b = b.parent) {
    const p = l.of.get(b.id);
    if (!p) continue;
    return p.open && below ? l.of.get(moreId(b)) : p;
  }
  return undefined;
}
