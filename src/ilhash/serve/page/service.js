// What the service is: asked once at the start, and again when its model or its judgements may have changed.

import { get } from "./api.js";

export const service = { info: null };
const news = new EventTarget();

export async function refresh() {
  service.info = await get("/v1/info");
  news.dispatchEvent(new Event("info"));
}

export const whenInfo = (heard) => news.addEventListener("info", heard);

export const nBits = () => service.info.model.n_bits;
export const labelled = () => Boolean(service.info.items.labels);
export const drawable = () => Boolean(service.info.items.pictures?.ink);
export const shape = () => service.info.items.pictures;
export const asId = (text) => (service.info.index.ids === "int" ? Number(text) : text);
export const limitOfK = () => Math.min(service.info.limits?.k ?? 100, service.info.index.items);

export const canLearn = () => service.info.learning ?? service.info.items.vectors;

// Why nothing can be taught here, or "".
export function whyNot() {
  if (!service.info.writable) return "This service is read-only: judgements cannot be given here.";
  if (!service.info.feedback) return "This service keeps no judgements.";
  return "";
}
