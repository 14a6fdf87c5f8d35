// Titles by what a person types: every word must be there, accents and case aside; a title that is exactly it comes
// first, then titles that begin with it, those in which a word does, and the better known.

export const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

export function searcher(titles, known) {
  const names = titles.map((title) => plain(title.replace(/ \u2014 .*$/u, "").replace(/ \([^()]*\)$/u, "")));
  const spelt = titles.map((title) => ` ${plain(title)} `);
  return {
    known,
    find(text, most) {
      const words = plain(text).split(" ").filter(Boolean);
      if (!words.length) return [];
      const whole = words.join(" ");
      const exact = (i) => spelt[i] === ` ${whole} ` || names[i] === whole;
      const rank = (i) => (exact(i) ? -1 : spelt[i].startsWith(` ${whole}`) ? 0 : spelt[i].includes(` ${whole}`) ? 1 : 2);
      const fits = known.filter((i) => words.every((word) => spelt[i].includes(word)));
      return fits.map((i, place) => [rank(i), place, i]).sort((a, b) => a[0] - b[0] || a[1] - b[1])
        .slice(0, most).map((one) => one[2]);
    },
  };
}
