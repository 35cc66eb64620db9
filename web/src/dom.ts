// Elements without any HTML text: names from the host can only become text and attributes.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | EventListener>;

const SVG = "http://www.w3.org/2000/svg";

function fill<T extends Element>(e: T, attributes: Attributes, children: Child[]): T {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(key, value);
    else e.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      e.append(typeof child === "number" ? String(child) : child);
  return e;
}

/** An HTML element; attributes that are functions are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function clear(e: Element): void {
  e.replaceChildren();
}

/** A name from the host, isolated: its direction of writing does not reach what stands around it. */
export function name(text: string, attributes: Attributes = {}): HTMLElement {
  return h("bdi", { class: "name", title: text.length > 60 ? text : null, ...attributes }, cut(text, 160));
}

/** At most n characters; what is cut off is shown as an ellipsis. */
export function cut(text: string, n: number): string {
  if (text.length <= n) return text;
  const points = Array.from(text);
  return points.length <= n ? text : points.slice(0, n - 1).join("") + "\u2026";
}

/** As cut(), but a number in brackets at the end stays: it tells one from others of the name. */
export function cutName(text: string, n: number): string {
  const [, front, number] = /^(.*)(\[\d+\])$/s.exec(text) ?? ["", text, ""];
  return cut(front, Math.max(4, n - number.length)) + number;
}

/** Text for SVG, which has no <bdi>: isolates keep its direction to itself. */
export function isolated(text: string, n: number): string {
  return "\u2068" + cut(text, n) + "\u2069";
}

/** Part of a picture, with its texts in it already, that can be pressed with the mouse, Enter and the space bar. */
export function pressable(e: Element, label: string, act: (event: Event) => void): void {
  e.setAttribute("role", "button");
  e.setAttribute("tabindex", "0");
  // What is to be read is part of the name, whatever else is.
  const read = [...e.querySelectorAll("text")].map((t) => t.textContent ?? "").join(" ");
  e.setAttribute("aria-label", read ? `${read}, ${label}` : label);
  e.addEventListener("click", act);
  e.addEventListener("keydown", (event) => {
    const key = (event as KeyboardEvent).key;
    if (key !== "Enter" && key !== " ") return;
    event.preventDefault();
    act(event);
  });
}
