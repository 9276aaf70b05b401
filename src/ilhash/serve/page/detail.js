// One answer looked at closely: beside the query, which bits differ, and what a person says of it.

import { h } from "./dom.js";
import { difference } from "./difference.js";
import { face, hasLabel } from "./item.js";
import { judged } from "./judging.js";
import { nBits, whyNot } from "./service.js";

export function detail({ judge, search }) {
  const body = h("div", {});
  const element = h(
    "section",
    { class: "card detail", "aria-labelledby": "detail-title" },
    h("h2", { id: "detail-title" }, "Why this one"),
    body,
  );
  return {
    element,
    show(query, code, item, used) {
      if (!item) {
        body.replaceChildren(h("p", { class: "help" }, "Choose an answer to see which bits it shares with the query."));
        return;
      }
      body.replaceChildren(
        h(
          "div",
          { class: "looked" },
          face(item, true),
          h(
            "p",
            {},
            h("strong", {}, `Item ${item.id}`),
            hasLabel(item) && h("span", { class: "soft" }, `label ${item.label}`),
            h("button", { type: "button", class: "plain", onclick: () => search(item) }, "Search for it"),
          ),
        ),
        difference(code, item.code, nBits(), used) ?? "",
        verdict(query, item, judge),
      );
    },
  };
}

function verdict(query, item, judge) {
  const why = query.kind === "drawn" ? "A drawing is not an item: it cannot be judged." : whyNot();
  if (why) return h("p", { class: "note" }, why);
  const before = judged(query.item.id, item.id);
  const button = (similar, text, key) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(before === similar),
        "aria-keyshortcuts": key,
        onclick: () => judge(item, similar),
      },
      text,
      h("kbd", { "aria-hidden": "true" }, key),
    );
  return h(
    "div",
    { class: "verdict", role: "group", "aria-label": "Does it belong to the query?" },
    button(true, "≈ Similar", "S"),
    button(false, "≠ Not similar", "D"),
  );
}
