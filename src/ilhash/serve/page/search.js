// The view of a search: the query and its nearest items, beside them a second order, and one answer looked at closely.

import { post } from "./api.js";
import { answers } from "./answers.js";
import { forget, look, some } from "./catalogue.js";
import { detail } from "./detail.js";
import { h } from "./dom.js";
import { judge as give, sentence } from "./judging.js";
import { against, alone } from "./marks.js";
import { bitsCard } from "./precision.js";
import { queryCard } from "./query.js";
import { say, told, trouble } from "./say.js";
import { search } from "./searching.js";
import { secondChoice, secondSearch } from "./second.js";
import { limitOfK, nBits, service, whyNot } from "./service.js";
import { settled } from "./slider.js";

const KS = [10, 20, 50];
const CURVE_K = 10;

const state = { query: null, code: null, used: 0, k: KS[1], second: "", first: null, other: null, chosen: null };
let running = null;
let parts = null;

export function build(view) {
  state.used = nBits();
  const query = queryCard({ random, byItem, drawn, cleared });
  const bits = bitsCard(
    state.used,
    CURVE_K,
    settled((n) => run({ used: n })),
  );
  const closer = detail({ judge, search: (item) => ask({ kind: "item", item }) });
  const first = answers("", "first-title", choose, restore);
  const other = answers("", "other-title", choose, restore);
  other.element.hidden = true;
  const lists = h("div", { class: "lists" }, first.element, other.element);
  const nothing = h("p", { class: "help", hidden: true }, "Draw something: its nearest items come with every stroke.");
  const found = h(
    "section",
    { class: "found", "aria-labelledby": "found-title" },
    h(
      "div",
      { class: "row bar" },
      h("h2", { id: "found-title" }, "Nearest items"),
      howMany(),
      secondChoice(state.second, (second) => run({ second })),
    ),
    nothing,
    lists,
  );
  view.replaceChildren(h("div", { class: "left" }, query.element, bits.element), found, closer.element);
  view.onkeydown = keys;
  parts = { query, bits, closer, first, other, lists, nothing };
  bits.draw();
}

function howMany() {
  const select = h(
    "select",
    { id: "how-many", onchange: () => run({ k: Number(select.value) }) },
    KS.filter((k, i) => !i || k <= limitOfK()).map((k) => h("option", { value: k, selected: k === state.k }, k)),
  );
  return h("div", { class: "choice" }, h("label", { for: "how-many" }, "Show"), select);
}

export async function open(id) {
  if (id !== undefined) await byItem(id);
  else if (!state.query) await random();
}

// After learning: the same query, answered by the model that is there now, beside the first bits, which are the old one.
export async function again(view, before) {
  forget();
  state.second = before ? `bits:${before}` : state.second;
  build(view);
  if (state.query?.kind === "item") [state.query.item] = await look([state.query.item.id]);
  if (state.query) await ask(state.query);
}

const random = () =>
  told(async () => {
    const [item] = await some(1);
    if (item) await ask({ kind: "item", item });
    else trouble("There are no items here yet.");
  });

async function byItem(id) {
  await told(async () => {
    const [item] = await look([id]);
    if (item.code === null && item.text === null && item.label === null) trouble(`There is no item ${id}.`);
    else await ask({ kind: "item", item });
  });
}

const drawn = (vector) => ask({ kind: "drawn", vector });

function cleared() {
  running?.abort();
  Object.assign(state, { query: null, first: null, other: null, chosen: null });
  parts.query.show(null);
  parts.lists.hidden = true;
  parts.nothing.hidden = false;
  parts.closer.show(null, null, null, state.used);
}

async function ask(query) {
  Object.assign(state, { query, chosen: null, code: query.item?.code ?? null });
  parts.query.show(query);
  parts.closer.element.classList.remove("held");
  if (query.kind === "item") history.replaceState(null, "", `#search/${encodeURIComponent(query.item.id)}`);
  await run({});
}

// Search anew with what has changed; whatever was still on its way is given up.
async function run(changes) {
  Object.assign(state, changes);
  if (!state.query) return;
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  parts.lists.setAttribute("aria-busy", "true");
  await told(async () => {
    const { query, k } = state;
    const beside = state.second && secondSearch(state.second);
    const [first, other, code] = await Promise.all([
      search(query, { k, n_bits: state.used }, signal),
      beside ? search(query, { k, ...beside.search }, signal) : null,
      state.code ?? post("/v1/encode", { vectors: [query.vector] }, signal).then(({ codes }) => codes[0]),
    ]);
    const items = await look(first.ids, signal);
    const beyond = other && (await look(other.ids, signal));
    signal.throwIfAborted(); // what was known already is not asked for, and so not given up
    state.code = code;
    state.first = { ...first, items };
    state.other = other && { ...other, items: beyond, name: beside.name };
    if (!first.ids.includes(state.chosen) && !other?.ids.includes(state.chosen)) state.chosen = first.ids[0] ?? null;
    show();
    say(`${state.first.ids.length} items, by ${state.used} bits${state.other ? `, beside: ${state.other.name}` : ""}.`);
  });
  if (!signal.aborted) parts.lists.removeAttribute("aria-busy");
}

function show() {
  const { query, first, other, chosen } = state;
  parts.lists.hidden = false;
  parts.nothing.hidden = true;
  parts.lists.classList.toggle("two", Boolean(other));
  parts.first.rename(`${state.used === nBits() ? "All" : "First"} ${state.used} bits`);
  parts.first.show({ query, ...first, marks: other && alone(first.ids, other.ids), only: "only here", chosen });
  parts.other.element.hidden = !other;
  if (other) {
    parts.other.rename(other.name);
    parts.other.show({ query, ...other, marks: against(other.ids, first.ids), only: "only here", chosen });
  }
  restore();
}

const shownItem = (id) => [...(state.first?.items ?? []), ...(state.other?.items ?? [])].find((item) => item.id === id);

function restore() {
  if (state.query) parts.closer.show(state.query, state.code, shownItem(state.chosen), state.used);
}

function choose(item, passing = false) {
  if (!passing && item.id !== state.chosen) {
    state.chosen = item.id;
    parts.first.point(item.id);
    parts.other.point(item.id);
    parts.closer.element.classList.add("held");
  }
  parts.closer.show(state.query, state.code, item, state.used);
}

async function judge(item, similar) {
  const { query } = state;
  if (!item || query?.kind !== "item" || whyNot()) return;
  await told(async () => {
    await give(query.item.id, item.id, similar);
    say(`${sentence(query.item.id, item.id, similar)} ${service.info.feedback.judgements} judgements.`);
    show();
  });
}

// S and D judge the answer that the focus is on, and move on to the next one.
function keys(event) {
  const on = event.target.closest(".tile");
  if (!on || event.ctrlKey || event.altKey || event.metaKey) return;
  const similar = { s: true, d: false }[event.key.toLowerCase()];
  if (similar === undefined) return;
  event.preventDefault();
  const next = on.closest("li").nextElementSibling?.querySelector(".tile");
  judge(shownItem(state.chosen), similar);
  next?.focus();
}

export const currentQuery = () => (state.query?.kind === "item" ? state.query.item : null);
