// What happened when: CPU, flows, waits and devices over the window, with an interval that filters the other views.

import type { Gauge, Link, Series } from "./data";
import { clear, h, isolated, name, s } from "./dom";
import { count, percent, rate, time as duration } from "./format";
import type { ViewPart } from "./main";
import { IDLE, type Model } from "./model";
import { state, update } from "./state";
import { kindColour } from "./topology_draw";

type Brush = [number, number] | null;

function sumIn(values: number[], brush: Brush): number {
  return values.slice(brush ? brush[0] : 0, brush ? brush[1] + 1 : undefined).reduce((a, v) => a + v, 0);
}

/** Shares of a thread's time within the chosen interval; undefined: none is chosen, or its series is not known. */
export function threadIn(model: Model, row: number, brush: Brush): { run: number; runq: number; blocked: number } | undefined {
  const series = brush ? model.doc.time?.threads[row] : undefined;
  if (!series || !brush || !model.doc.time) return undefined;
  const us = (model.doc.time.ends_ns[brush[1]] - model.doc.time.starts_ns[brush[0]]) / 1e3 || 1;
  const [run, runq, blocked] = series.map((v) => sumIn(v, brush) / us);
  return { run, runq, blocked };
}

const shares = new WeakMap<Model, Map<string, number[]>>();

function seriesOf(model: Model, l: Link): number[] | undefined {
  let map = shares.get(model);
  if (!map) {
    map = new Map();
    for (const x of model.doc.time?.sent ?? []) map.set(`from ${x.row} ${x.name}`, x.values);
    for (const x of model.doc.time?.read ?? []) map.set(`to ${x.row} storage`, x.values);
    shares.set(model, map);
  }
  return map.get(`from ${l.from} ${l.kind}`) ?? map.get(`to ${l.to} ${l.kind}`);
}

/** Bytes of a link. Of a chosen interval it is the part of what its sender sent by that kind of path in it. */
export function amountIn(model: Model, l: Link, brush: Brush): number | undefined {
  const series = brush && l.bytes ? seriesOf(model, l) : undefined;
  if (!series || l.bytes === undefined) return l.bytes;
  const whole = sumIn(series, null);
  return whole ? Math.round(l.bytes * sumIn(series, brush) / whole) : l.bytes;
}

/** By the length of each interval, of which the first and the last can be short. */
export function sharesOf(model: Model, values: number[] | undefined): number[] | undefined {
  const t = model.doc.time;
  return t && values?.map((v, i) => v / Math.max(1, t.ends_ns[i] - t.starts_ns[i]));
}

/* On average of the time, not of the intervals; undefined: nothing is known. */
function average(model: Model, values: (number | null)[], first = 0): number | undefined {
  const t = model.doc.time;
  let sum = 0, weight = 0;
  values.forEach((v, i) => {
    const w = t ? t.ends_ns[first + i] - t.starts_ns[first + i] : 1;
    if (v !== null) { sum += v * w; weight += w; }
  });
  return weight > 0 ? sum / weight : undefined;
}

/** A small line; the largest value is its full height. */
export function sparkline(values: number[] | undefined): Element | string {
  if (!values?.length) return "";
  const W = 90, H = 18, most = Math.max(1e-9, ...values);
  const points = values.map((v, i) => `${(i / Math.max(1, values.length - 1) * W).toFixed(1)},${(H - 1 - v / most * (H - 2)).toFixed(1)}`).join(" ");
  return s("svg", { class: "spark", viewBox: `0 0 ${W} ${H}`, width: W, height: H, "aria-hidden": "true" }, s("polyline", { points }));
}

/** How an accelerator stood on average of the chosen interval, or of all; undefined: not measured. */
export function gaugeIn(model: Model, gauges: Gauge[] | undefined, id: string, brush: Brush): number | undefined {
  return average(model, gauges?.find((g) => g.id === id)?.values.slice(brush ? brush[0] : 0, brush ? brush[1] + 1 : undefined) ?? [], brush ? brush[0] : 0);
}

interface Chart { title: string; note: string; series: (Series & { colour?: number })[]; scale: (v: number, seconds: number) => number; format: (v: number) => string }

