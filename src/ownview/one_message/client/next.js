// FedNext's numbers, as ownview.one_message.next makes them: sums of products of tables, rounded once, all below 2^53.

const UNIT = 2 ** 30, HALF = 2 ** 29; // tables have 14 bits behind the point, numbers 12: three tables are 42 - 12 too many

const rounded = (value) => Math.floor((value + HALF) / UNIT);
const at = (table, place) => (place < table.length ? table[place] : 0);

// The latest different items, oldest first.
function latest(history, most) {
  return [...new Set([...history].reverse())].slice(0, most).reverse();
}

// [pasts: upper triangle of scales x items, row after row; follows: scales x items by items].
function full(terms, history, put) {
  const { past, future, weights, length } = terms.next, m = terms.items.length, wide = past.length * m;
  const once = latest(history, length), size = once.length, weight = weights[size];
  const triangle = (i, j) => (i <= j ? i * wide - (i * (i - 1)) / 2 + (j - i) : triangle(j, i));
  const begin = (wide * (wide + 1)) / 2;
  past.forEach((first, a) => {
    for (let s = 0; s < size; s += 1) {
      const row = a * m + once[s];
      past.forEach((second, b) => {
        if (b < a) return;
        for (let r = b === a ? s : 0; r < size; r += 1) {
          let sum = 0;
          for (let t = Math.max(s, r) + 1; t < size; t += 1) sum += at(first, t - 1 - s) * at(second, t - 1 - r);
          put(triangle(row, b * m + once[r]), rounded(weight * sum));
        }
      });
      for (let r = s + 1; r < size; r += 1) {
        let sum = 0;
        for (let t = s + 1; t <= r; t += 1) sum += at(first, t - 1 - s) * at(future, r - t);
        put(begin + row * m + once[r], rounded(weight * sum));
      }
    }
  });
}

// The same through item vectors V [m, k]: pasts Z_t = sum of past[t - 1 - s] V[item s], then Z^T Z and F^T Z.
function byRank(terms, history, put) {
  const { past, future, weights, length, rank, vectors, down } = terms.next, wide = past.length * rank;
  const once = latest(history, length), size = once.length, weight = weights[size], unit = 2 ** down;
  const less = (value, by) => Math.floor((value + by / 2) / by);
  const pasts = once.map((_, t) => Float64Array.from({ length: wide }, (_unused, column) => {
    const table = past[Math.floor(column / rank)], c = column % rank;
    let sum = 0;
    for (let s = 0; s < t; s += 1) sum += at(table, t - 1 - s) * vectors[once[s] * rank + c];
    return less(sum, 2 ** 14);
  }));
  const begin = (wide * (wide + 1)) / 2;
  for (let i = 0, place = 0; i < wide; i += 1) {
    for (let j = i; j < wide; j += 1, place += 1) {
      let sum = 0;
      for (let t = 0; t < size; t += 1) sum += pasts[t][i] * pasts[t][j];
      put(place, less(weight * sum, unit * 2 ** 14));
    }
  }
  once.forEach((item, r) => {
    for (let i = 0; i < wide; i += 1) {
      let sum = 0;
      for (let t = 0; t <= r; t += 1) sum += at(future, r - t) * pasts[t][i];
      put(begin + item * wide + i, less(less(sum, 2 ** 14) * weight, 2 ** 14));
    }
  });
}

function nextSize(terms) {
  const { past, rank = 0 } = terms.next, m = terms.items.length, wide = past.length * (rank || m);
  return (wide * (wide + 1)) / 2 + wide * m;
}

const nextNumbers = (terms, history, put) => (terms.next.rank ? byRank : full)(terms, history, put);

export { latest, nextNumbers, nextSize };
