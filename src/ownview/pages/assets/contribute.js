// The panel that contributes. Everything that is worked out, kept or sent is a worker's; without the reader's leave the
// page's policy lets neither of them reach any address.

const joining = model.contribute;
const may = (() => { try { return history.state?.[joining.leave] === "may" || sessionStorage.getItem(joining.leave) === "may"; } catch { return false; } })();
const worker = new Worker(URL.createObjectURL(new Blob([joining.client], { type: "text/javascript" })));
const answers = new Map();
let asked = 0, agreed = null, drawing = 0, status = null, offered = null;

worker.onmessage = ({ data: { id, result, error } }) => {
  const { resolve, reject } = answers.get(id);
  answers.delete(id);
  if (error === undefined) resolve(result);
  else reject(new Error(error));
};
const ask = (call, ...given) => new Promise((resolve, reject) => {
  asked += 1;
  answers.set(asked, { resolve, reject });
  worker.postMessage({ id: asked, call, given });
});

const titleOf = (id) => (placeOf.has(id) ? titles[placeOf.get(id)] : id);
const few = (count, one, many) => `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
const panel = Object.fromEntries(["own", "facts", "said", "buttons", "sent"].map((name) => [name, el("div", { class: name, ...(name === "said" && { role: "status" }) })]));
const button = (name, what, does) => el("button", { type: "button", class: name, onclick: () => tried(does) }, what);

// What cannot be done is said where people look, and nowhere else.
async function tried(does) {
  panel.buttons.querySelectorAll("button").forEach((one) => { one.disabled = true; });
  try { await does(); } catch (error) { say(`That did not work: ${error.message}.`); }
  await asksStatus();
  await drawPanel();
}
const say = (...what) => panel.said.replaceChildren(el("p", {}, ...what));

// Asked when the panel is opened and after a button, never after a pick.
const asksStatus = async () => { if (may) status = await ask("status").catch(() => null); };

// In this tab's history too: of a file a browser under load may have lost its session storage when it loads it again.
function allow(yes) {
  history.replaceState({ ...history.state, [joining.leave]: yes ? "may" : "" }, "");
  if (yes) sessionStorage.setItem(joining.leave, "may");
  else sessionStorage.removeItem(joining.leave);
  location.reload();
}

// The person's own numbers: a square of squares, the darker the more two of their titles go together.
function square({ items, cells, numbers, size }) {
  const name = (i, j) => (i === j ? titleOf(items[i]) : `${titleOf(items[i])} and ${titleOf(items[j])}`);
  const boxes = cells.flatMap((row, i) => row.map((value, j) => el("span", { title: `${name(i, j)}: ${(100 * value).toFixed(0)} %`, style: { opacity: value ? 0.08 + 0.92 * value : 0 } })));
  const label = `${few(items.length, "title", "titles")}, each with each: how much of what is sent is about the two`;
  return [el("div", { class: "square", role: "img", "aria-label": label, style: { gridTemplateColumns: `repeat(${items.length}, 1fr)` } }, boxes),
    el("p", { class: "small muted" }, `Of ${few(size, "number", "numbers")} ${numbers.toLocaleString("en-GB")} are not 0: they say which of your ${few(items.length, "title", "titles")} go together. This picture is made of them.`)];
}

function rowsOf() {
  const { urls, budget, fewest, name, items } = agreed, known = new Set(items), out = picks.filter((place) => !known.has(ids[place])).length;
  const counted = status ? `${few(status.contributions, "person has", "people have")} contributed; ${few(status.waiting, "message waits", "messages wait")} for a batch of ${fewest}`
    : `${few(joining.contributions, "person had", "people had")} contributed on ${joining.on}, when this page was made`;
  const noise = budget ? `epsilon ${budget.epsilon}, delta ${budget.delta}, for sending and taking back together: each server adds noise for all of it before a sum is opened`
    : "none: a sum is opened as it is, without noise. It may tell something about you if hardly anyone has your titles";
  return [["To whom", `${urls.a} gets a random key; ${urls.b} gets numbers that look random without that key. Neither can read them; both together can. Agreement ${name.slice(0, 16)}`],
    ["Opened", `only as a sum of ${few(fewest, "contribution", "contributions")} or more`], ["Budget", noise], ["How many", counted],
    ...(out ? [["Not sent", `${few(out, "pick is", "picks are")} not among the ${few(items.length, "title", "titles")} agreed on`]] : [])];
}

const begun = (receipt) => (receipt.pending ? "not finished: it may have reached one server" : receipt.out ? "taken back" : "sent");

function drawSent(receipts) {
  panel.sent.replaceChildren(el("details", {}, el("summary", {}, `See what has been sent (${receipts.length})`),
    el("ul", {}, receipts.map((one) => el("li", {}, `${new Date(one.sent).toLocaleString("en-GB")}, ${begun(one)}: ${one.history.map(titleOf).join("; ")} `, el("span", { class: "small muted" }, `contribution ${one.contribution}`)))),
    receipts.length ? null : el("p", { class: "small muted" }, "Nothing, from this browser.")));
}

// Buttons that say the same as before stay: one that is replaced while it is being pressed would lose the press.
function drawButtons(receipts) {
  const open = receipts.find((one) => one.pending), here = receipts.find((one) => !one.out && !one.pending), history = picks.map((place) => ids[place]);
  const before = offered, made = [];
  offered = JSON.stringify([open?.contribution, here?.contribution, history]);
  if (offered === before) { panel.buttons.querySelectorAll("button").forEach((one) => { one.disabled = false; }); return; }
  if (!may) made.push(button("allow", "Allow this page to reach the two servers", () => allow(true)));
  else if (open) made.push(button("finish", "Finish what was begun", async () => { await ask("finish", open.contribution); say("Finished: both servers have it."); }));
  else if (!here && !picks.length) say("Pick what you liked; then it can be sent.");
  else if (!here) made.push(button("send", "Send once", async () => { await ask("sendOnce", history); say("Sent. Both servers have their half; you can take it back at any time."); }));
  else {
    if (!agreed.budget && picks.length) made.push(button("change", "Send my picks of now instead", async () => { await ask("sendChange", here.contribution, history); say("Changed: what you picked now counts."); }));
    made.push(button("back", "Take it back", async () => { await ask("takeBack", here.contribution); say("Taken back: the next sum that is opened is without it. Lists that others already have are not called back."); }));
  }
  if (may) made.push(button("newer", "Newer recommendations", newer), button("forbid", "Stop: no more requests", () => allow(false)));
  panel.buttons.replaceChildren(...made);
}

async function newer() {
  const read = await ask("weights");
  if (!read) { say("No weights have been solved from contributions yet."); return; }
  const places = read.ids.map((id) => placeOf.get(id));
  if (places.includes(undefined)) throw new Error("the new weights are about titles that this page does not have");
  scorer = scoring(read.form, await decode(read.form), places);
  draw();
  say(`These recommendations come from ${few(read.contributions, "contribution", "contributions")}.`);
}

async function drawPanel() {
  const mine = drawing += 1, history = picks.map((place) => ids[place]);
  const [drawn, receipts] = await Promise.all([ask("picture", history), ask("receipts")]);
  if (mine !== drawing) return;
  panel.own.replaceChildren(...(drawn.items.length ? square(drawn) : []));
  panel.facts.replaceChildren(el("dl", {}, rowsOf().flatMap(([name, what]) => [el("dt", {}, name), el("dd", {}, what)])));
  drawSent(receipts);
  drawButtons(receipts);
}

// Titles from a file that people have from elsewhere; it is read here.
async function importFile(file) {
  const { service, rows } = await ask("imported", await file.text(), titles), found = rows.filter((row) => row.place >= 0);
  picks = [...new Set([...picks, ...found.map((row) => row.place)].reverse())].reverse();
  keep();
  draw();
  const none = rows.filter((row) => row.place < 0);
  say(`From ${service}: ${found.length} of ${few(rows.length, "title", "titles")} are known here and are picked now. `,
    none.length > 0 && el("details", {}, el("summary", {}, "Not known here"), none.map((row) => row.title).join("; ")),
    found.length > 0 && el("details", {}, el("summary", {}, "Which is taken for which"), el("ul", {}, found.map((row) => el("li", {}, `${row.title}: ${titles[row.place]}`)))));
}

const file = el("input", { type: "file", id: "import", accept: ".csv,.tsv,.json,text/csv,application/json", onchange: () => { if (file.files[0]) tried(() => importFile(file.files[0])); } });
const kept = el("input", { type: "checkbox", id: "keep", onchange: () => tried(() => ask("keepHistory", kept.checked ? picks.map((place) => ids[place]) : [])) });

document.querySelector(".lead strong").textContent = "nothing you pick leaves your browser unless you send it.";
document.querySelector(".picking").append(el("details", { id: "contribute", open: may, ontoggle: () => { if (agreed) drawPanel(); } },
  el("summary", {}, "Make these recommendations better for others"),
  el("p", {}, "You can send what your picks say about which titles go together, once. Off until you allow it."),
  panel.own, panel.facts, panel.said, panel.buttons, panel.sent,
  el("p", {}, el("label", { for: "import" }, "Take titles from a file of Goodreads, Letterboxd, Netflix or Trakt, or a table: "), file),
  el("p", {}, el("label", { class: "small" }, kept, " Keep my picks in this browser"))));

addEventListener("picked", () => { if (agreed) { if (kept.checked) ask("keepHistory", picks.map((place) => ids[place])); drawPanel(); } });
ask("begin", joining.agreement).then(async (told) => {
  agreed = told;
  const history = (await ask("history")).map((id) => placeOf.get(id)).filter((place) => place !== undefined);
  kept.checked = history.length > 0;
  if (!picks.length && history.length) { picks = history; keep(); draw(); }
  await asksStatus();
  await drawPanel();
}).catch((error) => say(`This browser cannot contribute: ${error.message}.`));