const OTHERS = "all others", READ_COLOUR = 2;
const CAUSE_COLOURS: Record<string, number> = { futex: 4, pipe: 3, queue: 3, semaphore: 3, eventfd: 3, socket: 0, disk: 2, file: 2, file_lock: 2, page_fault: 2, device: 5 };

/* Causes that are alike have one colour, and one row. */
function byColour(all: (Series & { colour: number })[]): (Series & { colour: number })[] {
  const rows = new Map<number, Series & { colour: number }>();
  for (const x of all) {
    const old = rows.get(x.colour);
    rows.set(x.colour, old ? { ...old, name: `${old.name}, ${x.name}`, values: old.values.map((v, i) => v + (x.values[i] ?? 0)) } : x);
  }
  return [...rows.values()].map((x) => ({ ...x, name: x.name?.replace(/_/g, " ") }));
}

function colour(label: string, k: number): string {
  return label === OTHERS ? "series-others" : `series-${k % COLOURS}`;
}

/* The next number with a round half, for the axis; of bytes, one of their units. */
function roundUp(v: number, isBytes: boolean): number {
  const unit = isBytes ? 1024 ** Math.floor(Math.log(v) / Math.log(1024)) : 1, x = v / unit;
  const power = 10 ** Math.floor(Math.log10(x));
  return ([1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].find((k) => k * power >= x) ?? 10) * power * unit;
}

const ROW = 20;
const W = 1100, H = 150, LEFT = 70, RIGHT = 10, COLOURS = 8;

export class TimeView implements ViewPart {
  readonly element: HTMLElement;
  private readonly charts = h("div");
  private readonly brushBox = h("div", { class: "controls brush" });

  constructor(private readonly model: Model) {
    this.element = h("div", { class: "time" }, h("h2", {}, "Time"), this.brushBox, this.charts);
    this.draw();
  }

  refresh(changed: Set<string>): void {
    if (changed.has("brush")) this.draw();
  }

  private draw(): void {
    const t = this.model.doc.time;
    clear(this.charts);
    clear(this.brushBox);
    if (!t || t.starts_ns.length < 1) {
      this.charts.append(h("p", {}, "This file has no series: it is an imported graph, or one look only. A recording has values for each interval; on the host: ", h("code", {}, "witty-profiler record -d 10s -o host.wpdb")));
      return;
    }
    this.drawBrush(t.starts_ns.length);
    const perSecond = (v: number, seconds: number): number => v / seconds;
    const cores = (v: number, seconds: number): number => v / 1e9 / seconds;
    const reads = t.reads.map((x) => ({ ...x, name: `read from ${x.name === "storage" ? "files" : x.name}`, colour: READ_COLOUR }));
    const flows = t.flows.map((x) => ({ ...x, name: x.name === "storage" ? "written to files" : x.name, colour: kindColour(x.name ?? "") }));
    const waits = byColour(t.waits.filter((x) => !IDLE.has(x.name ?? "")).map((x) => ({ ...x, colour: CAUSE_COLOURS[x.name ?? ""] ?? 7 })));
    const disks = t.moved.filter((x) => x.id?.startsWith("block_device")), nics = t.moved.filter((x) => !x.id?.startsWith("block_device"));
    const number = (v: number): string => count(Math.round(v * 100) / 100);
    const charts: Chart[] = [
      { title: "CPU", note: `cores in use, by process${this.cores()}`, series: t.cpu, scale: cores, format: number },
      { title: "Flows", note: "bytes a second sent between processes, read and written, by kind", series: [...flows, ...reads], scale: perSecond, format: rate },
      { title: "Waits", note: "threads blocked on average, by cause; a wait that ends in an interval counts as that one's, what is longer than it as of those before; idle ones (poll, sleep, child, signal) left out", series: waits, scale: cores, format: number },
      { title: "Network", note: "bytes a second through network interfaces, received and sent", series: nics, scale: perSecond, format: rate },
      { title: "Disks", note: "bytes a second, read and written; a partition's are its disk's too", series: disks, scale: perSecond, format: rate },
    ];
    for (const c of charts) this.charts.append(this.chart(c));
    this.charts.append(
      this.strips("Disks busy", "share of the time with a request under way", t.busy.map((x) => ({ label: x.name ?? "", values: x.values.map((v, i) => Math.min(1, v / 1e9 / this.seconds(i))) })), percent),
      this.strips("Accelerators", "use, as their driver tells it at each look; the full colour is 100 %", t.use.map((x) => ({ label: this.model.labelOf(x.id), id: x.id, values: x.values.map((v) => v === null ? null : v / 1e4) })), percent),
      this.strips("Memory of accelerators", "in use, of what each has", t.held.map((x) => {
        const all = this.capacity(x.id) ?? Math.max(1, ...x.values.map((v) => v ?? 0));
        return { label: this.model.labelOf(x.id), id: x.id, values: x.values.map((v) => v === null ? null : v / all) };
      }), percent));
  }

