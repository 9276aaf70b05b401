// The number of bits: a slider, and the number that it stands at.

import { h } from "./dom.js";

export function slider(most, value, moved) {
  const shown = h("output", { for: "n-bits" }, String(value));
  const field = h("input", {
    id: "n-bits",
    type: "range",
    min: 1,
    max: most,
    step: 1,
    value,
    "aria-describedby": "n-bits-help",
  });
  field.addEventListener("input", () => {
    shown.textContent = field.value;
    moved(Number(field.value));
  });
  const element = h(
    "div",
    { class: "slider" },
    h("label", { for: "n-bits" }, "Bits ", shown, h("span", { class: "soft" }, ` of ${most}`)),
    field,
    h("p", { id: "n-bits-help", class: "help" }, "The first bits of a code are a code themselves."),
  );
  return element;
}

// Calls at most once in so many milliseconds, with the latest arguments.
export function settled(work, wait = 60) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), wait);
  };
}
