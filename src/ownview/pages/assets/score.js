// Scores from a history, in two forms: a sum over its items, or one vector times item vectors. Positions of items come
// oldest first, each once. Everything is in double precision. A position that `mixtures` has, [[item, share], ...], is a
// title that no model knows: it counts as that sum of items.

export const dot = (a, from, b, start, count) => {
  let sum = 0;
  for (let k = 0; k < count; k += 1) sum += a[from + k] * b[start + k];
  return sum;
};

// What the latest items of a history count in a term: [[item, count], ...], oldest first. Without an order all count 1.
function counted(term, history, ordered) {
  if (!ordered) return history.map((item) => [item, 1]);
  const latest = term.most === null ? history : history.slice(-term.most);
  const fades = term.fades === null ? Infinity : term.fades;
  return latest.map((item, place) => [item, Math.exp(-(latest.length - 1 - place) / fades)]);
}

// Adds count * W[item] to total, for W whole, as compressed rows, or as the product of left [m, r] and right [r, m].
export function addRow(kind, arrays, name, item, count, total) {
  if (kind === "whole") {
    const { width, values } = arrays[`${name}.weights`], start = item * width;
    for (let i = 0; i < width; i += 1) total[i] += count * values[start + i];
    return;
  }
  if (kind === "rows") {
    const { offsets, columns, values } = arrays[`${name}.rows`];
    for (let k = offsets[item]; k < offsets[item + 1]; k += 1) total[columns[k]] += count * values[k];
    return;
  }
  const left = arrays[`${name}.left`], right = arrays[`${name}.right`];
  for (let r = 0; r < left.width; r += 1) {
    const factor = count * left.values[item * left.width + r], start = r * right.width;
    for (let i = 0; i < right.width; i += 1) total[i] += factor * right.values[start + i];
  }
}

// The same for an item or for a title that is a sum of them.
function addPick(kind, arrays, name, item, count, total, mixtures) {
  for (const [one, share] of mixtures.get(item) ?? [[item, 1]]) addRow(kind, arrays, name, one, count * share, total);
}

// Item vectors and biases with those of typed titles behind, and the history by its places there.
function withTyped(items, bias, history, m, mixtures) {
  const typed = history.filter((item) => mixtures.has(item)), d = items.width;
  if (!typed.length) return [items, bias, history, m];
  const values = new Float64Array((m + typed.length) * d), more = new Float64Array(m + typed.length);
  values.set(items.values);
  more.set(bias);
  typed.forEach((item, k) => mixtures.get(item).forEach(([one, share]) => {
    more[m + k] += share * bias[one];
    for (let j = 0; j < d; j += 1) values[(m + k) * d + j] += share * items.values[one * d + j];
  }));
  const places = history.map((item) => (mixtures.has(item) ? m + typed.indexOf(item) : item));
  return [{ width: d, values }, more, places, m + typed.length];
}

// The solution x of left x = right for a symmetric, positive definite matrix [d, d], by Cholesky's factor.
function factored(left, d) {
  const low = Float64Array.from(left);
  for (let j = 0; j < d; j += 1) {
    for (let i = j; i < d; i += 1) {
      const rest = low[i * d + j] - dot(low, i * d, low, j * d, j);
      low[i * d + j] = i === j ? Math.sqrt(rest) : rest / low[j * d + j];
    }
  }
  return (right) => {
    const x = Float64Array.from(right);
    for (let i = 0; i < d; i += 1) x[i] = (x[i] - dot(low, i * d, x, 0, i)) / low[i * d + i];
    for (let i = d - 1; i >= 0; i -= 1) {
      for (let k = i + 1; k < d; k += 1) x[i] -= low[k * d + i] * x[k];
      x[i] /= low[i * d + i];
    }
    return x;
  };
}

