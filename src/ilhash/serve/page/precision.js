// The slider of the number of bits with precision drawn beside it, where labels exist.

import { get } from "./api.js";
import { chart } from "./chart.js";
import { h } from "./dom.js";
import { labelled, nBits } from "./service.js";
import { slider } from "./slider.js";
import { told } from "./say.js";

export function bitsCard(used, k, moved) {
  const place = h("div", { class: "precision" });
  let drawn = null;
  let at = used;
  const element = h(
    "section",
    { class: "card", "aria-labelledby": "bits-title" },
    h("h2", { id: "bits-title", class: "unseen" }, "Number of bits"),
    slider(nBits(), used, (n) => {
      at = n;
      drawn?.move(n);
      moved(n);
    }),
    place,
  );
  async function draw() {
    if (!labelled()) {
      place.replaceChildren(h("p", { class: "help" }, "The items have no labels, so precision cannot be drawn."));
      return;
    }
    place.setAttribute("aria-busy", "true");
    const curve = await told(() => get(`/v1/precision?k=${k}`));
    place.removeAttribute("aria-busy");
    if (!curve) return;
    drawn = chart(curve, nBits(), k);
    drawn.move(at);
    const wide = window.matchMedia("(min-width: 46rem)").matches;
    place.replaceChildren(h("details", { open: wide }, h("summary", {}, "Precision against bits"), drawn.element));
  }
  return { element, draw };
}
