// One list of answers under its name.

import { h } from "./dom.js";
import { arrows, rightness, tile } from "./tiles.js";

export function answers(name, id, choose, left) {
  const list = h("ol", { class: "tiles", "aria-labelledby": id, onpointerleave: left });
  const title = h("h3", { id }, name);
  const score = h("span", { class: "soft" });
  const element = h("section", { class: "answers" }, h("div", { class: "row" }, title, score), list);
  arrows(list);
  return {
    element,
    rename: (text) => (title.textContent = text),
    show({ query, items, distances, marks, only, chosen }) {
      const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
      list.classList.toggle(
        "texts",
        items.some((item) => !item.picture && item.text),
      );
      list.replaceChildren(
        ...items.map((item, rank) =>
          tile(
            {
              query,
              item,
              distance: distances[rank],
              rank,
              mark: marks?.get(item.id),
              only,
              chosen: item.id === chosen,
            },
            choose,
          ),
        ),
      );
      const right = items.map((item) => rightness(query, item)).filter(Boolean);
      score.textContent = right.length
        ? `${right.filter((one) => one === "right").length} of ${right.length} right`
        : "";
      const tiles = [...list.querySelectorAll(".tile")];
      if (tiles.length && !tiles.some((one) => one.tabIndex === 0)) tiles[0].tabIndex = 0;
      if (focused !== null) tiles.find((one) => one.dataset.id === focused)?.focus();
    },
    point(id) {
      for (const one of list.querySelectorAll(".tile")) {
        const here = one.dataset.id === String(id);
        one.tabIndex = here ? 0 : -1;
        if (here) one.setAttribute("aria-current", "true");
        else one.removeAttribute("aria-current");
      }
      const tiles = [...list.querySelectorAll(".tile")];
      if (tiles.length && !tiles.some((one) => one.tabIndex === 0)) tiles[0].tabIndex = 0;
    },
  };
}
