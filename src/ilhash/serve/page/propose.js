// Which pairs a person is asked about. New bits need both answers about as often, from many queries: so each pair has its
// own random query, and the item is one of its `reach` nearest. After "similar" the reach doubles, after "not similar" it
// is halved: it settles where both are as likely, whatever the notion is, among thousands of items or millions.

import { look, some } from "./catalogue.js";
import { judged } from "./judging.js";
import { search } from "./searching.js";
import { limitOfK, service } from "./service.js";

const FIRST = 50;
const LEAST = 10;
const TRIES = 20;

let reach = FIRST;

export function answered(similar) {
  reach = similar ? Math.min(reach * 2, service.info.index.items) : Math.max(reach / 2, LEAST);
}

async function partner(query) {
  if (reach > limitOfK()) return (await some(1))[0]; // further than a search goes
  const { ids } = await search({ kind: "item", item: query }, { k: Math.max(1, Math.floor(reach)) });
  return (await look([ids[Math.floor(Math.random() * ids.length)]]))[0];
}

export async function propose() {
  for (let i = 0; i < TRIES; i += 1) {
    const [query] = await some(1);
    const item = await partner(query);
    if (item && item.id !== query.id && judged(query.id, item.id) === undefined) return { query, item };
  }
  return null;
}
