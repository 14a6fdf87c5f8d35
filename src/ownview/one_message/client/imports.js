// Histories from files that people get from where they were: Goodreads, Letterboxd, Netflix, Trakt, or plain CSV. All of it
// is read at home.

// Rows of a CSV file: cells in quotation marks may hold commas, line ends and doubled marks.
function cells(text, separator) {
  const rows = [[]];
  let cell = "", quoted = false;
  const end = () => { rows[rows.length - 1].push(cell.trim()); cell = ""; };
  for (let k = 0; k < text.length; k += 1) {
    const letter = text[k];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[k + 1] === '"') { cell += '"'; k += 1; } else quoted = false;
    } else if (letter === '"' && cell === "") quoted = true;
    else if (letter === separator) end();
    else if (letter === "\n") { end(); rows.push([]); } else if (letter !== "\r") cell += letter;
  }
  end();
  return rows.filter((row) => row.some((one) => one !== ""));
}

// What each service calls its columns; the first whose columns are all there is taken.
const SERVICES = [
  { name: "Goodreads", needs: ["title", "author", "exclusive shelf"], title: "title", maker: "author", when: ["date read", "date added"], keep: (row) => row["exclusive shelf"] === "read" },
  { name: "Letterboxd", needs: ["name", "year", "letterboxd uri"], title: "name", maker: "year", when: ["watched date", "date"], keep: () => true },
  { name: "Netflix", needs: ["title", "date"], only: 2, title: "title", when: ["date"], keep: () => true, plain: (title) => title.split(/: (?:Season|Series|Part|Limited Series|Volume)\b/)[0] },
  { name: "Trakt", needs: ["title", "watched_at"], title: "title", maker: "year", when: ["watched_at"], keep: () => true },
  { name: "a table", needs: ["title"], title: "title", maker: "author", when: ["date", "timestamp", "time"], keep: () => true },
  { name: "a table of ids", needs: ["item"], title: "item", when: ["date", "timestamp", "time"], keep: () => true },
];

// Milliseconds; dates of the shape 3/4/21 are month, day, year, as Netflix writes them in the United States.
function moment(text) {
  if (!text) return NaN;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const short = text.match(/^(\d{1,2})\/(\d{1,2})\/(\d{2})$/);
  return short ? Date.UTC(2000 + Number(short[3]), short[1] - 1, short[2]) : Date.parse(text.replaceAll("/", "-").replace(/^(\d{4}-\d{2}-\d{2})$/, "$1T00:00:00Z"));
}

function fromTrakt(rows) {
  return rows.map((row) => ({ ...(row.movie ?? row.show ?? {}), watched_at: row.watched_at ?? row.last_watched_at ?? "" }))
    .map(({ title = "", year = "", watched_at }) => ({ title: String(title), maker: String(year ?? ""), when: moment(watched_at) }));
}

// { service, rows: [{ title, maker, when }], oldest first }; rows without a date come before those with one.
function readExport(text) {
  const clean = text.replace(/^\uFEFF/, "");
  const dated = (rows) => rows.filter((row) => row.title).map((row, place) => ({ ...row, place }))
    .sort((a, b) => (Number.isNaN(a.when) ? -Infinity : a.when) - (Number.isNaN(b.when) ? -Infinity : b.when) || a.place - b.place);
  if (/^\s*\[/.test(clean)) {
    const rows = JSON.parse(clean);
    if (!Array.isArray(rows) || !rows.every((row) => row && typeof row === "object")) throw new Error("the file is JSON, and no list of what was watched; expected Trakt's history");
    return { service: "Trakt", rows: dated(fromTrakt(rows)) };
  }
  const first = clean.slice(0, clean.indexOf("\n") < 0 ? undefined : clean.indexOf("\n"));
  const separator = ["\t", ";", ","].find((one) => first.includes(one)) ?? ",";
  const [head = [], ...body] = cells(clean, separator), names = head.map((one) => one.toLowerCase());
  const service = SERVICES.find((one) => one.needs.every((name) => names.includes(name)) && (one.only ?? names.length) === names.length);
  if (!service) throw new Error(`the first line has the columns ${head.slice(0, 8).join(", ") || "none"}; expected an export of Goodreads, Letterboxd, Netflix or Trakt, or a column title`);
  const rows = body.map((row) => Object.fromEntries(names.map((name, place) => [name, row[place] ?? ""]))).filter(service.keep).map((row) => ({
    title: service.plain ? service.plain(row[service.title]) : row[service.title], maker: service.maker ? row[service.maker] ?? "" : "",
    when: moment(service.when.map((name) => row[name]).find(Boolean)),
  }));
  return { service: service.name, rows: dated(rows) };
}

// Letters and digits alone, without accents, case, a series in brackets, or an article in front.
function folded(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/\([^)]*\)/g, " ").replace(/&/g, " and ").replace(/[^\p{L}\p{N}]+/gu, " ").trim()
    .replace(/^(the|a|an|der|die|das|le|la|les|el|los) (?=.)/, "");
}

const words = (text) => new Set(folded(text).split(" ").filter(Boolean));
const parted = (title) => { const at = title.lastIndexOf(" \u2014 "); return at > 0 ? [title.slice(0, at), title.slice(at + 3)] : [title, ""]; };

// Which of the page's titles each row is: the whole title, else what stands before a colon; of several the one whose maker
// or year has most words in common; a title alone decides where neither side names a maker. [{ row, place }], place -1 for none.
function matched({ service, rows }, titles) {
  const index = new Map();
  titles.forEach((title, place) => {
    const [name] = parted(title);
    for (const key of new Set([folded(title), folded(name), folded(name.split(":")[0])])) if (key) index.set(key, [...(index.get(key) ?? []), place]);
  });
  const common = (place, maker) => {
    const title = titles[place], theirs = words(`${parted(title)[1]} ${title.match(/\((\d{4})\)/)?.[1] ?? ""}`);
    return [...words(maker)].filter((word) => theirs.has(word)).length;
  };
  const place = ({ title, maker }) => {
    for (const key of [folded(title), folded(title.split(":")[0])]) {
      const found = (index.get(key) ?? []).map((one) => [common(one, maker), one]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
      const says = found.length && words(parted(titles[found[0][1]])[1]).size > 0;
      if (found.length && (found[0][0] > 0 || !maker || !says)) return found[0][1];
    }
    return -1;
  };
  return { service, rows: rows.map((row) => ({ title: row.title, maker: row.maker, place: place(row) })) };
}

export { matched, readExport };
