// The view of the bits: what each of them splits, and which of them say nearly the same.

import { get } from "./api.js";
import { bitDetail } from "./bit.js";
import { count, h, share, svg } from "./dom.js";
import { told } from "./say.js";
import { service } from "./service.js";

const STEP = 13; // from one class's column to the next
const SAME = 0.8; // correlation from which two bits are nearly the same
const ORDERS = {
  number: ["Number", (one, other) => one.bit - other.bit],
  balance: ["Balance: even first", (one, other) => Math.abs(one.balance - 0.5) - Math.abs(other.balance - 0.5)],
  alike: ["Most like another", (one, other) => strongest(other) - strongest(one)],
  generation: ["Latest generation", (one, other) => other.generation - one.generation || one.bit - other.bit],
};

const strongest = (bit) => Math.max(0, ...bit.nearest.map((one) => Math.abs(one.correlation)));

let loaded = null;

export function forgetBits() {
  loaded = null;
}

export async function open(view, chosen) {
  const there = loaded !== null;
  if (!there) {
    view.setAttribute("aria-busy", "true");
    loaded = await told(() => get("/v1/bits"));
    view.removeAttribute("aria-busy");
    if (!loaded) return;
    build(view);
  }
  await show(view, chosen ?? 0, there && chosen !== undefined);
}

function build(view) {
  const body = h("tbody", {});
  const select = h(
    "select",
    { id: "bits-order", onchange: () => fillRows(body, select.value) },
    Object.entries(ORDERS).map(([value, [name]]) => h("option", { value }, name)),
  );
  const classes = labels();
  const table = h(
    "table",
    { class: "bits" },
    h("caption", { class: "unseen" }, "The bits of the model"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Bit"),
        h("th", { scope: "col" }, "Ones"),
        classes.length > 0 && h("th", { scope: "col" }, "Ones by class", names(classes)),
        h("th", { scope: "col" }, "Nearly the same"),
      ),
    ),
    body,
  );
  view.replaceChildren(
    h(
      "section",
      { class: "found", "aria-labelledby": "all-bits" },
      h(
        "div",
        { class: "row bar" },
        h("h2", { id: "all-bits" }, count(loaded.bits.length, "bit")),
        h("div", { class: "choice" }, h("label", { for: "bits-order" }, "Sort by"), select),
      ),
      h("p", { class: "help" }, introduction(classes)),
      h("div", { class: "scroll" }, table),
    ),
    h("section", { class: "card detail", id: "bit", "aria-labelledby": "bit-title", tabindex: "-1" }),
  );
  fillRows(body, select.value);
}

function introduction(classes) {
  const of = `Each bit splits the items in two; shares are of ${count(loaded.sample, "item")}.`;
  return classes.length
    ? `${of} A column for each class, ${classes[0]} to ${classes.at(-1)}: the fuller it is, the more of the class have a one.`
    : of;
}

// The names of the classes over their columns, where they are short enough.
function names(classes) {
  if (classes.some((name) => name.length > 2)) return null;
  const texts = classes.map((name, i) => svg("text", { x: STEP * i + (STEP - 1) / 2, y: 10 }, name));
  const wide = STEP * classes.length - 1;
  return svg(
    "svg",
    { class: "names", viewBox: `0 0 ${wide} 12`, width: wide, height: 12, "aria-hidden": "true" },
    texts,
  );
}

const labels = () => Object.keys(loaded.bits[0]?.split ?? {});

function fillRows(body, order) {
  body.replaceChildren(...[...loaded.bits].sort(ORDERS[order][1]).map(row));
}

function row(one) {
  const same = one.nearest.filter(({ correlation }) => Math.abs(correlation) >= SAME);
  return h(
    "tr",
    { "data-bit": one.bit },
    h("th", { scope: "row" }, h("a", { href: `#bits/${one.bit}` }, String(one.bit))),
    h("td", {}, balance(one.balance)),
    one.split && h("td", {}, classesSplit(one.split)),
    h(
      "td",
      {},
      same.length
        ? same.map(({ bit, correlation }) =>
            h(
              "a",
              { class: "alike", href: `#bits/${bit}` },
              `${bit} (${correlation < 0 ? "−" : ""}${Math.abs(correlation).toFixed(2)})`,
            ),
          )
        : h("span", { class: "soft" }, "–"),
    ),
  );
}

function balance(value) {
  return h(
    "span",
    { class: "balance" },
    svg(
      "svg",
      { viewBox: "0 0 60 8", "aria-hidden": "true" },
      svg("rect", { class: "rest", width: 60, height: 8, rx: 2 }),
      svg("rect", { class: "ones", width: (60 * value).toFixed(1), height: 8, rx: 2 }),
      svg("line", { x1: 30, x2: 30, y1: 0, y2: 8 }),
    ),
    share(value),
  );
}

export function classesSplit(split, tall = 20) {
  const entries = Object.entries(split);
  const text = entries.map(([label, value]) => `${label}: ${share(value)}`).join(", ");
  const columns = entries.map(([label, value], i) =>
    svg(
      "g",
      {},
      svg("title", {}, `${label}: ${share(value)} ones`),
      svg("rect", { class: "rest", x: STEP * i, width: STEP - 1, height: tall, rx: 1 }),
      svg("rect", {
        class: "ones",
        x: STEP * i,
        y: (tall * (1 - value)).toFixed(1),
        width: STEP - 1,
        height: (tall * value).toFixed(1),
        rx: 1,
      }),
    ),
  );
  return svg(
    "svg",
    {
      class: "split",
      viewBox: `0 0 ${STEP * entries.length - 1} ${tall}`,
      width: STEP * entries.length - 1,
      role: "img",
      "aria-label": text,
    },
    columns,
  );
}

async function show(view, chosen, wanted) {
  const one = loaded.bits[Math.min(Math.max(chosen, 0), loaded.bits.length - 1)];
  for (const line of view.querySelectorAll("tr[data-bit]"))
    line.classList.toggle("chosen", line.dataset.bit === String(one.bit));
  const place = view.querySelector("#bit");
  const { generations } = service.info.model;
  const generation = generations.length > 1 ? generations.find(({ number }) => number === one.generation) : null;
  await bitDetail(place, one, generation);
  if (wanted) {
    place.focus({ preventScroll: true });
    place.scrollIntoView({ block: "nearest" });
  }
}
