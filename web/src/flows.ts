// Flows: bands of the largest, a matrix of groups, and a table of all.

import type { Link } from "./data";
import { clear, h, name } from "./dom";
import { bytes, count, rate, time } from "./format";
import type { ViewPart } from "./main";
import { matrixPart } from "./matrix";
import type { Model } from "./model";
import { sankeyPicture } from "./sankey";
import { state, update } from "./state";
import { Table } from "./table";
import { amountIn } from "./time";
import { kindClass } from "./topology_draw";

const BANDS = 30;

export class FlowsView implements ViewPart {
  readonly element: HTMLElement;
  private readonly bands = h("section", { class: "card" });
  private readonly matrix = h("div");
  private readonly table: Table<Link>;

  constructor(private readonly model: Model) {
    const label = (row: number): string => model.actorLabel(row);
    this.table = new Table<Link>({
      caption: "All flows", rows: this.links(), sortBy: 3, step: 50, key: (l) => model.boxOfActor[l.from].id, selected: state.selected,
      search: (l) => `${label(l.from)} ${label(l.to)} ${l.kind}`, select: (l) => update({ selected: model.boxOfActor[l.from].id }),
      empty: model.doc.links.length ? "No flow matches." : "No flows were recorded.",
      columns: [
        { title: "From", value: (l) => label(l.from), cell: (l) => name(label(l.from)) },
        { title: "To", value: (l) => label(l.to), cell: (l) => name(label(l.to)) },
        { title: "Kind", value: (l) => l.kind, cell: (l) => h("span", { class: "tag " + kindClass(l.kind) }, l.kind) },
        { title: "Bytes", numeric: true, value: (l) => this.amount(l), cell: (l) => bytes(this.amount(l)) },
        { title: "Rate", numeric: true, help: "On average of the window, or of the chosen part of it", value: (l) => this.amount(l), cell: (l) => (l.bytes !== undefined && this.windowNs() ? rate((this.amount(l) ?? 0) / (this.windowNs() / 1e9)) : "\u2013") },
        { title: "Messages", numeric: true, value: (l) => l.messages, cell: (l) => count(l.messages) },
        { title: "Receiver waited", numeric: true, help: "Time that threads of the receiver were blocked until threads of the sender woke them", value: (l) => l.waited_ns, cell: (l) => time(l.waited_ns) },
        { title: "Amount is", optional: true, help: "Estimated: several share one end, and the amount is split among them", value: (l) => (l.shared ? "estimated" : "") },
      ],
    });
    this.element = h("div", { class: "flows" }, h("h2", {}, "Flows"), this.bands, this.matrix, h("section", { class: "card" }, this.table.element));
    this.draw();
  }

  refresh(): void {
    this.table.setSelected(state.selected);
    this.table.setRows(this.links());
    this.draw();
  }

  private windowNs(): number {
    const t = this.model.doc.time;
    return state.brush && t ? t.ends_ns[state.brush[1]] - t.starts_ns[state.brush[0]] : this.model.windowNs;
  }

  private amount(l: Link): number | undefined {
    return amountIn(this.model, l, state.brush);
  }

  /* Of the selected process, if it has any; else all. */
  private links(): Link[] {
    const row = this.row();
    const own = row >= 0 ? this.model.linksOf.get(row) ?? [] : [];
    const all = own.length ? own : this.model.doc.links;
    return state.brush ? all.filter((l) => this.amount(l) !== 0) : all;
  }

  private row(): number {
    const box = this.model.boxes.get(state.selected);
    return box ? (box.thread >= 0 ? this.model.doc.threads[box.thread].process : box.actor) : -1;
  }

  /* Kinds that a reader finds in the other views and misses here. */
  private notDrawn(drawn: string[]): string {
    const sums = new Map<string, number>();
    let within = 0;
    for (const l of this.model.doc.links) {
      const n = this.amount(l) ?? 0;
      if (l.from === l.to) within += n;
      else if (!drawn.includes(l.kind)) sums.set(l.kind, (sums.get(l.kind) ?? 0) + n);
    }
    const parts = [...sums].filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([kind, n]) => `${bytes(n)} by ${kind.replace(/_/g, " ")} in smaller flows`);
    if (within > 0) parts.push(`${bytes(within)} within single processes`);
    return parts.length ? ` Not drawn: ${parts.join(", ")}.` : "";
  }

  private draw(): void {
    const amount = (l: Link): number | undefined => this.amount(l);
    const row = this.row(), links = this.model.doc.links.filter((l) => l.from !== l.to && (!state.brush || amount(l) !== 0));
    clear(this.bands);
    this.bands.append(h("h3", {}, "Where the data goes"));
    if (!links.length) { this.bands.append(h("p", {}, "No flows were recorded.")); this.matrix.replaceChildren(); return; }
    const picture = sankeyPicture(this.model, { links, amount, most: BANDS, selected: row });
    const kinds = [...new Set([...picture.querySelectorAll(".band")].map((b) => b.getAttribute("data-kind") ?? ""))].sort();
    this.bands.append(
      h("p", { class: "legend-line" }, ...kinds.map((k) => h("span", { class: "kind " + kindClass(k) }, h("i", { class: "line" }), k.replace(/_/g, " "))),
        h("span", { class: "note" }, `From who asks (left) to who serves (right); the full part of a band goes to the right, the pale part comes back. The largest ${BANDS} at most; more than three of one program are one band, with what they have together.${this.notDrawn(kinds)}`)),
      row >= 0 ? h("p", {}, "Selected: ", name(this.model.actorLabel(row)), " ", h("button", { type: "button", click: () => update({ selected: "" }) }, "Show all")) : "",
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Flows as bands" }, picture as unknown as HTMLElement));
    this.matrix.replaceChildren(matrixPart(this.model, amount));
  }
}
