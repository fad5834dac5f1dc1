// Plot of T(n) of the current case, with a preview line.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 300, LEFT = 68, RIGHT = 24, TOP = 16, BOTTOM = 44;

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
};

// The line through the medians at the smallest and the largest n above 0, in ns. It is only a preview: the program fits.
export function preview(rows) {
  const byN = Map.groupBy(rows, (row) => row[0]);
  const ns = [...byN.keys()].filter((n) => n > 0).sort((a, b) => a - b);
  if (ns.length < 2) return null;
  const [low, high] = [ns[0], ns[ns.length - 1]];
  const at = (n) => median(byN.get(n).map((row) => row[2]));
  const slope = (at(high) - at(low)) / (high - low);
  return { low, high, slope, fixed: at(low) - slope * low };
}

const UNITS = [[1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [Infinity, 1e9, "s"]];

// A time in ns as text with a unit and three digits.
export function time(ns) {
  const [, scale, unit] = UNITS.find(([limit]) => Math.abs(ns) < limit * 0.9995);
  return `${(ns / scale).toPrecision(3)} ${unit}`;
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function ticks(top, count) {
  const raw = top / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => i * step);
}

export function draw(svg, rows, title) {
  const width = Math.max(280, svg.parentElement.clientWidth);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const line = preview(rows);
  const description = line
    ? `${title}: ${rows.length} samples up to n = ${line.high}; the preview line rises ${time(line.slope)} a unit`
    : `${title}: ${rows.length} samples`;
  svg.setAttribute("aria-label", `Time T(n) against n. ${description}.`);
  if (!rows.length) return svg.replaceChildren();
  const maxN = Math.max(1, ...rows.map((row) => row[0]));
  const maxT = Math.max(1, ...rows.map((row) => row[2]));
  const x = (n) => LEFT + (n / maxN) * (width - LEFT - RIGHT);
  const y = (t) => HEIGHT - BOTTOM - (t / maxT) * (HEIGHT - TOP - BOTTOM);
  const parts = [];
  for (const t of ticks(maxT, 4)) {
    parts.push(element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(t), y2: y(t) }));
    parts.push(element("text", { x: LEFT - 8, y: y(t) + 4, "text-anchor": "end" }, t ? time(t) : "0"));
  }
  for (const n of ticks(maxN, width < 450 ? 3 : 5)) {
    parts.push(element("text", { x: x(n), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, n.toLocaleString("en")));
  }
  parts.push(element("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "n, units in the window"));
  if (line) {
    const at = (n) => y(Math.max(0, line.fixed + line.slope * n));
    parts.push(element("line", { class: "preview", x1: x(0), y1: at(0), x2: x(line.high), y2: at(line.high) }));
    parts.push(element("text", { class: "mark", x: x(line.high * 0.5), y: at(line.high * 0.5) - 10, "text-anchor": "end" }, "preview"));
  }
  for (const [n, , total] of rows) parts.push(element("circle", { cx: x(n), cy: y(total), r: 3.5 }));
  svg.replaceChildren(...parts);
}
