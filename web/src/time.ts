// What happened when: CPU, flows, waits and devices over the window, with an interval that filters the other views.

import type { Link, Series } from "./data";
import { clear, h, name, s } from "./dom";
import { count, percent, rate, time as duration } from "./format";
import type { ViewPart } from "./main";
import { IDLE, type Model } from "./model";
import { state, update } from "./state";

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

/** A small line; the largest value is its full height. */
export function sparkline(values: number[] | undefined): Element | string {
  if (!values?.length) return "";
  const W = 90, H = 18, most = Math.max(1e-9, ...values);
  const points = values.map((v, i) => `${(i / Math.max(1, values.length - 1) * W).toFixed(1)},${(H - 1 - v / most * (H - 2)).toFixed(1)}`).join(" ");
  return s("svg", { class: "spark", viewBox: `0 0 ${W} ${H}`, width: W, height: H, "aria-hidden": "true" }, s("polyline", { points }));
}

interface Chart { title: string; note: string; series: Series[]; scale: (v: number, seconds: number) => number; format: (v: number) => string }

const OTHERS = "all others";

function colour(label: string, k: number): string {
  return label === OTHERS ? "series-others" : `series-${k % COLOURS}`;
}

const W = 1100, H = 150, LEFT = 70, COLOURS = 8;

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
      this.charts.append(h("p", {}, "This file has no series: it is an imported graph, or one look only. Recordings (.wpdb) have one value for each interval."));
      return;
    }
    this.drawBrush(t.starts_ns.length);
    const perSecond = (v: number, seconds: number): number => v / seconds;
    const cores = (v: number, seconds: number): number => v / 1e9 / seconds;
    const reads = t.reads.map((x) => ({ ...x, name: `read from ${x.name === "storage" ? "files" : x.name}` }));
    const flows = t.flows.map((x) => ({ ...x, name: x.name === "storage" ? "written to files" : x.name }));
    const waits = t.waits.filter((x) => !IDLE.has(x.name ?? ""));
    const number = (v: number): string => count(Math.round(v * 100) / 100);
    const charts: Chart[] = [
      { title: "CPU", note: "cores in use, by process", series: t.cpu, scale: cores, format: number },
      { title: "Flows", note: "bytes a second sent between processes, read and written, by kind", series: [...flows, ...reads], scale: perSecond, format: rate },
      { title: "Waits", note: "threads blocked on average, by cause, counted in the interval in which they end; idle ones (poll, sleep, child, signal) left out", series: waits, scale: cores, format: number },
      { title: "Devices", note: "bytes a second through disks and network interfaces", series: t.moved, scale: perSecond, format: rate },
      { title: "Disks busy", note: "share of the time with a request under way", series: t.busy, scale: cores, format: percent },
    ];
    for (const c of charts) this.charts.append(this.chart(c));
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
    const rows = c.series.map((x) => ({ label: this.label(x), values: t.starts_ns.map((_, i) => c.scale(x.values[i] ?? 0, this.seconds(i))) }));
    if (!rows.length) { box.append(h("p", {}, "Not recorded.")); return box; }
    const top = t.starts_ns.map((_, i) => rows.reduce((a, r) => a + r.values[i], 0));
    const most = Math.max(1e-9, ...top);
    const x = (i: number): number => LEFT + i / n * (W - LEFT - 10), y = (v: number): number => H - 22 - v / most * (H - 40);
    const svg = s("svg", { class: "picture chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${c.title}: ${c.note}` });
    for (const share of [0, 0.5, 1])
      svg.append(s("line", { x1: LEFT, x2: W - 10, y1: y(most * share), y2: y(most * share), class: "grid" }), s("text", { x: LEFT - 6, y: y(most * share) + 4, "text-anchor": "end", class: "axis" }, c.format(most * share)));
    const base = new Array<number>(n).fill(0);
    rows.forEach((r, k) => {
      const up = r.values.map((v, i) => [x(i), y(base[i] + v), x(i + 1)] as const), down = base.map((v, i) => [x(i), y(v), x(i + 1)] as const);
      const f = (v: number): string => v.toFixed(1);
      const edge = up.map(([a, yy, b]) => `${f(a)} ${f(yy)}L${f(b)} ${f(yy)}`).join("L");
      svg.append(s("path", { class: `series ${colour(r.label, k)}`, d: `M${edge}L${down.reverse().map(([a, yy, b]) => `${f(b)} ${f(yy)}L${f(a)} ${f(yy)}`).join("L")}z` }, s("title", {}, r.label)));
      r.values.forEach((v, i) => { base[i] += v; });
    });
    const first = t.starts_ns[0], last = t.ends_ns[n - 1];
    for (let i = 0; i <= 4; i++)
      svg.append(s("text", { x: LEFT + i / 4 * (W - LEFT - 10), y: H - 6, class: "axis", "text-anchor": i === 4 ? "end" : i ? "middle" : "start" }, duration((last - first) * i / 4)));
    this.brushable(svg, n, x);
    box.append(svg, h("p", { class: "legend-line" }, ...rows.map((r, k) => h("span", {}, h("i", { class: `key ${colour(r.label, k)}` }), name(r.label)))));
    return box;
  }

  private label(x: Series): string {
    return x.row === undefined ? x.name ?? "" : this.model.actorLabel(x.row);
  }

  private brushable(svg: SVGSVGElement, n: number, x: (i: number) => number): void {
    const shade = s("rect", { class: "brush-shade", y: 10, height: H - 32, x: 0, width: 0 });
    const show = (a: number, b: number): void => { shade.setAttribute("x", String(x(a))); shade.setAttribute("width", String(x(b + 1) - x(a))); };
    if (state.brush) show(...state.brush);
    svg.append(shade);
    const at = (e: PointerEvent): number => {
      const r = svg.getBoundingClientRect();
      const px = (e.clientX - r.left) / r.width * W;
      return Math.max(0, Math.min(n - 1, Math.floor((px - LEFT) / (W - LEFT - 10) * n)));
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
