// Which pairs a person is asked about. New bits are learnt best from both answers about as often, and from many queries:
// so each pair has a random query of its own, and the other item is any at first. Where a notion is so fine that "not
// similar" runs ahead, the item comes from among the `reach` nearest, fewer and fewer, until both answers keep step again.

import { look, some } from "./catalogue.js";
import { judged } from "./judging.js";
import { search } from "./searching.js";
import { limitOfK, service } from "./service.js";

const AHEAD = 4;
const LEAST = 10;
const TRIES = 20;

const given = { similar: 0, not: 0 };
let reach = Infinity;

export function answered(similar) {
  given[similar ? "similar" : "not"] += 1;
  const all = service.info.index.items;
  if (given.similar >= given.not) reach = Math.min(2 * reach, all);
  else if (!similar && given.not - given.similar > AHEAD) reach = Math.max(Math.min(reach, all) / 2, LEAST);
}

async function partner(query) {
  if (reach > limitOfK()) return (await some(1))[0]; // further than a search goes
  const { ids } = await search({ kind: "item", item: query }, { k: Math.floor(reach) });
  return (await look([ids[Math.floor(Math.random() * ids.length)]]))[0];
}

export async function propose() {
  for (let i = 0; i < TRIES; i += 1) {
    const [query] = await some(1);
    const item = query && (await partner(query));
    if (item && item.id !== query.id && judged(query.id, item.id) === undefined) return { query, item };
  }
  return null;
}
