// The second order of choice: other distances, fewer bits or another model, beside the first.

import { h } from "./dom.js";
import { nBits, service } from "./service.js";

const ORDERS = {
  vectors: "Vectors (floats)",
  asymmetric: "Asymmetric distance",
  margins: "Codes, then margins",
};

export function seconds() {
  const { orders = [], models = [] } = service.info;
  const fewer = [];
  for (let n = 4; n < nBits(); n *= 2) fewer.push(n);
  return [
    ...orders
      .filter((order) => ORDERS[order])
      .map((order) => ({ value: `order:${order}`, name: ORDERS[order], group: "Another order" })),
    ...fewer.reverse().map((n) => ({ value: `bits:${n}`, name: `Only ${n} bits`, group: "Fewer bits" })),
    ...models
      .filter((model) => model !== "current")
      .map((model) => ({ value: `model:${model}`, name: model, group: "Another model" })),
  ];
}

export function secondChoice(chosen, changed) {
  const options = seconds();
  const groups = [...new Set(options.map((one) => one.group))];
  const select = h(
    "select",
    { id: "second", onchange: () => changed(select.value) },
    h("option", { value: "" }, "Nothing"),
    groups.map((group) =>
      h(
        "optgroup",
        { label: group },
        options
          .filter((one) => one.group === group)
          .map((one) => h("option", { value: one.value, selected: one.value === chosen }, one.name)),
      ),
    ),
  );
  return h("div", { class: "choice" }, h("label", { for: "second" }, "Compare with"), select);
}

// The part of a search that the second order changes, and its name.
export function secondSearch(value) {
  const [kind, what] = [value.slice(0, value.indexOf(":")), value.slice(value.indexOf(":") + 1)];
  if (kind === "order") return { search: { order: what, n_bits: null }, name: ORDERS[what] };
  if (kind === "bits") return { search: { order: "hamming", n_bits: Number(what) }, name: `Only ${what} bits` };
  return { search: { order: "hamming", n_bits: null, model: what }, name: what };
}
