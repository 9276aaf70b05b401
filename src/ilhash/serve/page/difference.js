// Which bits differ between the query and an answer: a field of bits, and the numbers of those that differ.

import { bitsOf, differing } from "./codes.js";
import { count, h, svg } from "./dom.js";

const MANY = 24;

export function difference(queryCode, itemCode, all, used) {
  if (!queryCode || !itemCode) return null;
  const differ = differing(queryCode, itemCode, all);
  const within = differ.filter((bit) => bit < used);
  return h(
    "div",
    { class: "difference" },
    h(
      "p",
      {},
      within.length
        ? `${count(within.length, "bit")} of ${used} ${within.length === 1 ? "differs" : "differ"}.`
        : `All ${used} bits agree.`,
    ),
    field(bitsOf(queryCode, all), new Set(differ), used),
    within.length > 0 &&
      h(
        "p",
        { class: "numbers" },
        within.slice(0, MANY).map((bit) => h("a", { href: `#bits/${bit}` }, String(bit))),
        within.length > MANY && h("span", { class: "help" }, ` and ${within.length - MANY} more`),
      ),
  );
}

function field(bits, differ, used) {
  const across = bits.length <= 64 ? 16 : 32;
  const rows = Math.ceil(bits.length / across);
  const cells = bits.map((bit, i) => {
    const [x, y] = [(i % across) * 10, Math.floor(i / across) * 10];
    const kind = [differ.has(i) ? "differs" : bit ? "one" : "zero", i >= used && "unused"].filter(Boolean).join(" ");
    return svg(
      "g",
      { class: kind },
      svg("title", {}, `Bit ${i}: ${differ.has(i) ? `query ${bit}, answer ${1 - bit}` : `both ${bit}`}`),
      svg("rect", { x: x + 1, y: y + 1, width: 8, height: 8, rx: 2 }),
      differ.has(i) && svg("path", { d: `M${x + 3} ${y + 3}l4 4m0-4l-4 4` }),
    );
  });
  const text = `The ${bits.length} bits of the query; crossed ones differ: ${[...differ].join(", ") || "none"}`;
  return svg(
    "svg",
    { class: "field", viewBox: `0 0 ${10 * across} ${10 * rows}`, role: "img", "aria-label": text },
    cells,
  );
}
