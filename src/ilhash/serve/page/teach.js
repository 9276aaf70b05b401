// The view of teaching: one pair after another, judged by click or key; then new bits are learnt from all judgements.

import { forget, look } from "./catalogue.js";
import { changes, keep } from "./changes.js";
import { count, h } from "./dom.js";
import { face, hasLabel, named } from "./item.js";
import { judge as give, judged, judgedIds, sentence } from "./judging.js";
import { learningCard } from "./learning.js";
import { answered, propose } from "./propose.js";
import { say, told } from "./say.js";
import { asId, refresh, service, whenInfo, whyNot } from "./service.js";

const ENOUGH = 40; // below, learning would say that they are too few
const SHOWN = 3; // queries whose answers are compared before and after

let parts = null;
let past = []; // pairs that were judged, for going back
let pair = null;
let busy = false;

export function build(view, { currentQuery, learnt }) {
  const why = whyNot();
  const stage = h("div", { class: "stage" });
  const counted = h("p", { class: "counted" });
  const changed = h("div", { class: "changed" });
  const learning = learningCard({
    why,
    before: () => keepAnswers(currentQuery()),
    done: (kept) => finish(kept, learnt),
  });
  view.replaceChildren(
    h(
      "section",
      { class: "card ask", "aria-labelledby": "teach-title", tabindex: "-1", onkeydown: keys },
      h("h2", { id: "teach-title" }, "Do these two belong together?"),
      why
        ? h("p", { class: "note" }, why)
        : h("p", { class: "help" }, "Have one notion in mind and answer by it, whatever the labels say."),
      stage,
    ),
    h(
      "section",
      { class: "card progressing", "aria-labelledby": "learn-title" },
      h("h2", { id: "learn-title" }, "Judgements"),
      counted,
      learning.element,
    ),
    changed,
  );
  parts = { stage, counted, changed };
  whenInfo(showCount);
  showCount();
}

export async function open() {
  if (whyNot()) return;
  if (!pair) await next();
  else attend();
}

function showCount() {
  const { feedback } = service.info;
  if (!feedback) return parts.counted.replaceChildren("None are kept.");
  const { pairs, similar, dissimilar } = feedback;
  const missing = ENOUGH - pairs;
  return parts.counted.replaceChildren(
    h("strong", { class: "big" }, String(pairs)),
    h(
      "span",
      {},
      `judged pairs: ${similar} similar, ${dissimilar} not. `,
      h(
        "span",
        { class: "soft" },
        missing > 0
          ? `${count(missing, "more", "more")} before anything can be learnt; 60 are a good start.`
          : "Enough to learn from; more say more.",
      ),
    ),
  );
}

async function next() {
  pair = await told(propose);
  show();
  attend();
}

// Keys count where the focus is, and a screen reader reads the pair that is asked about.
const attend = () => parts.stage.querySelector(".pair")?.focus({ preventScroll: true });

function show() {
  if (!pair) {
    parts.stage.replaceChildren(h("p", { class: "note" }, "There is no pair that was not judged yet."));
    return;
  }
  const before = judged(pair.query.id, pair.item.id);
  const button = (similar, text, key) =>
    h(
      "button",
      {
        type: "button",
        class: "answer",
        "aria-keyshortcuts": key,
        "aria-pressed": before === undefined ? null : String(before === similar),
        onclick: () => answer(similar),
      },
      text,
      h("kbd", { "aria-hidden": "true" }, key),
    );
  parts.stage.replaceChildren(
    h(
      "div",
      { class: "pair", role: "group", tabindex: "-1", "aria-label": `${named(pair.query)}, and ${named(pair.item)}` },
      side(pair.query),
      h("span", { class: "between", "aria-hidden": "true" }, "?"),
      side(pair.item),
    ),
    h(
      "div",
      { class: "verdict", role: "group", "aria-labelledby": "teach-title" },
      button(true, "≈ Similar", "S"),
      button(false, "≠ Not similar", "D"),
    ),
    h(
      "div",
      { class: "row" },
      h(
        "button",
        { type: "button", class: "plain", "aria-keyshortcuts": "ArrowRight", onclick: () => skip() },
        "Skip",
        h("kbd", { "aria-hidden": "true" }, "→"),
      ),
      h(
        "button",
        {
          type: "button",
          class: "plain",
          "aria-keyshortcuts": "U",
          disabled: past.length === 0,
          onclick: () => back(),
        },
        "Back to the last",
        h("kbd", { "aria-hidden": "true" }, "U"),
      ),
    ),
  );
}

function side(item) {
  return h(
    "figure",
    { class: "side" },
    face(item, true),
    h(
      "figcaption",
      {},
      h("span", {}, `Item ${item.id}`),
      hasLabel(item) && h("span", { class: "soft" }, `label ${item.label}`),
    ),
  );
}

async function answer(similar) {
  if (busy || !pair) return;
  busy = true;
  const asked = pair;
  await told(async () => {
    const again = judged(asked.query.id, asked.item.id) !== undefined;
    await give(asked.query.id, asked.item.id, similar);
    if (!again) answered(similar);
    say(sentence(asked.query.id, asked.item.id, similar));
    past.push(asked);
    await next();
  });
  busy = false;
}

const skip = () => busy || next();

// The latest judgement of a person counts, so going back and judging again takes a judgement back.
function back() {
  if (busy || !past.length) return;
  pair = past.pop();
  show();
  attend();
  say("The last pair again: judge it anew.");
}

function keys(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  const does = { s: () => answer(true), d: () => answer(false), u: back, ArrowRight: skip }[
    event.key.length === 1 ? event.key.toLowerCase() : event.key
  ];
  if (!does || whyNot()) return;
  event.preventDefault();
  does();
}

async function keepAnswers(query) {
  const ids = judgedIds()
    .map((id) => asId(id))
    .slice(-SHOWN);
  const items = await look(ids);
  const queries = [...(query ? [query] : []), ...items.filter((item) => item.id !== query?.id)];
  return keep(queries.slice(0, SHOWN));
}

async function finish(kept, learnt) {
  const before = service.info.model.n_bits;
  forget();
  await refresh();
  if (kept) parts.changed.replaceChildren(await changes(kept));
  await learnt(before);
}
