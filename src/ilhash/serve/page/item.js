// An item as it is shown everywhere: its picture, else its text, else its id.

import { h } from "./dom.js";
import { picture } from "./picture.js";

export const hasLabel = (item) => item?.label !== null && item?.label !== undefined;

export function face(item, long = false) {
  if (item.picture) return picture(item);
  if (item.text) return h("span", { class: long ? "text long" : "text" }, item.text);
  return h("span", { class: "name" }, String(item.id));
}

export function named(item) {
  const text = item.text ? `“${item.text.slice(0, 80)}”` : `item ${item.id}`;
  return hasLabel(item) ? `${text}, label ${item.label}` : text;
}

// A small item that makes its list's choice: used where a bit or a change is shown.
export function thumb(item, onclick, note = null) {
  return h(
    "li",
    {},
    h(
      "button",
      {
        class: "thumb",
        type: "button",
        title: `Search for item ${item.id}`,
        "aria-label": `Search for ${named(item)}${note ? `, ${note}` : ""}`,
        onclick,
      },
      face(item),
      hasLabel(item) && h("span", { class: "label" }, String(item.label)),
      note && h("span", { class: "mark" }, note),
    ),
  );
}
