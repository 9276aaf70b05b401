// "Learn from these": starts the training of new bits, follows it, and says what came of it.

import { get, post } from "./api.js";
import { h, share } from "./dom.js";
import { say, told } from "./say.js";
import { canLearn } from "./service.js";
import { events } from "./stream.js";

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function learningCard({ before, done, why }) {
  const button = h("button", { type: "button", class: "main", onclick: () => start() }, "Learn from these");
  const bar = h("progress", { "aria-label": "Learning", max: 1, value: 0, hidden: true });
  const result = h("div", { class: "result", role: "status" });
  const element = h("div", { class: "learning" }, button, bar, result);
  button.disabled = Boolean(why) || !canLearn();
  if (!why && !canLearn())
    result.append(
      h(
        "p",
        { class: "note" },
        "Vectors of the items are not kept here, so nothing can be learnt here; judgements are kept.",
      ),
    );

  async function start() {
    button.disabled = true;
    result.replaceChildren();
    const kept = await told(before);
    const task = await told(() => post("/v1/learning", {}));
    if (task) await follow(kept);
    else button.disabled = false;
  }

  async function follow(kept) {
    bar.hidden = false;
    const last = await told(async () => {
      let state = null;
      for await (state of events("/v1/learning/events")) show(state);
      return state?.state === "running" || !state ? get("/v1/learning") : state;
    });
    bar.hidden = true;
    button.disabled = false;
    if (last) finish(last, kept);
  }

  function show(state) {
    if (state.total) Object.assign(bar, { max: state.total, value: state.done });
    else bar.removeAttribute("value");
  }

  function finish(state, kept) {
    const better = state.state === "done";
    const title =
      { done: `${state.n_new} new bits joined.`, unchanged: "The model stays as it is.", failed: "Learning failed." }[
        state.state
      ] ?? state.state;
    const parts = [
      h("h3", {}, title),
      better &&
        h(
          "p",
          {},
          `Of judged pairs that were held out, ${share(state.after)} are in the right order with the new bits, ${share(state.before)} without.`,
        ),
      h("p", { class: "soft" }, capital(state.reason ?? "")),
      state.state === "unchanged" && h("p", {}, "More judgements say more: judge some pairs, and try again."),
    ];
    result.replaceChildren(...parts.filter(Boolean));
    say(title);
    if (better) told(() => done(kept));
  }

  // One that is running already, of this page before it was loaded again or of somebody else.
  get("/v1/learning").then(
    (state) => state.state === "running" && follow(null),
    () => undefined,
  );
  return { element };
}
