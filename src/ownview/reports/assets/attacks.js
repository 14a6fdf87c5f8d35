// What the server reads from one upload of every method, and what one client that lies reaches, where a comparison has looked; without that, nothing.

const ATTACKED = { precision: "precision", recall: "recall", AUC: "AUC", "shuffled precision": "precision, other users' items" };

function attacksSection() {
  const node = el("section", { id: "attacks", "aria-labelledby": "attacks-title" });
  const update = () => {
    const { attacks: found, liars } = dataset();
    node.hidden = !found.length;
    const loud = found.filter((one) => one.fires).length;
    replace(node, found.length ? [
      el("h2", { id: "attacks-title" }, "What one upload gives away"),
      el("p", { class: "lead" }, `An honest but curious server attacked single uploads of a few users. It learnt their items from ${loud} of ${found.length} methods.`),
      el("div", { class: "panel" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Attacks" }, attacksTable(found))),
      liars.length ? el("ul", { id: "liars" }, liars.map((one) => el("li", {}, `${one.label}: ${one.sentence}`))) : null] : null);
  };
  listeners.push(update);
  update();
  return node;
}

function attacksTable(found) {
  const names = Object.keys(ATTACKED);
  return el("table", { class: "results" },
    el("caption", {}, "The best attack on one upload, mean over users; the last column is the control."),
    el("thead", {}, el("tr", {}, ["method", "noise", "attack"].map((name) => el("th", { scope: "col" }, name)), names.map((name) => el("th", { scope: "col", class: "n" }, ATTACKED[name])))),
    el("tbody", {}, found.map((one) => el("tr", {}, el("th", { scope: "row" }, one.label), el("td", {}, one.privacy), el("td", {}, one.probe),
      names.map((name) => el("td", { class: "n" }, name in one.values ? share(one.values[name]) : "–"))))));
}
