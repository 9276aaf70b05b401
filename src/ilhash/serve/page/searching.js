// A search of the service for what the page calls a query.

import { post } from "./api.js";

const target = (query) => (query.kind === "drawn" ? { vectors: [query.vector] } : { ids: [query.item.id] });

export async function search(query, { k, order = "hamming", n_bits = null, model = "current" }, signal) {
  const body = { ...target(query), k, order, n_bits, model, without_self: true };
  const { hits } = await post("/v1/search", body, signal);
  return { ids: hits[0].ids, distances: hits[0].distances };
}
