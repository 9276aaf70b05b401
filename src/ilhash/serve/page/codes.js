// Codes as the service writes them: hexadecimal, most significant bit first.

export function bitsOf(hex, n) {
  const bits = [];
  for (const digit of hex) {
    const value = parseInt(digit, 16);
    bits.push((value >> 3) & 1, (value >> 2) & 1, (value >> 1) & 1, value & 1);
  }
  return bits.slice(0, n);
}

export function differing(one, other, n) {
  const [a, b] = [bitsOf(one, n), bitsOf(other, n)];
  return a.flatMap((bit, i) => (bit === b[i] ? [] : [i]));
}
