// Precision against the number of bits: a line, the position of the slider on it, and the same as a table.

import { h, svg } from "./dom.js";

const WIDTH = 320;
const HEIGHT = 132;
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 8, 10, 20];

const across = (n, most) => LEFT + ((n - 1) / Math.max(1, most - 1)) * (WIDTH - LEFT - RIGHT);

export function precisionAt(curve, n) {
  const { n_bits: bits, precision } = curve;
  const after = bits.findIndex((one) => one >= n);
  if (after === -1) return precision.at(-1);
  if (after === 0 || bits[after] === n) return precision[after];
  const share = (n - bits[after - 1]) / (bits[after] - bits[after - 1]);
  return precision[after - 1] + share * (precision[after] - precision[after - 1]);
}

export function chart(curve, most, k) {
  const all = [...curve.precision, ...(curve.vectors == null ? [] : [curve.vectors])];
  const floor = Math.max(0, Math.floor(10 * Math.min(...all)) / 10);
  const up = (value) => TOP + (1 - (value - floor) / (1 - floor || 1)) * (HEIGHT - TOP - BOTTOM);
  const grid = [floor, (floor + 1) / 2, 1].map((value) => [
    svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: up(value), y2: up(value), class: "grid" }),
    svg("text", { x: LEFT - 6, y: up(value) + 3.5, class: "tick", "text-anchor": "end" }, value.toFixed(2)),
  ]);
  const ends = [1, most].map((n) =>
    svg(
      "text",
      { x: across(n, most), y: HEIGHT - 5, class: "tick", "text-anchor": n === 1 ? "start" : "end" },
      n === 1 ? "1 bit" : `${n} bits`,
    ),
  );
  const points = curve.n_bits.map((n, i) => `${across(n, most).toFixed(1)},${up(curve.precision[i]).toFixed(1)}`);
  const here = svg("g", { class: "here" }, svg("line", { y1: TOP, y2: HEIGHT - BOTTOM }), svg("circle", { r: 5 }));
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      class: "chart",
      role: "img",
      "aria-label": `Precision of the ${k} nearest against the number of bits`,
    },
    grid,
    ends,
    curve.vectors != null &&
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: up(curve.vectors), y2: up(curve.vectors), class: "floats" }),
    svg("polyline", { points: points.join(" "), class: "line" }),
    points.map((point) => svg("circle", { cx: point.split(",")[0], cy: point.split(",")[1], r: 2.2, class: "dot" })),
    here,
  );
  const move = (n) => {
    const [x, y] = [across(n, most), up(precisionAt(curve, n))];
    here.firstChild.setAttribute("x1", x);
    here.firstChild.setAttribute("x2", x);
    here.lastChild.setAttribute("cx", x);
    here.lastChild.setAttribute("cy", y);
  };
  return { element: h("figure", {}, drawing, legend(curve, k), table(curve)), move };
}

function legend(curve, k) {
  return h(
    "figcaption",
    {},
    `Share of right ones among the ${k} nearest, by ${curve.queries} queries`,
    curve.vectors != null &&
      h("span", {}, h("i", { class: "dash", "aria-hidden": "true" }), ` vectors: ${curve.vectors.toFixed(3)}`),
  );
}

function table(curve) {
  const rows = curve.n_bits.map((n, i) =>
    h("tr", {}, h("th", { scope: "row" }, n), h("td", {}, curve.precision[i].toFixed(3))),
  );
  return h(
    "details",
    {},
    h("summary", {}, "As a table"),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Bits"), h("th", { scope: "col" }, "Precision"))),
      h("tbody", {}, rows),
    ),
  );
}
