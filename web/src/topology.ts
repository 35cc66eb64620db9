// The machine as nested boxes with the flows between them.

import { select } from "d3-selection";
import { zoom, zoomIdentity, ZoomBehavior } from "d3-zoom";

import { clear, h, name, s } from "./dom";
import { bytes, UNKNOWN } from "./format";
import type { ViewPart } from "./main";
import { FEW, type Box, type Model } from "./model";
import { state, update } from "./state";
import { Table } from "./table";
import { amountIn } from "./time";
import { Curve, curvesOf, CURVES_MAX, drawBoxes, drawCurves, idOf, kindClass } from "./topology_draw";
import { isOpen, isShown, Layout, layout, moreId, Placed, standIn } from "./topology_layout";
import { side } from "./topology_side";

export class TopologyView implements ViewPart {
  readonly element: HTMLElement;
  private readonly stage = s("g", { class: "stage" });
  private readonly svg = s("svg", { class: "picture topology", role: "group", "aria-label": "Topology: nested boxes and flows. The tables below have the same content." },
    s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
      s("path", { d: "M0 0L8 4L0 8z", class: "arrow-head" })),
    s("marker", { id: "arrow-wide", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 17, markerHeight: 17, markerUnits: "userSpaceOnUse", orient: "auto" },
      s("path", { d: "M0 0L8 4L0 8z", class: "arrow-head" }))), this.stage);
  private readonly choices = h("div");
  private readonly sideBox = h("div", { class: "side-box" });
  private readonly note = h("p", { class: "note", role: "status" });
  private readonly tables = h("details", { class: "tables", toggle: () => this.drawTables() }, h("summary", {}, "The same as tables"));
  private readonly zoom: ZoomBehavior<SVGSVGElement, unknown>;
  private layout: Layout = { all: [], top: [], w: 0, h: 0, of: new Map() };
  private curves: Curve[] = [];
  private groups = new Map<string, SVGGElement>();
  private fitted = false;

  constructor(private readonly model: Model) {
    this.zoom = zoom<SVGSVGElement, unknown>().scaleExtent([0.05, 6]).on("zoom", (e: { transform: { toString(): string } }) => {
      this.stage.setAttribute("transform", e.transform.toString());
    });
    select(this.svg).call(this.zoom).on("dblclick.zoom", null);
    this.svg.addEventListener("click", () => update({ selected: "" }));
    this.svg.addEventListener("keydown", (e) => this.key(e));
    this.element = h("div", { class: "topology-view" }, h("h2", {}, "Topology"), this.choices,
      h("div", { class: "stage-row" }, h("div", { class: "stage-box" }, this.svg as unknown as HTMLElement, this.zoomButtons()), this.sideBox),
      this.note, this.tables);
    this.showChoices();
    this.revealSelected();
    this.draw();
    new ResizeObserver(() => { if (!this.fitted && this.svg.clientWidth) { this.fitted = true; this.fit(); this.showSelected(); } }).observe(this.svg);
  }

  refresh(changed: Set<string>): void {
    const before = state.opened;
    // The address was changed by the browser: the fields say what it says now.
    if (changed.size === Object.keys(state).length) this.showChoices();
    if (changed.has("selected") || changed.has("view")) this.revealSelected();
    if (state.opened !== before || ["opened", "kindsOff", "minRate", "container", "query", "only", "brush"].some((k) => changed.has(k))) this.draw();
    else this.highlight();
  }

  /* A box that is selected in another view may be in a closed one. */
  private revealSelected(): void {
    const box = this.model.boxes.get(state.selected);
    if (!box) return;
    const opened = new Set(state.opened);
    for (let b = box.parent, child = box; b && b.kind !== "root"; child = b, b = b.parent) {
      if (!isOpen(this.model, b, opened)) opened.has(b.id) ? opened.delete(b.id) : opened.add(b.id);
      if (!isShown(child, b.children.indexOf(child), FEW)) opened.add(moreId(b));
    }
    if (opened.size !== state.opened.size) state.opened = opened;
  }

  private showChoices(): void {
    this.choices.replaceChildren(this.controls(), this.legend());
  }

  private reset(): void {
    update({ query: "", only: false, container: "", minRate: 0, kindsOff: new Set(), opened: new Set(), selected: "" });
    this.showChoices();
    this.choices.querySelector<HTMLElement>("#topology-reset")?.focus();
  }

  private controls(): HTMLElement {
    const { model } = this;
    const search = h("input", { type: "search", id: "topology-search", placeholder: "Search names, commands, ids", "aria-label": "Search in the topology", value: state.query,
      input: (e) => update({ query: (e.target as HTMLInputElement).value }) });
    const containers = h("select", { "aria-label": "Container", change: (e) => update({ container: (e.target as HTMLSelectElement).value }) },
      h("option", { value: "" }, "all containers"), ...model.doc.containers.slice(0, 500).map((c) => h("option", { value: c.id, selected: c.id === state.container }, c.name ?? c.id)));
    const most = Math.log2(Math.max(2, model.doc.links[0]?.bytes ?? 2));
    const shown = h("output", {}, state.minRate ? bytes(state.minRate) : "any");
    const amount = h("input", { type: "range", min: 0, max: Math.ceil(most), step: 0.5, value: state.minRate ? Math.log2(state.minRate) : 0, "aria-label": "Smallest flow that is shown",
      input: (e) => {
        const v = Number((e.target as HTMLInputElement).value);
        shown.textContent = v ? bytes(2 ** v) : "any";
        update({ minRate: v ? Math.round(2 ** v) : 0 });
      } });
    const only = h("input", { type: "checkbox", id: "topology-only", checked: state.only, change: (e) => update({ only: (e.target as HTMLInputElement).checked }) });
    return h("div", { class: "controls" }, search, h("label", { title: "Processes that the search finds, and what they exchange data with" }, only, " only what is found"), model.doc.containers.length > 0 && containers,
      h("label", {}, "flows of at least ", amount, " ", shown),
      h("button", { type: "button", id: "topology-reset", click: () => this.reset() }, "Reset"));
  }

  private legend(): HTMLElement {
    const { model } = this;
    const kinds = model.kinds.map((kind) => h("label", { class: "kind " + kindClass(kind) },
      h("input", { type: "checkbox", checked: !state.kindsOff.has(kind), change: (e) => {
        const off = new Set(state.kindsOff);
        if ((e.target as HTMLInputElement).checked) off.delete(kind); else off.add(kind);
        update({ kindsOff: off });
      } }), h("i", { class: "line" }), kind.replace(/_/g, " ")));
    return h("fieldset", { class: "legend" }, h("legend", {}, "Flows by kind"), ...kinds,
      h("span", { class: "note" }, "The wider, the more bytes (width grows with the root); dashed: amount not known; red text, and red lines in place of the colour of their kind: a process away from the node of its device or memory; \u25b2 and a coloured border: a finding is about it or about what is inside, brown a warning, red a critical one; + opens a box"));
  }

  private zoomButtons(): HTMLElement {
    const by = (k: number): void => { select(this.svg).call(this.zoom.scaleBy, k); };
    return h("div", { class: "zoom" }, h("button", { type: "button", "aria-label": "Zoom in", click: () => by(1.4) }, "+"),
      h("button", { type: "button", "aria-label": "Zoom out", click: () => by(1 / 1.4) }, "\u2212"),
      h("button", { type: "button", "aria-label": "Show everything", click: () => this.fit() }, "\u2922"));
  }

  private key(e: KeyboardEvent): void {
    const step: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (step[e.key]) select(this.svg).call(this.zoom.translateBy, step[e.key][0], step[e.key][1]);
    else if (e.key === "+" || e.key === "-") {
      const id = (e.target as Element).closest("[data-id]")?.getAttribute("data-id");
      const placed = id ? this.layout.of.get(id) : undefined;
      if (placed?.box.children.length) { this.toggle(placed); this.groups.get(idOf(placed))?.focus(); }
      else select(this.svg).call(this.zoom.scaleBy, e.key === "+" ? 1.4 : 1 / 1.4);
    } else if (e.key === "Escape") update({ selected: "" });
    else return;
    e.preventDefault();
  }

  private fit(): void {
    const w = this.svg.clientWidth || 1000, hgt = this.svg.clientHeight || 600;
    const k = Math.min(w / (this.layout.w + 40), hgt / (this.layout.h + 40), 1.4);
    select(this.svg).call(this.zoom.transform, zoomIdentity.translate((w - this.layout.w * k) / 2, Math.max(10, (hgt - this.layout.h * k) / 2)).scale(k));
  }

  /* Move to what is selected when it would be too small to read, or lies outside. */
  private showSelected(): void {
    const box = this.model.boxes.get(state.selected);
    const p = box && standIn(this.layout, box);
    if (!p) return;
    // It and the ends of its largest flows, as far as they leave it readable.
    const around = this.curves.filter((c) => c.from === p || c.to === p).slice(0, 6).flatMap((c) => [c.from, c.to]);
    const all = [p, ...around];
    const x0 = Math.min(...all.map((o) => o.x)), x1 = Math.max(...all.map((o) => o.x + o.w));
    const y0 = Math.min(...all.map((o) => o.y)), y1 = Math.max(...all.map((o) => o.y + Math.min(o.h, 300)));
    const w = this.svg.clientWidth, hgt = this.svg.clientHeight, whole = Math.min(1.2, w / (x1 - x0 + 80), hgt / (y1 - y0 + 80));
    const k = Math.max(0.7, whole), [x, y] = whole < 0.7 ? [p.x + p.w / 2, p.y + Math.min(p.h, 200) / 2] : [(x0 + x1) / 2, (y0 + y1) / 2];
    select(this.svg).call(this.zoom.transform, zoomIdentity.translate(w / 2 - x * k, hgt / 2 - y * k).scale(k));
  }

  /* With a container chosen, or only what a search finds: that and what it exchanges data with. */
  private wanted(): (b: Box) => boolean {
    const query = state.only ? state.query.trim().toLowerCase() : "";
    if (!state.container && !query) return () => true;
    const { model } = this;
    const keep = new Set<Box>();
    const up = (b: Box): void => { for (let x: Box | null = b; x; x = x.parent) keep.add(x); };
    model.doc.actors.forEach((a, row) => {
      if (state.container && (a.container === undefined || model.doc.containers[a.container].id !== state.container)) return;
      if (query && !this.matchesInside(model.boxOfActor[row], query)) return;
      up(model.boxOfActor[row]);
      const down = (b: Box): void => { keep.add(b); b.children.forEach(down); };
      down(model.boxOfActor[row]);
      for (const l of model.linksOf.get(row) ?? []) { up(model.boxOfActor[l.from]); up(model.boxOfActor[l.to]); }
    });
    return (b) => keep.has(b);
  }

  private draw(): void {
    const { model } = this;
    this.layout = layout(model, state.opened, this.wanted());
    const links = model.doc.links.filter((l) => !state.kindsOff.has(l.kind) && (!state.minRate || (l.bytes ?? 0) >= state.minRate));
    this.curves = curvesOf(model, this.layout, links, (l) => amountIn(model, l, state.brush)).filter((c) => !state.brush || c.bytes > 0 || !c.known);
    const [below, above] = drawBoxes(model, this.layout, (p) => this.select(p), (p) => this.toggle(p));
    const [lines, amounts] = drawCurves(model, this.layout, this.curves, CURVES_MAX, (c) => update({ selected: c.from.box.id }));
    this.stage.replaceChildren(below, lines, above, amounts);
    this.groups = new Map([...this.stage.querySelectorAll<SVGGElement>("[data-id]")].map((g) => [g.getAttribute("data-id") ?? "", g]));
    this.note.textContent = this.curves.length > CURVES_MAX ? `The ${CURVES_MAX} largest of ${this.curves.length} flows are drawn; the tables have all.` : "";
    this.drawTables();
    this.highlight();
  }

  private select(p: Placed): void {
    if (p.more) this.toggle(p);
    else update({ selected: p.box.id === state.selected ? "" : p.box.id });
  }

  private toggle(p: Placed): void {
    const id = idOf(p), opened = new Set(state.opened);
    if (opened.has(id)) opened.delete(id);
    else opened.add(id);
    update({ opened });
  }

  private matches(box: Box, query: string): boolean {
    const a = this.model.actorOf(box);
    return `${box.label} ${box.id} ${a?.cmdline ?? ""} ${a?.role ?? ""}`.toLowerCase().includes(query);
  }

  private matchesInside(box: Box, query: string): boolean {
    return this.matches(box, query) || box.children.some((c) => this.matchesInside(c, query));
  }

  private highlight(): void {
    const { model } = this, box = model.boxes.get(state.selected), query = state.query.trim().toLowerCase();
    const chosen = box && standIn(this.layout, box);
    const near = new Set<string>();
    if (chosen)
      for (let b: Box | null = chosen.box; b; b = b.parent) near.add(b.id);
    const within = (p: Placed): boolean => { for (let b: Box | null = p.box; b; b = b.parent) if (b === chosen?.box) return true; return false; };
    for (const c of this.curves) {
      const hit = !chosen || within(c.from) || within(c.to);
      c.path?.classList.toggle("dim", !hit);
      c.amount?.classList.toggle("dim", !hit);
      if (chosen && hit) for (const p of [c.from, c.to]) near.add(idOf(p));
    }
    for (const [id, g] of this.groups) {
      const p = this.layout.of.get(id);
      if (!p) continue;
      const found = query !== "" && !p.more && (p.open ? this.matches(p.box, query) : this.matchesInside(p.box, query));
      g.classList.toggle("selected", p === chosen);
      g.classList.toggle("dim", (!!chosen && !p.open && !near.has(id) && !within(p)) || (query !== "" && !found && !p.open));
      g.classList.toggle("found", found);
    }
    clear(this.sideBox);
    if (box) this.sideBox.append(side(model, box, box.children.length && chosen?.box === box ? () => this.toggle(chosen) : null, !!chosen?.open));
  }

  private drawTables(): void {
    this.tables.replaceChildren(this.tables.firstElementChild as Element);
    if (!this.tables.open) return;
    const { model } = this;
    const where = (p: Placed): string => model.path(p.box).slice(0, p.more ? undefined : -1).map((b) => b.label).join(" \u25b8 ");
    const label = (p: Placed): string => (p.more ? `${p.more} more` : p.box.label);
    this.tables.append(
      new Table<Placed>({ caption: "Boxes that are shown", rows: this.layout.all, key: idOf, selected: state.selected, select: (p) => this.select(p), search: label, sortBy: 2, ascending: true,
        columns: [{ title: "Name", value: label, cell: (p) => name(label(p)) }, { title: "Kind", value: (p) => p.box.kind }, { title: "Inside", value: where, cell: (p) => name(where(p)) },
          { title: "Data in", numeric: true, value: (p) => model.actorOf(p.box)?.bytes_in, cell: (p) => bytes(model.actorOf(p.box)?.bytes_in) },
          { title: "Data out", numeric: true, value: (p) => model.actorOf(p.box)?.bytes_out, cell: (p) => bytes(model.actorOf(p.box)?.bytes_out) }] }).element,
      new Table<Curve>({ caption: "Flows that are shown", rows: this.curves, sortBy: 3, search: (c) => `${label(c.from)} ${label(c.to)} ${c.kind}`,
        columns: [{ title: "From", value: (c) => label(c.from), cell: (c) => name(label(c.from)) }, { title: "To", value: (c) => label(c.to), cell: (c) => name(label(c.to)) },
          { title: "Kind", value: (c) => c.kind }, { title: "Bytes", numeric: true, value: (c) => (c.known ? c.bytes : undefined), cell: (c) => (c.known ? bytes(c.bytes) : UNKNOWN) }] }).element);
  }
}
