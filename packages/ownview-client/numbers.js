// The numbers that a history contributes, unsigned 32-bit whole numbers; the same as ownview.one_message.numbers in Python.

export const MOST_HISTORY = 10000;

export function size(terms) {
  const m = terms.items.length;
  return terms.method === "fedease" ? (m * (m + 1)) / 2 : m + m * m;
}

// Where the pair (i, j) of m items stands in the upper triangle, row after row.
const triangle = (i, j, m) => (i <= j ? i * m - (i * (i - 1)) / 2 + (j - i) : triangle(j, i, m));

// Of places of items, oldest first. fedease: the table's entry at the distance of two different items in the history
// without repeats, an item at its latest place. counts: rows of each item, then how often one came right after another.
export function summand(terms, history) {
  const m = terms.items.length, made = new Uint32Array(size(terms)), rows = history.slice(-MOST_HISTORY);
  if (terms.method === "counts") {
    rows.forEach((item, k) => {
      made[item] += 1;
      if (k) made[m + rows[k - 1] * m + item] += 1;
    });
    return made;
  }
  const once = [...new Set([...rows].reverse())].reverse(), { table, beyond = 0 } = terms;
  for (let a = 0; a < once.length; a += 1) {
    for (let b = a; b < once.length; b += 1) made[triangle(once[a], once[b], m)] = b - a < table.length ? table[b - a] : beyond;
  }
  return made;
}

// now - before, number by number: what an update sends.
export function difference(now, before) {
  return now.map((value, place) => value - before[place]);
}
