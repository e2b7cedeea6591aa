"use strict";

/* The weights that the page holds: of pieces, or of words. */
const attention = (() => {
  const FULL = 65535; // a weight of 1; 0 is a hidden place
  const KINDS = {
    encoder: { query: "source", key: "source", name: "Encoder" },
    decoder: { query: "read", key: "read", name: "Decoder" },
    cross: { query: "read", key: "source", name: "Decoder to encoder" },
  };
  const COLOURS = 6;
  const DASHES = ["", "6 3", "2 3", "9 3 2 3"];

  /** Little-endian uint16 from base64. */
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return Uint16Array.from({ length: bytes.length / 2 }, (_, i) => bytes[2 * i] | (bytes[2 * i + 1] << 8));
  };

  /** Colour and dashes of a head, counted from 0. */
  const look = (head) => ({
    colour: `var(--c${head % COLOURS})`,
    dash: DASHES[Math.floor(head / COLOURS) % DASHES.length],
  });

  /** Labels of both sides, queries and keys, in pieces or in words. */
  const sides = (pair, kind, unit) => {
    const { query, key } = KINDS[kind];
    return { queries: pair[query][unit], keys: pair[key][unit] };
  };

  /** For each group of neighbours what ``make`` makes of them. */
  const grouped = (values, starts, make) => starts.map((start, i) => make(values.slice(start, starts[i + 1])));

  const sum = (values) => values.reduce((a, b) => a + b, 0);

  /** Rows of a head's weights from 0 to 1: ``matrix[query][key]``. */
  const matrix = (pair, kind, layer, head, unit) => {
    const query = pair[KINDS[kind].query];
    const key = pair[KINDS[kind].key];
    pair.unpacked ??= {};
    const all = (pair.unpacked[kind] ??= unpacked(pair.weights[kind]));
    const [rows, columns] = [query.pieces.length, key.pieces.length];
    const first = (layer * pair.heads + head) * rows * columns;
    const row = (i) => Array.from(all.subarray(first + i * columns, first + (i + 1) * columns), (v) => v / FULL);
    const weights = Array.from({ length: rows }, (_, i) => row(i));
    if (unit === "pieces") return weights;
    const toWords = weights.map((values) => grouped(values, key.starts, sum));
    return grouped(toWords, query.starts, (part) => key.starts.map((_, j) => sum(part.map((values) => values[j])) / part.length));
  };

  const number = (weight) => (weight === 0 ? "0" : weight < 0.0005 ? "<0.001" : weight.toFixed(3));

  return { KINDS, look, sides, matrix, number };
})();
