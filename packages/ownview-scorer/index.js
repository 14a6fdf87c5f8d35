// A model that Ownview exported, or that of a page, at work in a browser or in Node. Nothing is sent anywhere.

import { decode } from "./lib/decode.js";
import { best, reasons, scores } from "./lib/score.js";
import { searcher } from "./lib/search.js";
import { readFolder } from "./folder.js";
import { candidates, diverse } from "./rerank.js";

const SAID = 3, GOOD_PART = 0.2;

export class Recommender {
  constructor({ ids, titles, known, form, arrays, about }) {
    Object.assign(this, { ids, titles, form, arrays, about });
    this.place = new Map(ids.map((id, place) => [id, place]));
    this.search = searcher(titles, known);
  }

  // read(name) gives the ArrayBuffer of a file of the folder: a fetch, or a file on disk.
  static async fromFolder(read) {
    return new Recommender(await readFolder(read));
  }

  // The JSON of a page's element "model".
  static async fromPage(model) {
    return new Recommender({ ...model, arrays: await decode(model.form) });
  }

  // Scores of all items, in the order of `ids`.
  scores(history) {
    return scores(this.form, this.arrays, this.#once(this.#known(history)), this.ids.length);
  }

  recommend(history, { k = 10, exclude = [], only = null, again = false, diversity = 0, explain = false } = {}) {
    if (!(diversity >= 0 && diversity <= 1)) throw new RangeError(`diversity ${diversity}; expected 0 to 1`);
    const once = this.#once(this.#known(history)), m = this.ids.length;
    const total = scores(this.form, this.arrays, once, m), out = new Set(this.#known(exclude));
    if (!again) once.forEach((item) => out.add(item));
    if (only !== null) {
      const may = new Set(this.#known(only));
      for (let item = 0; item < m; item += 1) if (!may.has(item)) out.add(item);
    }
    let listed = best(total, [...out], diversity ? candidates(k) : k);
    if (diversity && listed.length) listed = diverse(this.form, this.arrays, listed, total, diversity, k);
    const why = explain ? reasons(this.form, this.arrays, once, listed, m) : null;
    return {
      recommendations: listed.map((i, row) => ({
        item: this.ids[i], title: this.titles[i], score: total[i], ...(why && { because: this.#because(once, why[row]) }),
      })),
      unknown: [...history, ...exclude, ...(only ?? [])].map(String).filter((id) => !this.place.has(id)),
    };
  }

  items(prefix, k = 10) {
    return this.search.find(prefix, k).map((i) => ({ item: this.ids[i], title: this.titles[i] }));
  }

  #known(ids) {
    return ids.map((id) => this.place.get(String(id))).filter((place) => place !== undefined);
  }

  // Every item once, at its latest place.
  #once(history) {
    return [...new Set([...history].reverse())].reverse();
  }

  #because(once, shares) {
    const spoken = shares.map((value, place) => ({ place, value })).filter((one) => one.value > 0).sort((a, b) => b.value - a.value);
    const sum = spoken.reduce((all, one) => all + one.value, 0);
    return spoken.slice(0, SAID).filter((one, rank) => rank === 0 || one.value > GOOD_PART * sum)
      .map(({ place, value }) => ({ item: this.ids[once[place]], title: this.titles[once[place]], share: value / sum }));
  }
}
