// What is searched for: an item, a random one, or a drawn one.

import { h } from "./dom.js";
import { pad, preview } from "./draw.js";
import { face, hasLabel } from "./item.js";
import { asId, drawable, service, shape } from "./service.js";

export function queryCard({ random, byItem, drawn, cleared }) {
  const shown = h("div", { class: "shown" });
  const drawing = h("div", { class: "drawing", hidden: true });
  const field = h("input", {
    id: "query-id",
    inputmode: service.info.index.ids === "int" ? "numeric" : "text",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
  const open =
    drawable() &&
    h(
      "button",
      { type: "button", "aria-expanded": "false", "aria-controls": "drawing", onclick: () => toggle() },
      "Draw one",
    );
  drawing.id = "drawing";

  function toggle(show = drawing.hidden) {
    if (show && !drawing.childElementCount) fillDrawing();
    drawing.hidden = !show;
    shown.hidden = show && !shown.classList.contains("drawn");
    if (open) open.setAttribute("aria-expanded", String(show));
  }

  function fillDrawing() {
    const canvas = pad(shape(), drawn, cleared);
    drawing.append(
      canvas.element,
      h(
        "div",
        { class: "row" },
        h("span", { class: "help" }, "Mouse or finger"),
        h("button", { type: "button", onclick: canvas.clear }, "Clear"),
      ),
    );
  }

  const form = h(
    "form",
    {
      class: "row",
      onsubmit: (event) => {
        event.preventDefault();
        byItem(asId(field.value.trim()));
      },
    },
    h("label", { for: "query-id" }, "Id"),
    field,
    h("button", {}, "Go"),
  );

  const element = h(
    "section",
    { class: "card query", "aria-labelledby": "query-title" },
    h("h2", { id: "query-title" }, "Query"),
    shown,
    drawing,
    h(
      "div",
      { class: "row even" },
      h("button", { type: "button", class: "main", onclick: random }, "Random item"),
      open,
    ),
    form,
  );

  return {
    element,
    show(query) {
      const isDrawn = query?.kind === "drawn";
      shown.classList.toggle("drawn", isDrawn);
      shown.replaceChildren(...(query ? portrait(query) : [h("p", { class: "help" }, "Nothing is drawn yet.")]));
      shown.hidden = !query && !drawing.hidden;
      if (query && !isDrawn) {
        toggle(false);
        field.value = query.item.id;
      }
    },
  };
}

function portrait(query) {
  if (query.kind === "drawn") {
    return [
      preview(query.vector, shape()),
      h("p", {}, h("strong", {}, "Drawn"), h("span", { class: "help" }, "as the model sees it")),
    ];
  }
  const { item } = query;
  return [
    face(item, true),
    h(
      "p",
      {},
      h("strong", {}, `Item ${item.id}`),
      hasLabel(item) && h("span", { class: "soft" }, `label ${item.label}`),
    ),
  ];
}
