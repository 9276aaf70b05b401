// Judgements: sent at once, remembered by this page so that they show beside what they are about.

import { post } from "./api.js";
import { refresh, service } from "./service.js";

const KEY = "ilhash-person";
const given = new Map(); // "query item" in either order -> similar?

const pair = (one, other) => JSON.stringify([String(one), String(other)].sort());

// The latest judgement of a person about a pair counts, so a person needs a name; it means nothing to anybody else.
export function person() {
  let name = localStorage.getItem(KEY);
  if (!name) {
    name = `page-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
    localStorage.setItem(KEY, name);
  }
  return name;
}

export const judged = (one, other) => given.get(pair(one, other));

export const judgedPairs = () => given.size;

export const judgedIds = () => [...new Set([...given.keys()].map((key) => JSON.parse(key)[0]))];

export async function judge(query, item, similar) {
  await post("/v1/judgements", { judgements: [{ query, item, similar, person: person() }] });
  given.set(pair(query, item), similar);
  await refresh();
  return service.info.feedback;
}

export const sentence = (query, item, similar) => `Item ${item} is ${similar ? "similar" : "not similar"} to ${query}.`;
