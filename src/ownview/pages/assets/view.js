// What people see; elements are made by elements.js.

// A title may end in who made it, behind a long dash: [title, maker].
const parted = (title) => {
  const at = title.lastIndexOf(" \u2014 ");
  return at > 0 ? [title.slice(0, at), title.slice(at + 3)] : [title, ""];
};
const named = (title) => {
  const [name, maker] = parted(title);
  return [name, maker && el("span", { class: "maker" }, ` ${maker}`)];
};

const COLOURS = 8;
const dotOf = (place) => el("span", { class: `dot c${place % COLOURS}`, "aria-hidden": "true" });
const joined = (parts) => parts.flatMap((part, k) => (k === 0 ? [part] : [k === parts.length - 1 ? " and " : ", ", part]));

function chip(title, place, remove) {
  return el("li", { class: "chip" }, dotOf(place), el("span", { class: "name" }, named(title)),
    el("button", { type: "button", "aria-label": `Remove ${title}`, title: "Remove", onclick: remove }, "×"));
}

// Why an item is recommended: at most three picks, each with a good part of what speaks for it.
function because(form, titles, history, shares) {
  const spoken = shares.map((value, place) => ({ place, value })).filter((one) => one.value > 0)
    .sort((a, b) => b.value - a.value);
  const sum = spoken.reduce((total, one) => total + one.value, 0);
  const said = spoken.slice(0, 3).filter((one, k) => k === 0 || one.value > 0.2 * sum)
    .map((one) => el("em", {}, parted(titles[history[one.place]])[0]));
  if (said.length) return [form.kind === "linear" ? "because you liked " : "close to ", joined(said)];
  return [form.bias ? "liked by many" : "from all your picks together"];
}

// A bar as long as the score is high, parted by which picks speak for the item.
function bar(length, shares) {
  const spoken = shares.map((value) => Math.max(value, 0)), sum = spoken.reduce((a, b) => a + b, 0);
  const parts = sum ? spoken.map((value, place) => el("span", { class: `c${place % COLOURS}`, style: { flexGrow: value / sum } }))
    : [el("span", { class: "all", style: { flexGrow: 1 } })];
  return el("div", { class: "track", "aria-hidden": "true" }, el("div", { class: "bar", style: { width: `${100 * length}%` } }, parts));
}

// Addresses are opened by a click and never before; pictures that stand in the page are shown at once.
const outward = (address, ...what) => el("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, ...what);

function pictured(picture, title) {
  if (!picture) return null;
  if (picture.startsWith("data:")) return el("img", { src: picture, alt: "", width: 48, height: 48 });
  return el("span", { class: "picture" }, outward(picture, "Picture", el("span", { class: "hidden" }, ` of ${title}`)));
}

// A picture of the page's own floats beside what follows it, so it comes first.
function headed(title, link, picture) {
  const [name, maker] = named(title), shown = pictured(picture, title), first = shown?.tagName === "IMG";
  return [first && shown, link ? outward(link, name) : name, maker, !first && shown];
}

function recommendation(title, why, length, shares, add, refuse, link, picture) {
  return el("li", {}, el("div", { class: "what" }, el("h3", {}, headed(title, link, picture)),
    el("p", { class: "why" }, why), bar(length, shares)),
    el("div", { class: "answers" },
      el("button", { type: "button", class: "add", "aria-label": `I liked ${title} too`, onclick: add }, el("span", {}, "I liked it")),
      el("button", { type: "button", class: "refuse", "aria-label": `${title} is not for me`, onclick: refuse }, el("span", {}, "Not for me"))));
}

function facts(about, bytes, asks) {
  const share = (value) => `${(100 * value).toFixed(1)} %`, number = (value) => value.toLocaleString("en-GB");
  const rows = [];
  const row = (name, ...what) => rows.push(el("dt", {}, name), el("dd", {}, ...what));
  row("Model", `${about.method.title}: ${about.method.summary} (${about.method.paper})`);
  const settings = Object.entries(about.settings).map(([name, value]) => `${name} ${value}`).join(", ");
  if (settings) row("Settings", settings);
  row("Data", `${about.data.title}: ${number(about.data.users)} people, ${number(about.data.items)} titles${"interactions" in about.data ? `, ${number(about.data.interactions)} interactions` : ""}`);
  row("Terms", about.data.terms);
  if (typeof about.figures === "string") row("Figures", about.figures);
  else {
    const shown = Object.entries(about.figures).filter(([name]) => name !== "users")
      .map(([name, one]) => `${name} ${one.value.toFixed(3)} (${one.interval_95.map((edge) => edge.toFixed(3)).join(" to ")})`);
    row("Figures", `the full model on held-out interactions of ${number(about.figures.users)} people, protocol ${about.protocol}: ${shown.join(", ")}`);
  }
  row("In this page", `${about.kept === 1 ? "all" : `the strongest ${share(about.kept)}`} of the model's weights, rounded; ${about.agreement.sentence}.`);
  const hits = about.agreement.test_hit_rate_at_10;
  if (hits) row("Hits", `a held-out title is among the ten for ${share(hits.here)} of these people in this page, ${share(hits.model)} in the full model`);
  row("Privacy", `${about.privacy.sentence}.${about.privacy.federated ? ` Noise on it: ${about.privacy.noise}.` : ""}`);
  row("Given away", `${about.exposure.join(". ")}.`);
  for (const sentence of [...about.left_out, ...about.notes]) row("Note", sentence);
  return el("details", {}, el("summary", {}, "About this page"), el("dl", {}, rows),
    el("p", { class: "small muted" }, `Made by Ownview ${about.ownview}; ${(bytes / 1e6).toFixed(1)} MB of text, and no request${asks ? " without your leave" : ""}. Picks stand in the address behind #, which browsers do not send.`));
}