  private cores(): string {
    const all = this.model.doc.hosts.map((x) => Number(x.fields.cpus));
    return all.length && all.every((n) => n > 0) ? `; there are ${all.reduce((a, n) => a + n, 0)}` : "";
  }

  private capacity(id: string): number | undefined {
    const box = this.model.boxes.get(id), total = box && this.model.actorOf(box)?.fields?.memory_total_bytes;
    return typeof total === "number" && total > 0 ? total : undefined;
  }

  /* A row for each: many are told apart by their place, where lines would need colours. */
  private strips(title: string, note: string, rows: { label: string; id?: string; values: (number | null)[] }[], format: (v: number) => string): HTMLElement {
    const box = h("figure", { class: "card" }, h("figcaption", {}, h("h3", {}, title), h("span", { class: "note" }, note)));
    const n = this.model.doc.time!.starts_ns.length, x = (i: number): number => this.x(i), right = W - RIGHT;
    if (!rows.length) { box.append(h("p", {}, "Not recorded.")); return box; }
    const height = rows.length * ROW + 32;
    const svg = s("svg", { class: "picture chart strips", viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": `${title}: ${note}` });
    rows.forEach((r, k) => {
      const y = 10 + k * ROW, mean = average(this.model, r.values);
      svg.append(s("rect", { x: LEFT, y, width: right - LEFT, height: ROW - 3, class: "cell none" }, s("title", {}, r.label)),
        s("text", { x: LEFT - 6, y: y + 13, "text-anchor": "end", class: "axis" }, s("title", {}, r.label), isolated(r.label, 11)));
      r.values.forEach((v, i) => {
        if (v === 0) return;
        svg.append(s("rect", { x: x(i).toFixed(1), y, width: Math.max(0.5, x(i + 1) - x(i) - 0.5).toFixed(1), height: ROW - 3, class: v === null ? "cell not-known" : "cell", "fill-opacity": v === null ? null : (0.08 + 0.92 * Math.min(1, v)).toFixed(3) },
          s("title", {}, `${r.label}, ${duration(this.model.doc.time!.starts_ns[i] - this.model.doc.time!.starts_ns[0])}: ${v === null ? "not known" : format(v)}`)));
      });
      svg.append(s("text", { x: right - 4, y: y + 13, "text-anchor": "end", class: "mean" }, mean === undefined ? "not known" : `${format(mean)} on average`));
    });
    this.axis(svg, height);
    this.brushable(svg, n, x, height);
    box.append(svg);
    return box;
  }

  /* Where an interval begins: they are not all of the same length. */
  private x(i: number): number {
    const t = this.model.doc.time!, n = t.starts_ns.length, first = t.starts_ns[0];
    return LEFT + ((i < n ? t.starts_ns[i] : t.ends_ns[n - 1]) - first) / Math.max(1, t.ends_ns[n - 1] - first) * (W - LEFT - RIGHT);
  }

  private axis(svg: SVGSVGElement, height: number): void {
    const t = this.model.doc.time!, all = t.ends_ns[t.ends_ns.length - 1] - t.starts_ns[0];
    for (let i = 0; i <= 4; i++)
      svg.append(s("text", { x: LEFT + i / 4 * (W - LEFT - RIGHT), y: height - 6, class: "axis", "text-anchor": i === 4 ? "end" : i ? "middle" : "start" }, duration(all * i / 4)));
  }

  private seconds(i: number): number {
    const t = this.model.doc.time!;
    return Math.max(1e-9, (t.ends_ns[i] - t.starts_ns[i]) / 1e9);
  }

  private drawBrush(n: number): void {
    const [a, b] = state.brush ?? [0, n - 1];
    const range = (label: string, value: number, set: (v: number) => [number, number]): HTMLElement => h("label", {}, label + " ",
      h("input", { type: "range", min: 0, max: n - 1, step: 1, value, "aria-label": `${label} interval`, change: (e) => {
        const [x, y] = set(Number((e.target as HTMLInputElement).value));
        update({ brush: x === 0 && y === n - 1 ? null : [Math.min(x, y), Math.max(x, y)] });
      } }));
    this.brushBox.append(range("from", a, (v) => [v, b]), range("to", b, (v) => [a, v]),
      h("span", { class: "note" }, `${n} intervals. Drag in a chart, or use the two sliders: the other views then show that part only.`));
  }

  private chart(c: Chart): HTMLElement {
    const box = h("figure", { class: "card" }, h("figcaption", {}, h("h3", {}, c.title), h("span", { class: "note" }, c.note)));
    const t = this.model.doc.time!, n = t.starts_ns.length;
    const rows = c.series.map((x, k) => ({ label: this.label(x), colour: colour(x.name ?? "", x.colour ?? k), values: t.starts_ns.map((_, i) => c.scale(x.values[i] ?? 0, this.seconds(i))) }));
    if (!rows.length) { box.append(h("p", {}, "Not recorded.")); return box; }
    const top = t.starts_ns.map((_, i) => rows.reduce((a, r) => a + r.values[i], 0));
    const most = roundUp(Math.max(1e-9, ...top), c.format === rate);
    const x = (i: number): number => this.x(i), y = (v: number): number => H - 22 - v / most * (H - 40);
    const svg = s("svg", { class: "picture chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${c.title}: ${c.note}` });
    for (const share of [0, 0.5, 1])
      svg.append(s("line", { x1: LEFT, x2: W - 10, y1: y(most * share), y2: y(most * share), class: "grid" }), s("text", { x: LEFT - 6, y: y(most * share) + 4, "text-anchor": "end", class: "axis" }, c.format(most * share)));
    const base = new Array<number>(n).fill(0);
    rows.forEach((r) => {
      const up = r.values.map((v, i) => [x(i), y(base[i] + v), x(i + 1)] as const), down = base.map((v, i) => [x(i), y(v), x(i + 1)] as const);
      const f = (v: number): string => v.toFixed(1);
      const edge = up.map(([a, yy, b]) => `${f(a)} ${f(yy)}L${f(b)} ${f(yy)}`).join("L");
      svg.append(s("path", { class: `series ${r.colour}`, d: `M${edge}L${down.reverse().map(([a, yy, b]) => `${f(b)} ${f(yy)}L${f(a)} ${f(yy)}`).join("L")}z` }, s("title", {}, r.label)));
      r.values.forEach((v, i) => { base[i] += v; });
    });
    this.axis(svg, H);
    this.brushable(svg, n, x, H);
    box.append(svg, h("p", { class: "legend-line" }, ...rows.map((r) => h("span", {}, h("i", { class: `key ${r.colour}` }), name(r.label)))));
    return box;
  }

  private label(x: Series): string {
    return x.row === undefined ? x.name ?? "" : this.model.actorLabel(x.row);
  }

  private brushable(svg: SVGSVGElement, n: number, x: (i: number) => number, height: number): void {
    const shade = s("rect", { class: "brush-shade", y: 8, height: height - 30, x: 0, width: 0 });
    const show = (a: number, b: number): void => { shade.setAttribute("x", String(x(a))); shade.setAttribute("width", String(x(b + 1) - x(a))); };
    if (state.brush) show(...state.brush);
    svg.append(shade);
    const at = (e: PointerEvent): number => {
      const r = svg.getBoundingClientRect();
      const px = (e.clientX - r.left) / r.width * W;
      let i = 0;
      while (i < n - 1 && x(i + 1) <= px) i++;
      return i;
    };
    let from = -1, to = -1;
    svg.addEventListener("pointerdown", (e) => { from = to = at(e); svg.setPointerCapture(e.pointerId); show(from, from); });
    svg.addEventListener("pointermove", (e) => { if (from >= 0) { to = at(e); show(Math.min(from, to), Math.max(from, to)); } });
    svg.addEventListener("pointerup", () => {
      if (from < 0) return;
      const [a, b] = [Math.min(from, to), Math.max(from, to)];
      from = -1;
      update({ brush: a === 0 && b === n - 1 ? null : [a, b] });
    });
  }
}
