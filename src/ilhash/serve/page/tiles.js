// A list of answers: pictures or texts with rank, distance, right or wrong, and how they stand to the other list.
// One of them is in the tab order; arrows go to the others.

import { h } from "./dom.js";
import { face, hasLabel, named } from "./item.js";
import { judged } from "./judging.js";
import { words } from "./marks.js";

const GLYPHS = { right: "✓", wrong: "✗" };

export function rightness(query, item) {
  if (query.kind !== "item" || !hasLabel(query.item) || !hasLabel(item)) return null;
  return String(item.label) === String(query.item.label) ? "right" : "wrong";
}

// Three digits that say something, whatever the scale of the vectors or margins.
function distanceText(distance) {
  if (Number.isInteger(distance)) return String(distance);
  return distance >= 100 ? distance.toFixed(0) : distance.toPrecision(3);
}

function judgement(query, item) {
  const similar = query.kind === "item" ? judged(query.item.id, item.id) : undefined;
  if (similar === undefined) return null;
  return similar ? { text: "similar", glyph: "≈" } : { text: "not similar", glyph: "≠" };
}

export function tile({ query, item, distance, rank, mark, only, chosen }, choose) {
  const right = rightness(query, item);
  const moved = words(mark, only);
  const said = judgement(query, item);
  const spoken = [
    `${rank + 1}. ${named(item)}`,
    right,
    `distance ${distanceText(distance)}`,
    moved,
    said && `judged ${said.text}`,
  ];
  return h(
    "li",
    {},
    h(
      "button",
      {
        type: "button",
        class: ["tile", right, moved && "marked"].filter(Boolean).join(" "),
        "data-id": item.id,
        "aria-label": spoken.filter(Boolean).join(", "),
        "aria-current": chosen ? "true" : null,
        tabindex: chosen ? "0" : "-1",
        onclick: () => choose(item),
        onfocus: () => choose(item),
        onpointerenter: () => choose(item, true),
      },
      face(item),
      h(
        "span",
        { class: "caption", "aria-hidden": "true" },
        hasLabel(item) && h("span", { class: "label" }, right && h("b", {}, GLYPHS[right]), ` ${item.label}`),
        h("span", { class: "distance" }, distanceText(distance)),
      ),
      (moved || said) &&
        h(
          "span",
          { class: "marks", "aria-hidden": "true" },
          moved && h("span", { class: "mark" }, moved),
          said && h("span", { class: "mark judged" }, `${said.glyph} ${said.text}`),
        ),
    ),
  );
}

// Arrow keys in a grid of tiles: left and right by one, up and down by a row as it is laid out now.
export function arrows(list) {
  list.addEventListener("keydown", (event) => {
    const tiles = [...list.querySelectorAll(".tile")];
    const here = tiles.indexOf(document.activeElement);
    if (here === -1 || event.ctrlKey || event.altKey || event.metaKey) return;
    const top = tiles[0].offsetTop;
    const across = tiles.filter((one) => one.offsetTop === top).length;
    const steps = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: across,
      ArrowUp: -across,
      Home: -here,
      End: tiles.length - 1 - here,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    tiles[Math.min(tiles.length - 1, Math.max(0, here + steps[event.key]))].focus();
  });
}
