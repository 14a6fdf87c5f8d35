// Titles by what somebody types: every word must be there, accents and case aside; titles that begin with it come
// first, then those in which a word does, then the better known.

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

function searcher(titles, known) {
  const spelt = titles.map((title) => ` ${plain(title)} `);
  return {
    known,
    find(text, most) {
      const words = plain(text).split(" ").filter(Boolean);
      if (!words.length) return [];
      const whole = words.join(" ");
      const rank = (i) => (spelt[i].startsWith(` ${whole}`) ? 0 : spelt[i].includes(` ${whole}`) ? 1 : 2);
      const fits = known.filter((i) => words.every((word) => spelt[i].includes(word)));
      return fits.map((i, place) => [rank(i), place, i]).sort((a, b) => a[0] - b[0] || a[1] - b[1])
        .slice(0, most).map((one) => one[2]);
    },
  };
}
