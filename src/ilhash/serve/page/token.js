// The token of a service that asks for one: a form, and this tab's memory.

import { byId, h } from "./dom.js";

const KEY = "ilhash-token";
let asking = null;

export const token = () => sessionStorage.getItem(KEY);

// Ask once, however many requests are waiting for it.
export function askForToken() {
  asking ??= new Promise((resolve) => open(resolve)).finally(() => (asking = null));
  return asking;
}

function open(resolve) {
  const dialog = byId("token");
  const field = h("input", {
    id: "token-field",
    type: "password",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
  });
  const wrong = token() !== null;
  const form = h(
    "form",
    {
      method: "dialog",
      onsubmit: (event) => {
        event.preventDefault();
        sessionStorage.setItem(KEY, field.value.trim());
        dialog.close();
        resolve();
      },
    },
    h("h2", { id: "token-title" }, "This service asks for a token"),
    h(
      "p",
      {},
      "Whoever runs it has one for reading and one for writing. It stays in this tab and is forgotten with it.",
    ),
    h("p", { class: "trouble", role: "alert", hidden: !wrong }, wrong ? "The service does not know that token." : ""),
    h("label", { for: "token-field" }, "Token"),
    field,
    h("button", { class: "main" }, "Open"),
  );
  dialog.replaceChildren(form);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  if (!dialog.open) dialog.showModal();
  field.focus();
}
