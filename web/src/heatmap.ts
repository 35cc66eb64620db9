// A table of cells whose colour is a number, with the same as a real table for those who cannot see it.

import { h, isolated, name, s } from "./dom";

export interface Heat {
  caption: string;
  rows: { label: string; id?: string }[];
  columns: { label: string; id?: string }[];
  /** undefined: not known, which is drawn as hatching; 0 is empty */
  value: (row: number, column: number) => number | undefined;
  format: (v: number) => string;
  rowTitle: string;
  columnTitle: string;
  cell?: number;            // width of a cell
  max?: number;             // value of the full colour; largest if not given
  mark?: (row: number, column: number) => boolean; // a frame around the cell
  press?: (row: number) => void;
  scaleNote?: string;
}

const LABEL = 210;

export function heatmap(m: Heat): HTMLElement {
  const w = m.cell ?? Math.max(10, Math.min(64, 900 / Math.max(1, m.columns.length))), hgt = 22;
  const tall = Math.max(...m.columns.map((c) => Math.min(24, c.label.length)), 1);
  const top = w < 40 || tall > 5 ? tall * 5 + 16 : 22;
  let most = m.max ?? 0;
  if (!m.max) m.rows.forEach((_, r) => m.columns.forEach((__, c) => { most = Math.max(most, m.value(r, c) ?? 0); }));
  const W = LABEL + m.columns.length * w + (top > 22 ? tall * 4 + 12 : 30), H = top + m.rows.length * hgt + 6;
  const svg = s("svg", { class: "picture heat", viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "img", "aria-label": `${m.caption}; the table below has the same content` },
    s("defs", {}, s("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("path", { d: "M0 0v6", class: "hatch" }))));
  svg.append(s("text", { x: LABEL - 8, y: top - 6, class: "axis", "text-anchor": "end" }, `${m.rowTitle} \u2193 ${m.columnTitle} \u2192`));
  m.columns.forEach((c, i) => {
    const x = LABEL + i * w + w / 2;
    const turned = top > 22;
    if (w < 14 && i % Math.ceil(14 / w)) return;
    svg.append(s("text", { x, y: top - 6, class: "axis", "text-anchor": turned ? "start" : "middle", transform: turned ? `rotate(-50 ${x} ${top - 6})` : null }, s("title", {}, c.label), isolated(c.label, 24)));
  });
  m.rows.forEach((row, r) => {
    const y = top + r * hgt;
    const label = s("text", { x: LABEL - 8, y: y + 15, class: "axis", "text-anchor": "end" }, s("title", {}, row.label), isolated(row.label, 32));
    if (m.press) { label.classList.add("press"); label.addEventListener("click", () => m.press?.(r)); }
    svg.append(label);
    m.columns.forEach((column, c) => {
      const v = m.value(r, c), share = v ? Math.min(1, v / (most || 1)) : 0;
      const cell = s("rect", { x: LABEL + c * w + 0.5, y: y + 0.5, width: w - 1, height: hgt - 1, class: v === undefined ? "cell unknown" : share > 0 ? "cell" : "cell none" },
        s("title", {}, `${row.label} / ${column.label}: ${v === undefined ? "not known" : m.format(v)}`));
      if (share > 0) cell.setAttribute("fill-opacity", (0.12 + 0.88 * share).toFixed(3));
      if (m.mark?.(r, c)) cell.classList.add("marked");
      svg.append(cell);
      if (v !== undefined && share > 0 && w >= 40 && m.format(v).length <= w / 6.6)
        svg.append(s("text", { x: LABEL + c * w + w / 2, y: y + 15, class: share > 0.5 ? "value strong" : "value", "text-anchor": "middle" }, m.format(v)));
    });
  });
  return h("figure", { class: "heat-box" }, h("figcaption", {}, m.caption, m.scaleNote ? h("span", { class: "note" }, " " + m.scaleNote) : ""),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": m.caption }, svg as unknown as HTMLElement), plain(m));
}

/* Made when it is asked for: it can be long. */
function plain(m: Heat): HTMLElement {
  const box = h("details", { class: "tables" }, h("summary", {}, "The same as a table"));
  box.addEventListener("toggle", () => {
    if (!box.open || box.querySelector("table")) return;
    box.append(h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": m.caption + ", as a table" }, h("table", {}, h("caption", {}, m.caption),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${m.rowTitle} / ${m.columnTitle}`), ...m.columns.map((c) => h("th", { scope: "col" }, name(c.label))))),
      h("tbody", {}, ...m.rows.map((row, r) => h("tr", {}, h("th", { scope: "row" }, name(row.label)), ...m.columns.map((_, c) => {
        const v = m.value(r, c);
        return h("td", { class: "num" }, v === undefined ? "\u2013" : v ? m.format(v) : "0");
      })))))));
  });
  return box;
}
