// Requests to the service. What it says of a failure becomes the message of the error.

import { askForToken, token } from "./token.js";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

function headers(body) {
  const all = {};
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (token()) all.Authorization = `Bearer ${token()}`;
  return all;
}

async function sentence(response) {
  try {
    const { detail, title } = await response.json();
    return String(detail ?? title);
  } catch {
    return `The service answered ${response.status} ${response.statusText}.`;
  }
}

export async function ask(path, { method = "GET", body, signal } = {}) {
  for (;;) {
    const sent = token();
    let response;
    try {
      const text = body === undefined ? undefined : JSON.stringify(body);
      response = await fetch(path, { method, headers: headers(body), body: text, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, "The service does not answer. Is it still running?");
    }
    if (response.ok) return response;
    if (response.status !== 401) throw new Problem(response.status, await sentence(response));
    if (sent === token()) await askForToken(); // otherwise another request has asked meanwhile
  }
}

export const get = async (path, signal) => (await ask(path, { signal })).json();

export const post = async (path, body, signal) => (await ask(path, { method: "POST", body, signal })).json();
