// Maximal marginal relevance, as `ownview serve` has it: each next item has the greatest
// (1 - d) s - d max likeness, s the score brought to 0..1 over the candidates.

import { addRow, dot } from "./lib/score.js";

export const candidates = (k) => Math.max(100, 5 * k);

// [c][c] how alike items are, 1 for the two that are most alike: the greater of the weights from one to the other, or the
// cosine of their vectors; what is negative is 0.
function likeness(form, arrays, items, m) {
  let found;
  if (form.kind === "factors") {
    const { values, width } = arrays.items;
    const product = (i, j) => dot(values, i * width, values, j * width, width);
    const length = items.map((i) => Math.sqrt(product(i, i)) || 1);
    found = items.map((i, a) => items.map((j, b) => product(i, j) / length[a] / length[b]));
  } else {
    const rows = items.map((item) => {
      const row = new Float64Array(m);
      form.terms.forEach((term, place) => addRow(term.weights, arrays, `term${place}`, item, 1, row));
      return items.map((other) => row[other]);
    });
    found = rows.map((row, a) => row.map((value, b) => Math.max(value, rows[b][a])));
  }
  let greatest = 0;
  found.forEach((row, a) => row.forEach((value, b) => { if (a !== b) greatest = Math.max(greatest, value); }));
  return found.map((row, a) => row.map((value, b) => (a === b || value <= 0 || greatest === 0 ? 0 : value / greatest)));
}

// The k items of a more diverse list, chosen from the best ones, whose scores fall.
export function diverse(form, arrays, best, total, diversity, k) {
  const alike = likeness(form, arrays, best, total.length), top = total[best[0]], last = total[best[best.length - 1]];
  const value = best.map((i) => (1 - diversity) * (top > last ? (total[i] - last) / (top - last) : 1));
  const nearest = new Float64Array(best.length), chosen = [];
  while (chosen.length < Math.min(k, best.length)) {
    let next = -1, greatest = -Infinity;
    best.forEach((_, a) => {
      const gain = value[a] - diversity * nearest[a];
      if (gain > greatest && !chosen.includes(a)) { next = a; greatest = gain; }
    });
    chosen.push(next);
    alike[next].forEach((one, a) => { nearest[a] = Math.max(nearest[a], one); });
  }
  return chosen.map((a) => best[a]);
}