// sum over items of weight_i q_i q_i^T, plus ridge on the diagonal.
function weighedSquares(items, weights, ridge) {
  const d = items.width, total = new Float64Array(d * d);
  for (let i = 0; i < weights.length; i += 1) {
    if (weights[i] === 0) continue;
    for (let a = 0; a < d; a += 1) {
      const factor = weights[i] * items.values[i * d + a];
      for (let b = 0; b <= a; b += 1) total[a * d + b] += factor * items.values[i * d + b];
    }
  }
  for (let a = 0; a < d; a += 1) {
    total[a * d + a] += ridge;
    for (let b = 0; b < a; b += 1) total[b * d + a] = total[a * d + b];
  }
  return total;
}

// Weighed least squares in closed form.
function ridgeVector(how, items, history, m) {
  const d = items.width, weights = new Float64Array(m).fill(how.every), right = new Float64Array(d);
  for (const item of history) {
    weights[item] += how.seen;
    for (let k = 0; k < d; k += 1) right[k] += how.target * items.values[item * d + k];
  }
  const ridge = how.ridge * (history.length + how.count) ** how.exponent;
  return factored(weighedSquares(items, weights, ridge), d)(right);
}

// Cross-entropy of the history against all others, by steps that a bound on the curvature makes safe.
function logisticVector(how, items, bias, history, m) {
  const d = items.width, others = m - history.length, seen = new Float64Array(m);
  for (const item of history) seen[item] = 1;
  const share = others ? how.negatives * history.length / others : 0;
  const weights = seen.map((one) => (one ? 1 : share));
  const solve = factored(weighedSquares(items, weights.map((one) => one / 4), how.ridge), d);
  const user = new Float64Array(d);
  for (let step = 0; step < how.steps; step += 1) {
    const gradient = user.map((value) => how.ridge * value);
    for (let i = 0; i < m; i += 1) {
      const score = dot(items.values, i * d, user, 0, d) + bias[i];
      const error = weights[i] * (1 / (1 + Math.exp(-score)) - seen[i]);
      for (let k = 0; k < d; k += 1) gradient[k] += error * items.values[i * d + k];
    }
    solve(gradient).forEach((change, k) => { user[k] -= change; });
  }
  return user;
}

export function scores(form, arrays, history, m, ordered = true, mixtures = new Map()) {
  const total = form.bias ? Float64Array.from(arrays.bias) : new Float64Array(m);
  if (form.kind === "linear") {
    form.terms.forEach((term, place) => {
      for (const [item, count] of counted(term, history, ordered)) addPick(term.weights, arrays, `term${place}`, item, count, total, mixtures);
    });
  } else if (history.length) {
    const how = form.fold_in, [items, bias, mine, all] = withTyped(arrays.items, total, history, m, mixtures);
    const user = how.kind === "ridge" ? ridgeVector(how, items, mine, all) : logisticVector(how, items, bias, mine, all);
    for (let i = 0; i < m; i += 1) total[i] += dot(items.values, i * items.width, user, 0, items.width);
  }
  return total;
}

// How much each item of a history speaks for each of some items: [[share of history item, ...], ...]. In a sum it is what
// the item adds to the score; between vectors, the cosine of the two.
export function reasons(form, arrays, history, wanted, m, ordered = true, mixtures = new Map()) {
  if (form.kind === "factors") {
    const [items, , mine] = withTyped(arrays.items, new Float64Array(m), history, m, mixtures), d = items.width;
    const length = (i) => Math.sqrt(dot(items.values, i * d, items.values, i * d, d)) || 1;
    return wanted.map((i) => mine.map((j) => dot(items.values, i * d, items.values, j * d, d) / length(i) / length(j)));
  }
  const added = history.map(() => new Float64Array(m));
  form.terms.forEach((term, place) => {
    const latest = counted(term, history, ordered), skipped = history.length - latest.length;
    latest.forEach(([item, count], k) => addPick(term.weights, arrays, `term${place}`, item, count, added[skipped + k], mixtures));
  });
  return wanted.map((i) => added.map((one) => one[i]));
}

// The k best items that are not in the history; of equal ones the first.
export function best(total, history, k) {
  const mine = new Set(history);
  return Array.from(total.keys()).filter((i) => !mine.has(i)).sort((a, b) => total[b] - total[a] || a - b).slice(0, k);
}
