// One tooltip for the whole page, shown by pointer, touch and keyboard alike.

const tooltip = document.getElementById("tooltip");

function showTip(content, x, y) {
  replace(tooltip, content);
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + 14 + width > innerWidth - 8 ? x - width - 14 : x + 14;
  const top = y + 16 + height > innerHeight - 8 ? y - height - 12 : y + 16;
  tooltip.style.left = `${Math.max(6, Math.min(left, innerWidth - width - 6))}px`;
  tooltip.style.top = `${Math.max(6, top)}px`;
}

function hideTip() {
  tooltip.hidden = true;
}

/** Shows `content()` while the pointer is over the node or the keyboard on it. */
function tip(node, content) {
  const at = () => {
    const box = node.getBoundingClientRect();
    showTip(content(), box.left + box.width / 2, box.top + box.height / 2);
  };
  node.addEventListener("pointerenter", (event) => showTip(content(), event.clientX, event.clientY));
  node.addEventListener("pointermove", (event) => showTip(content(), event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", at);
  node.addEventListener("blur", hideTip);
  return node;
}

addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
addEventListener("scroll", hideTip, { passive: true });

/** A heading and rows of [mark, name, value] as a tooltip's content. */
function tipRows(head, rows) {
  return [
    el("p", { class: "head" }, head),
    el("table", {}, rows.map(([mark, name, value]) =>
      el("tr", {}, el("td", {}, mark), el("td", {}, name), el("td", { class: "n" }, value)))),
  ];
}

/** A heading and lines of text. */
const tipLines = (head, ...lines) => [el("p", { class: "head" }, head), lines.flat().map((line) => el("p", {}, line))];
