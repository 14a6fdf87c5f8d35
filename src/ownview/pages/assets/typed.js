// A title that no model knows, by its words: the sum of known items that it is taken for, as `pages/typed_titles.py` has it.

const WORD = /[\p{L}\p{N}]+(?:'[\p{L}\p{N}]+)?/gu;

// x of (F F^T + ridge I) x = right by conjugate gradients; times(x) gives F F^T x.
function conjugate(times, ridge, right) {
  const x = new Float64Array(right.length), rest = Float64Array.from(right), way = Float64Array.from(right);
  let left = dot(rest, 0, rest, 0, rest.length);
  const enough = 1e-24 * left;
  for (let step = 0; step < right.length && left > enough; step += 1) {
    const along = times(way).map((value, i) => value + ridge * way[i]);
    const far = left / dot(way, 0, along, 0, way.length);
    for (let i = 0; i < x.length; i += 1) { x[i] += far * way[i]; rest[i] -= far * along[i]; }
    const now = dot(rest, 0, rest, 0, rest.length);
    for (let i = 0; i < x.length; i += 1) way[i] = rest[i] + (now / left) * way[i];
    left = now;
  }
  return x;
}

export function typist({ terms, weights, rows, ridge }) {
  const place = new Map(terms.map((term, k) => [term, k]));
  const entry = (term) => (term.includes(":") && !term.startsWith("decade:") ? plain(term.slice(term.indexOf(":") + 1)) : "");
  const entries = terms.map((term, k) => [entry(term), k]).filter(([name]) => name);
  const unit = (found) => {
    const length = Math.sqrt(found.reduce((sum, k) => sum + weights[k] ** 2, 0)) || 1;
    return found.map((k) => [k, weights[k] / length]);
  };
  const items = rows.map(unit);
  const likeness = (vector) => Float64Array.from(items, (one) => one.reduce((sum, [k, value]) => sum + value * vector[k], 0));
  const spread = (parts, count, total = new Float64Array(terms.length)) => {
    for (const [k, value] of parts) total[k] += count * value;
    return total;
  };
  const times = (x) => {
    const total = new Float64Array(terms.length);
    items.forEach((one, i) => spread(one, x[i], total));
    return likeness(total);
  };
  // Places of the terms of a text: words, pairs of them, and whole makers and categories that stand in it.
  function known(text) {
    const words = (text.toLowerCase().replaceAll("\u00df", "ss").match(WORD) ?? []).filter((word) => word.length > 1);
    const pairs = words.slice(1).map((word, k) => `${words[k]} ${word}`), spelt = ` ${plain(text)} `;
    const named = entries.filter(([name]) => spelt.includes(` ${name} `)).map(([, k]) => k);
    return [...new Set([...[...words, ...pairs].map((term) => place.get(term)).filter((k) => k !== undefined), ...named])];
  }
  // [[item, share], ...] over all items; shares add up to 1.
  function mixture(text) {
    const found = conjugate(times, ridge, likeness(spread(unit(known(text)), 1)));
    const rest = (1 - found.reduce((sum, value) => sum + value, 0)) / found.length;
    return Array.from(found, (value, i) => [i, value + rest]);
  }
  return { known, mixture };
}
