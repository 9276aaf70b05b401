// One bit looked at closely: the items that it is surest of, on both sides.

import { get } from "./api.js";
import { h, share } from "./dom.js";
import { thumb } from "./item.js";
import { told } from "./say.js";

export async function bitDetail(place, one, generation) {
  const full = await told(() => get(`/v1/bits/${one.bit}?limit=8`));
  if (!full) return;
  place.replaceChildren(
    h("h2", { id: "bit-title" }, `Bit ${one.bit}`),
    h(
      "p",
      { class: "soft" },
      `${share(one.balance, 1)} of the items have a one.`,
      generation ? ` It came with “${generation.name || generation.method}”.` : "",
    ),
    ...(full.split ? [splitTable(full.split)] : []),
    ...(full.surest_one.length + full.surest_zero.length
      ? [side("Surest of one", "one", full.surest_one), side("Surest of zero", "zero", full.surest_zero)]
      : [h("p", { class: "note" }, "Vectors of the items are not kept here, so it cannot say which it is surest of.")]),
  );
}

function side(title, id, items) {
  return h(
    "div",
    {},
    h("h3", { id: `surest-${id}` }, title),
    h(
      "ul",
      { class: "thumbs", "aria-labelledby": `surest-${id}` },
      items.map((item) => thumb(item, () => (location.hash = `#search/${encodeURIComponent(item.id)}`))),
    ),
  );
}

function splitTable(split) {
  const rows = Object.entries(split).map(([label, value]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, label),
      h("td", {}, h("meter", { min: 0, max: 1, value, "aria-label": `Share of ones in class ${label}` }), share(value)),
    ),
  );
  return h(
    "details",
    {},
    h("summary", {}, "Share of ones in each class"),
    h("table", { class: "shares" }, h("tbody", {}, rows)),
  );
}
