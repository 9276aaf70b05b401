// A canvas to draw a query on. Every stroke that ends is a new query.

import { h } from "./dom.js";
import { pixels, trace } from "./strokes.js";

const SIZE = 240;

export function pad(shape, drawn, cleared) {
  const canvas = h("canvas", {
    width: SIZE,
    height: SIZE,
    class: "pad",
    role: "img",
    "aria-label": "Draw here with the mouse or a finger",
  });
  const context = canvas.getContext("2d");
  let strokes = [];
  let stroke = null;

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIZE, ((event.clientY - box.top) / box.height) * SIZE];
  };
  const paint = () => {
    context.clearRect(0, 0, SIZE, SIZE);
    Object.assign(context, { lineWidth: 18, lineCap: "round", lineJoin: "round", strokeStyle: "#14171a" });
    for (const one of strokes) trace(context, one);
  };
  const end = () => {
    if (!stroke) return;
    stroke = null;
    drawn(pixels(strokes, shape));
  };
  const clear = () => {
    strokes = [];
    stroke = null;
    paint();
    cleared();
  };

  canvas.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    stroke = [at(event)];
    strokes.push(stroke);
    paint();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!stroke) return;
    const samples = event.getCoalescedEvents?.() ?? [];
    stroke.push(...(samples.length ? samples : [event]).map(at));
    paint();
  });
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  return { element: canvas, clear, empty: () => strokes.length === 0 };
}

// What the model sees of a drawing.
export function preview(values, { height, width, low, high }) {
  const canvas = h("canvas", {
    width,
    height,
    class: "picture pixels ink",
    role: "img",
    "aria-label": `The drawing as the model sees it, ${width} by ${height} pixels`,
  });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  values.forEach((value, i) => {
    const grey = (255 * (value - low)) / (high - low);
    image.data.set([grey, grey, grey, 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}
