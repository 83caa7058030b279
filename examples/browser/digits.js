// The digits that ship with Rushlight, and the network that learns them.
export const SIDE = 8;
const RECORD = SIDE * SIDE + 1; // pixels from 0 to 16, then the digit

/** Numbers from a seed, the same everywhere (mulberry32). */
function randomNumbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function shuffled(count, seed) {
  const random = randomNumbers(seed);
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; --i) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** Training and held-out digits, always the same ones: {images, labels} of typed arrays. */
export function split(bytes, heldOut = 0.2) {
  const count = bytes.length / RECORD, order = shuffled(count, 0), cut = count - Math.round(count * heldOut);
  const take = (indices) => {
    const images = new Float32Array(indices.length * SIDE * SIDE), labels = new BigInt64Array(indices.length);
    indices.forEach((index, i) => {
      for (let p = 0; p < SIDE * SIDE; ++p) images[i * SIDE * SIDE + p] = bytes[index * RECORD + p] / 16;
      labels[i] = BigInt(bytes[index * RECORD + RECORD - 1]);
    });
    return { images, labels, count: indices.length };
  };
  return { training: take(order.slice(0, cut)), heldOut: take(order.slice(cut)) };
}

/** Two convolutions at full size, two at half size, one hidden layer. */
export function makeNetwork(nn, width = 16, hidden = 64) {
  const block = (from, to) => [nn.conv2d(from, to, 3, { padding: 1, bias: false }), nn.batchNorm2d(to), nn.relu()];
  return nn.sequential(
    ...block(1, width), ...block(width, width), nn.maxPool2d(2),
    ...block(width, 2 * width), ...block(2 * width, 2 * width),
    nn.flatten(), nn.linear(2 * width * 16, hidden), nn.relu(), nn.dropout(0.3), nn.linear(hidden, 10),
  );
}
