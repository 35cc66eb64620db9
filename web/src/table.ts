// Tables that can be sorted, searched and read by a screen reader; long ones grow when asked to.

import { clear, h } from "./dom";

export interface Column<T> {
  title: string;
  help?: string;
  /** What it is sorted by; undefined sorts last. */
  value: (row: T) => number | string | undefined;
  cell?: (row: T) => Node | string;
  numeric?: boolean;
  wide?: boolean;
  /** Left out where no row has a value. */
  optional?: boolean;
}

export interface TableOptions<T> {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  key?: (row: T) => string;       // id of the entity that a row is about
  selected?: string;
  select?: (row: T) => void;
  sortBy?: number | string;       // index or title of a column
  ascending?: boolean;
  step?: number;                  // rows at once
  /** Text that a search looks at; none: no search field. */
  search?: (row: T) => string;
  empty?: string;
}

function compare(a: number | string | undefined, b: number | string | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

export class Table<T> {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly note = h("p", { class: "note", role: "status" });
  private readonly more = h("button", { type: "button", click: () => { this.shown += this.step; this.draw(); } }, "Show more");
  private readonly heads: HTMLTableCellElement[] = [];
  private readonly o: TableOptions<T>;
  private sortBy: number;
  private ascending: boolean;
  private shown: number;
  private readonly step: number;
  private query = "";
  private rows: T[];
  private selected: string;

  constructor(options: TableOptions<T>) {
    const o = this.o = { ...options, columns: options.columns.filter((c) => !c.optional || options.rows.some((r) => !["", undefined].includes(c.value(r) as string | undefined))) };
    const wanted = typeof options.sortBy === "number" ? options.columns[options.sortBy].title : options.sortBy;
    this.rows = o.rows;
    this.sortBy = Math.max(0, o.columns.findIndex((c) => c.title === wanted));
    this.ascending = o.ascending ?? false;
    this.step = this.shown = o.step ?? 100;
    this.selected = o.selected ?? "";
    const head = h("tr", {}, ...o.columns.map((c, i) => this.head(c, i)));
    const table = h("table", {}, h("caption", {}, o.caption), h("thead", {}, head), this.body);
    const scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": o.caption }, table);
    const search = o.search && h("input", {
      type: "search", placeholder: "Search this table", "aria-label": `Search: ${o.caption}`,
      input: (e) => this.search((e.target as HTMLInputElement).value),
    });
    this.element = h("div", { class: "table" }, search, scroll, h("div", { class: "row" }, this.note, this.more));
    this.draw();
  }

  setRows(rows: T[]): void {
    this.rows = rows;
    this.draw();
  }

  search(text: string): void {
    this.query = text.trim().toLowerCase();
    this.shown = this.step;
    this.draw();
  }

  setSelected(id: string): void {
    this.selected = id;
    this.draw();
  }

  private head(c: Column<T>, i: number): HTMLTableCellElement {
    const cell = h("th", { scope: "col", class: c.numeric ? "num" : null },
      h("button", { type: "button", title: c.help ?? null, click: () => this.sort(i) }, c.title));
    this.heads.push(cell);
    return cell;
  }

  private sort(i: number): void {
    if (this.sortBy === i) this.ascending = !this.ascending;
    else { this.sortBy = i; this.ascending = !this.o.columns[i].numeric; }
    this.draw();
  }

  private matching(): T[] {
    const { search } = this.o;
    const rows = this.query && search ? this.rows.filter((r) => search(r).toLowerCase().includes(this.query)) : this.rows.slice();
    const { value } = this.o.columns[this.sortBy];
    const sign = this.ascending ? 1 : -1;
    return rows.map((r, i) => ({ r, i, v: value(r) }))
      .sort((a, b) => (a.v === undefined || b.v === undefined ? compare(a.v, b.v) : sign * compare(a.v, b.v)) || a.i - b.i)
      .map((x) => x.r);
  }

  private draw(): void {
    const rows = this.matching();
    this.heads.forEach((head, i) => {
      if (i === this.sortBy) head.setAttribute("aria-sort", this.ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    clear(this.body);
    this.body.append(...rows.slice(0, this.shown).map((row) => this.row(row)));
    if (!rows.length) this.body.append(h("tr", {}, h("td", { colspan: this.o.columns.length }, this.o.empty ?? "nothing matches")));
    this.note.textContent = rows.length > this.shown ? `${this.shown} of ${rows.length.toLocaleString("en")} rows` :
      `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "row" : "rows"}`;
    this.more.hidden = rows.length <= this.shown;
  }

  private row(row: T): HTMLTableRowElement {
    const id = this.o.key?.(row);
    const tr = h("tr", { "data-id": id ?? null, class: id && id === this.selected ? "selected" : null });
    this.o.columns.forEach((c, i) => {
      const text = c.cell ? c.cell(row) : String(c.value(row) ?? "\u2013");
      const inside = i === 0 && this.o.select
        ? h("button", { type: "button", class: "link", "aria-pressed": id && id === this.selected ? "true" : "false",
            click: (e) => { e.stopPropagation(); this.o.select?.(row); } }, text)
        : text;
      tr.append(i === 0 ? h("th", { scope: "row" }, inside)
        : h("td", { class: (c.numeric ? "num " : "") + (c.wide ? "wide" : "") || null }, inside));
    });
    if (this.o.select) tr.addEventListener("click", () => this.o.select?.(row));
    return tr;
  }
}
