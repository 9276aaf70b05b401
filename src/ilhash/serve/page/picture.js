// The picture of an item. An <img> cannot send a token, so with one the bytes are fetched and shown from memory.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { drawable, service } from "./service.js";
import { token } from "./token.js";

const MOST = 1000;
const fetched = new Map(); // address -> promise of a blob's address

function fromMemory(address) {
  if (!fetched.has(address)) {
    if (fetched.size >= MOST) forgetOldest();
    fetched.set(
      address,
      ask(address)
        .then((response) => response.blob())
        .then((blob) => URL.createObjectURL(blob)),
    );
  }
  return fetched.get(address);
}

function forgetOldest() {
  const [address, blob] = fetched.entries().next().value;
  fetched.delete(address);
  blob.then(
    (url) => URL.revokeObjectURL(url),
    () => undefined,
  );
}

export function picture(item) {
  const { height } = service.info.items.pictures ?? {};
  const small = height > 0 && height <= 64;
  const image = h("img", {
    alt: "",
    class: `picture${small ? " pixels" : ""}${drawable() ? " ink" : ""}`,
    decoding: "async",
  });
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "picture missing" }, "no picture")));
  if (token() && item.picture.startsWith("/")) {
    fromMemory(item.picture).then(
      (url) => (image.src = url),
      () => image.dispatchEvent(new Event("error")),
    );
  } else {
    image.src = item.picture;
  }
  return image;
}
