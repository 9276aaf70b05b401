// What is said to the person: news quietly to screen readers, trouble for all to see.

import { byId } from "./dom.js";

export function say(text) {
  byId("said").textContent = text;
}

export function trouble(text) {
  const place = byId("trouble");
  place.textContent = text;
  place.hidden = !text;
}

// Runs what may fail; a failure is shown in the service's own sentence. A request that was superseded says nothing.
export async function told(work) {
  trouble("");
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") trouble(error.message);
    return undefined;
  }
}
