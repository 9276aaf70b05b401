// What learning changed in the answers: for some queries, what is new, what moved, what is gone.

import { look } from "./catalogue.js";
import { h } from "./dom.js";
import { face, hasLabel, named, thumb } from "./item.js";
import { against, gone, words } from "./marks.js";
import { search } from "./searching.js";

const K = 10;

export async function keep(queries) {
  return Promise.all(
    queries.map(async (item) => ({ item, ids: (await search({ kind: "item", item }, { k: K })).ids })),
  );
}

export async function changes(kept) {
  const now = await keep(kept.map(({ item }) => item));
  const all = await look([...new Set([...now, ...kept].flatMap(({ ids }) => ids))]);
  const items = new Map(all.map((item) => [item.id, item]));
  const rows = now.map(({ item, ids }, i) => one(item, ids, kept[i].ids, items));
  return h(
    "section",
    { class: "changes", "aria-labelledby": "changes-title" },
    h("h2", { id: "changes-title" }, "What changed in the answers"),
    rows,
  );
}

function one(query, now, before, items) {
  const marks = against(now, before);
  const lost = gone(now, before);
  const go = (id) => () => (location.hash = `#search/${encodeURIComponent(id)}`);
  const fresh = now.filter((id) => marks.get(id).only).length;
  return h(
    "article",
    { class: "change card" },
    h(
      "div",
      { class: "of" },
      face(query),
      h(
        "p",
        {},
        h("strong", {}, `Item ${query.id}`),
        hasLabel(query) && h("span", { class: "soft" }, `label ${query.label}`),
      ),
    ),
    h(
      "div",
      {},
      h("h3", {}, fresh ? `${fresh} of ${now.length} are new` : "The same items, in this order"),
      h(
        "ul",
        { class: "thumbs", "aria-label": `Now nearest to ${named(query)}` },
        now.map((id) => thumb(items.get(id), go(id), words(marks.get(id), "new") || null)),
      ),
      lost.length > 0 && h("h3", {}, "Gone"),
      lost.length > 0 &&
        h(
          "ul",
          { class: "thumbs gone", "aria-label": "No longer among them" },
          lost.map((id) => thumb(items.get(id), go(id), "gone")),
        ),
    ),
  );
}
