// From lines drawn with a mouse or a finger to pixels as the model knows them: in the middle, as high as drawings are in
// the service's pictures, with a pen as wide as theirs, and each pixel the share of it that is inked.

const FINE = 16; // dots across one pixel

function bounds(strokes) {
  const points = strokes.flat();
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
}

// Lines through the middles of what was sampled: corners of a fast hand become curves.
export function trace(context, stroke, place = (point) => point) {
  const points = stroke.map(place);
  context.beginPath();
  context.moveTo(...points[0]);
  if (points.length === 1) context.lineTo(points[0][0] + 0.01, points[0][1]);
  for (let i = 1; i < points.length - 1; i += 1) {
    const middle = [(points[i][0] + points[i + 1][0]) / 2, (points[i][1] + points[i + 1][1]) / 2];
    context.quadraticCurveTo(...points[i], ...middle);
  }
  if (points.length > 1) context.lineTo(...points.at(-1));
  context.stroke();
}

export function pixels(strokes, { height, width, low, high, ink }) {
  const { pen } = ink;
  const box = bounds(strokes);
  const [w, tall] = [box.right - box.left, box.bottom - box.top];
  // Grow to their height; a wide drawing to the width of the wide ones.
  const scale = Math.min((ink.height - pen) / Math.max(tall, 1e-6), (ink.width - pen) / Math.max(w, 1e-6));
  const fit = Number.isFinite(scale) && Math.max(w, tall) > 0 ? scale : 1;
  const place = ([x, y]) => [
    FINE * (width / 2 + (x - (box.left + box.right) / 2) * fit),
    FINE * (height / 2 + (y - (box.top + box.bottom) / 2) * fit),
  ];
  const canvas = document.createElement("canvas");
  canvas.width = width * FINE;
  canvas.height = height * FINE;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  Object.assign(context, { lineWidth: pen * FINE, lineCap: "round", lineJoin: "round" });
  for (const stroke of strokes) trace(context, stroke, place);
  return inked(context.getImageData(0, 0, canvas.width, canvas.height).data, height, width, low, high);
}

function inked(data, height, width, low, high) {
  const values = new Array(height * width).fill(0);
  for (let y = 0; y < height * FINE; y += 1) {
    for (let x = 0; x < width * FINE; x += 1) {
      values[Math.floor(y / FINE) * width + Math.floor(x / FINE)] += data[4 * (y * width * FINE + x) + 3] / 255;
    }
  }
  return values.map((sum) => Math.round(low + ((high - low) * sum) / FINE ** 2));
}
