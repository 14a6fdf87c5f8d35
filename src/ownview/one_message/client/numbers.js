// The numbers that a history contributes, 32-bit whole numbers; the same as ownview.one_message.numbers in Python.

import { latest, nextNumbers, nextSize } from "./next.js";

const MOST_HISTORY = 10000, SHORTER = 1 - 2 ** -40;

function size(terms) {
  const m = terms.items.length;
  if (terms.method === "fednext") return nextSize(terms);
  return terms.method === "fedease" ? (m * (m + 1)) / 2 : m + m * m;
}

// Where the pair (i, j) of m items stands in the upper triangle, row after row.
const triangle = (i, j, m) => (i <= j ? i * m - (i * (i - 1)) / 2 + (j - i) : triangle(j, i, m));

// Of places of items, oldest first. fedease: the table's entry at the distance of two different items in the history
// without repeats, an item at its latest place. counts: rows of each item, then how often one came right after another.
// Under a budget all of them together have the agreed norm.
function summand(terms, history) {
  const m = terms.items.length, made = new Uint32Array(size(terms)), rows = history.slice(-MOST_HISTORY);
  if (terms.method === "fednext") nextNumbers(terms, rows, (place, value) => { made[place] = value; });
  else if (terms.method === "counts") {
    rows.forEach((item, k) => {
      made[item] += 1;
      if (k) made[m + rows[k - 1] * m + item] += 1;
    });
  } else {
    const once = latest(rows, MOST_HISTORY), { table, beyond = 0 } = terms;
    for (let a = 0; a < once.length; a += 1) {
      for (let b = a; b < once.length; b += 1) made[triangle(once[a], once[b], m)] = b - a < table.length ? table[b - a] : beyond;
    }
  }
  return terms.budget ? brought(made, terms.budget.clip) : made;
}

// The same direction at a norm of `clip` at most, cut towards 0: of IEEE operations that every machine rounds alike.
function brought(numbers, clip) {
  const steps = new Int32Array(numbers.buffer);
  let squares = 0;
  for (const value of steps) squares += value * value;
  if (!squares) return numbers;
  const factor = (clip * SHORTER) / Math.sqrt(squares);
  for (let k = 0; k < steps.length; k += 1) if (steps[k]) steps[k] = Math.trunc(steps[k] * factor);
  return numbers;
}

// now - before, number by number: what an update sends.
function difference(now, before) {
  return now.map((value, place) => value - before[place]);
}

// How much of what is sent is about each two of the person's own items: { items, cells [l][l] from 0 to 1, numbers }.
function picture(terms, history) {
  const m = terms.items.length, made = new Int32Array(summand(terms, history).buffer), items = latest(history, MOST_HISTORY);
  const scales = terms.next?.past.length ?? 1, rank = terms.next?.rank ?? 0, wide = scales * (rank || m);
  const strength = (i, j) => {
    if (terms.method === "fedease") return made[triangle(i, j, m)];
    if (terms.method === "counts") return i === j ? made[i] : made[m + i * m + j];
    let sum = 0;
    if (rank) for (let c = 0; c < wide; c += 1) sum += i === j ? Math.abs(made[(wide * (wide + 1)) / 2 + i * wide + c]) : 0;
    else for (let a = 0; a < scales; a += 1) sum += made[(wide * (wide + 1)) / 2 + (a * m + i) * m + j];
    return sum;
  };
  const cells = items.map((i) => items.map((j) => Math.abs(strength(i, j))));
  // Number by number: a call has no room for the cells of a few hundred items as arguments.
  const most = cells.flat().reduce((high, value) => Math.max(high, value), 1), numbers = made.reduce((count, value) => count + (value !== 0), 0);
  return { items, cells: cells.map((row) => row.map((value) => value / most)), numbers, size: made.length };
}

export { difference, picture, size, summand };
