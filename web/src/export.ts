// Takes the picture of a view out of the page, as SVG or PNG, with the colours it has at that moment.

import { h } from "./dom";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "fill-opacity", "stroke-opacity",
  "font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline", "display", "visibility"];

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const a = h("a", { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A copy that needs no style sheet. */
function standalone(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((e, i) => {
    const style = getComputedStyle(e);
    const own = STYLES.map((k) => [k, style.getPropertyValue(k)]).filter(([, v]) => v && v !== "none" || v === "none");
    to[i].setAttribute("style", own.map(([k, v]) => `${k}:${v}`).join(";"));
    for (const a of ["tabindex", "role", "class"]) to[i].removeAttribute(a);
  });
  const box = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(Math.round(box.width)));
  copy.setAttribute("height", String(Math.round(box.height)));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const background = getComputedStyle(document.body).backgroundColor;
  copy.style.background = background;
  return copy;
}

function svgText(svg: SVGSVGElement): string {
  return new XMLSerializer().serializeToString(standalone(svg));
}

async function png(svg: SVGSVGElement): Promise<Blob> {
  const box = svg.getBoundingClientRect();
  const image = new Image();
  const loaded = new Promise<void>((ok, bad) => { image.onload = () => ok(); image.onerror = () => bad(new Error("no picture")); });
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(svg));
  await loaded;
  const scale = Math.min(2, 8000 / Math.max(box.width, box.height));
  const canvas = h("canvas", { width: Math.ceil(box.width * scale), height: Math.ceil(box.height * scale) });
  const draw = canvas.getContext("2d");
  if (!draw) throw new Error("no canvas");
  draw.fillStyle = getComputedStyle(document.body).backgroundColor;
  draw.fillRect(0, 0, canvas.width, canvas.height);
  draw.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((ok, bad) => canvas.toBlob((b) => (b ? ok(b) : bad(new Error("no picture"))), "image/png"));
}

/** Buttons that save the largest picture of the view that is shown. */
export function exportTools(view: () => HTMLElement): HTMLElement[] {
  const picture = (): SVGSVGElement | undefined =>
    [...view().querySelectorAll<SVGSVGElement>("svg.picture")].sort((a, b) => {
      const x = a.getBoundingClientRect(), y = b.getBoundingClientRect();
      return y.width * y.height - x.width * x.height;
    })[0];
  const button = (what: string, act: (svg: SVGSVGElement) => void): HTMLButtonElement => {
    const b: HTMLButtonElement = h("button", { type: "button", id: "save-" + what.toLowerCase(), click: () => {
      const svg = picture();
      if (svg) return act(svg);
      b.textContent = "No picture in this view";
      setTimeout(() => { b.textContent = `Save ${what}`; }, 2000);
      return undefined;
    } }, `Save ${what}`);
    return b;
  };
  return [
    button("SVG", (svg) => save(new Blob([svgText(svg)], { type: "image/svg+xml" }), "witty-profiler.svg")),
    button("PNG", (svg) => void png(svg).then((b) => save(b, "witty-profiler.png"))),
  ];
}
