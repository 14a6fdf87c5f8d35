// The page at work. Picks are positions of items, the latest last; they are kept behind # in the address and nowhere else.
// Titles that a person typed in and no model knows have the positions behind all items.

const model = JSON.parse(document.getElementById("model").textContent);
const { titles, ids } = model, TYPED = "new:";
const node = Object.fromEntries(["title", "search", "found", "picks", "clear", "order", "ordered", "fresh", "offered", "refused", "start", "status", "recommended", "more", "about"]
  .map((id) => [id, document.getElementById(id)]));
const placeOf = new Map(ids.map((id, place) => [id, place]));
const titleSearch = searcher(titles, model.known);
const writer = model.text ? typist(model.text) : null, mixtures = new Map();
const fresh = ids.slice(ids.length - model.fresh).map((id) => placeOf.get(id));
const SUGGESTED = 12, LISTED = 8, STEP = 10;
// What scores: a form of items that stand in the page at the places `to`; `from` is the way back.
const scoring = (form, arrays, to) => ({ form, arrays, to, from: new Map(to.map((place, item) => [place, item])) });
let scorer = scoring(model.form, null, ids.map((_, place) => place));
let picks = [], refused = [], shown = STEP, options = [], active = -1;

function fromAddress() {
  const text = location.hash.replace(/^#picks=/, "");
  if (text === location.hash) return [];
  const read = (one) => { try { return decodeURIComponent(one); } catch { return ""; } };
  return [...new Set(text.split(",").map((one) => placeOf.get(read(one)) ?? typedPlace(read(one))).filter((place) => place !== undefined))];
}

// The position of a title that was typed in, by its id; undefined where no item has one of its words.
function typedPlace(id) {
  const text = id.slice(TYPED.length).trim();
  if (!writer || !id.startsWith(TYPED) || !writer.known(text).length) return undefined;
  const place = titles.push(text) - 1;
  ids.push(id);
  placeOf.set(id, place);
  mixtures.set(place, writer.mixture(text));
  return place;
}

// Positions as the scorer has them, and the sums of items that typed titles are, likewise.
const scored = (places, from) => places.filter((place) => from.has(place) || mixtures.has(place)).map((place) => from.get(place) ?? place);
const sumsOf = (from) => new Map([...mixtures].map(([place, parts]) =>
  [place, parts.filter(([item]) => from.has(item)).map(([item, share]) => [from.get(item), share])]));

function keep() {
  const text = picks.map((place) => encodeURIComponent(ids[place])).join(",");
  history.replaceState(history.state, "", picks.length ? `#picks=${text}` : "#");
}

function refuse(place) {
  refused = [...refused, place];
  draw();
  node.status.focus();
}

function pick(place) {
  picks = [...picks.filter((one) => one !== place), place];
  shown = STEP;
  keep();
  draw();
}

function unpick(place) {
  const at = picks.indexOf(place);
  picks = picks.filter((one) => one !== place);
  keep();
  draw();
  const next = node.picks.querySelectorAll("button")[Math.min(at, picks.length - 1)];
  (next ?? node.search).focus();
}

function drawPicks() {
  node.picks.replaceChildren(...picks.map((place, k) => chip(titles[place], k, () => unpick(place))));
  node.clear.hidden = picks.length === 0;
  const { form } = scorer, knowsOrder = form.kind === "linear" && form.terms.some((term) => term.fades !== null || term.most !== null);
  node.order.hidden = !(picks.length > 1 && knowsOrder);
  node.refused.hidden = refused.length === 0;
  node.refused.querySelector("ul").replaceChildren(...refused.map((place) => el("li", { class: "chip" }, el("span", { class: "name" }, named(titles[place])),
    el("button", { type: "button", "aria-label": `Show ${titles[place]} again`, title: "Show again", onclick: () => { refused = refused.filter((one) => one !== place); draw(); } }, "\u00d7"))));
  node.start.replaceChildren();
  if (picks.length) return;
  const makers = new Set(), begin = [];
  for (const place of titleSearch.known) {
    const [name, maker] = parted(titles[place]), kin = maker || name.split(" ").slice(0, 2).join(" ");
    if (begin.length < SUGGESTED && !makers.has(kin)) begin.push(place);
    makers.add(kin);
  }
  node.start.append(el("p", { class: "small muted" }, "Search for what you liked, or begin with one of these:"),
    el("ul", { class: "begin" }, begin.map((place) => el("li", {}, el("button", { type: "button", onclick: () => { pick(place); node.search.focus(); } }, named(titles[place]))))));
}

function drawList() {
  const { form, arrays, to, from } = scorer;
  if (!arrays) return;
  if (!picks.length) {
    node.recommended.replaceChildren();
    node.more.hidden = true;
    node.status.textContent = "Pick a title, and ten recommendations take this place.";
    return;
  }
  const ordered = node.ordered.checked, history = scored(picks, from), sums = sumsOf(from);
  const never = scored(node.offered.checked ? refused : [...refused, ...fresh], from);
  const total = scores(form, arrays, history, to.length, ordered, sums), listed = best(total, [...history, ...never], shown);
  const why = reasons(form, arrays, history, listed, to.length, ordered, sums)
    .map((shares) => picks.map((place) => shares[history.indexOf(from.get(place) ?? place)] ?? 0));
  const top = total[listed[0]], low = Math.min(0, ...listed.map((i) => total[i]));
  const length = (i) => (top > low ? Math.max(0.04, (total[i] - low) / (top - low)) : 1);
  node.recommended.replaceChildren(...listed.map((i, k) =>
    recommendation(titles[to[i]], because(form, titles, picks, why[k]), length(i), why[k], () => pick(to[i]), () => refuse(to[i]),
      model.links?.[to[i]], model.pictures?.[to[i]])));
  node.status.textContent = `${listed.length} recommendations from ${picks.length} ${picks.length === 1 ? "pick" : "picks"}.`;
  node.more.hidden = shown >= 50 || listed.length < shown;
}

function draw() {
  drawPicks();
  drawList();
  dispatchEvent(new Event("picked"));
}

// Titles found and, behind them, what was typed itself where items have words of it.
function offer(found) {
  const typed = node.search.value.trim();
  options = writer && typed && writer.known(typed).length ? [...found, TYPED + typed] : found;
  active = options.length ? 0 : -1;
  const nothing = typed !== "" && !options.length;
  node.found.replaceChildren(...(nothing ? [el("li", { class: "none", role: "option", "aria-disabled": "true" }, "No title has these words")]
    : options.map((one, k) => el("li", { id: `option${k}`, role: "option", onpointerdown: (event) => { event.preventDefault(); choose(k); } },
      typeof one === "number" ? named(titles[one]) : ["Not listed: add \u201c", typed, "\u201d by its words"]))));
  node.found.hidden = !options.length && !nothing;
  node.search.setAttribute("aria-expanded", String(options.length > 0));
  mark();
}

function mark() {
  [...node.found.children].forEach((one, k) => one.setAttribute("aria-selected", String(k === active)));
  if (active < 0) node.search.removeAttribute("aria-activedescendant");
  else {
    node.search.setAttribute("aria-activedescendant", `option${active}`);
    node.found.children[active].scrollIntoView({ block: "nearest" });
  }
}

function choose(k) {
  const one = options[k], place = typeof one === "string" ? placeOf.get(one) ?? typedPlace(one) : one;
  if (place === undefined) return;
  node.search.value = "";
  offer([]);
  pick(place);
}

node.search.addEventListener("input", () => offer(titleSearch.find(node.search.value, LISTED)));
node.search.addEventListener("blur", () => offer([]));
node.search.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && options.length) {
    active = (active + steps[event.key] + options.length) % options.length;
    mark();
  } else if (event.key === "Enter") choose(active);
  else if (event.key === "Escape") { node.search.value = ""; offer([]); }
  else return;
  event.preventDefault();
});
node.ordered.addEventListener("change", drawList);
node.fresh.hidden = !fresh.length;
node.offered.addEventListener("change", drawList);
node.clear.addEventListener("click", () => { picks = []; refused = []; shown = STEP; keep(); draw(); node.search.focus(); });
node.more.addEventListener("click", () => { shown += STEP; drawList(); });
addEventListener("hashchange", () => { picks = fromAddress(); shown = STEP; draw(); });

node.title.textContent = model.title;
node.about.append(facts(model.about, document.documentElement.outerHTML.length, Boolean(model.contribute)));
picks = fromAddress();
drawPicks();
// For programs that look at the page: the scores of all items for positions of items or texts of titles that are none,
// the latest last, or without order.
const placed = (one) => (typeof one === "number" ? one : placeOf.get(TYPED + one) ?? typedPlace(TYPED + one));
globalThis.scoresOf = async (history, ordered = true) => {
  await ready;
  const { form, arrays, to, from } = scorer, places = scored(history.map(placed), from);
  return Array.from(scores(form, arrays, places, to.length, ordered, sumsOf(from)));
};
const ready = decode(model.form).then((made) => {
  scorer = { ...scorer, arrays: made };
  node.search.disabled = false;
  draw();
}, () => { node.status.textContent = "This browser cannot unpack the model; one of 2023 or later can."; });
