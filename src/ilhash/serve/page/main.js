// The page begins here: what the service is, then the view that the address names.

import * as bits from "./bits.js";
import { byId, count } from "./dom.js";
import { told, trouble } from "./say.js";
import * as search from "./search.js";
import { asId, refresh, service, whenInfo } from "./service.js";
import * as teach from "./teach.js";

const VIEWS = ["search", "bits", "teach"];
const place = (view) => byId(`view-${view}`);

function facts() {
  const { model, index, feedback, writable } = service.info;
  const all = [
    count(index.items, "item"),
    count(model.n_bits, "bit"),
    feedback && count(feedback.judgements, "judgement"),
    !writable && "read-only",
  ];
  byId("facts").textContent = all.filter(Boolean).join(" · ");
}

function route() {
  const [view, what] = location.hash.slice(1).split("/");
  return { view: VIEWS.includes(view) ? view : "search", what: what ? decodeURIComponent(what) : undefined };
}

async function go() {
  const { view, what } = route();
  for (const one of VIEWS) {
    place(one).hidden = one !== view;
    const link = document.querySelector(`nav [data-view=${one}]`);
    if (one === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view[0].toUpperCase()}${view.slice(1)} – ilhash`;
  trouble("");
  if (view === "search") await search.open(what === undefined ? undefined : asId(what));
  if (view === "bits") await bits.open(place(view), what === undefined ? undefined : Number(what));
  if (view === "teach") await teach.open();
}

// After learning the model is another: what was said of the old one is forgotten.
async function learnt(before) {
  bits.forgetBits();
  const here = location.hash;
  await search.again(place("search"), before);
  history.replaceState(null, "", here);
}

async function start() {
  whenInfo(facts);
  await refresh();
  search.build(place("search"));
  teach.build(place("teach"), { currentQuery: search.currentQuery, learnt });
  window.addEventListener("hashchange", () => told(go));
  await go();
}

told(start).then(() => (document.body.dataset.ready = "true"));
