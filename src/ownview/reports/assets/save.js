// A figure's drawings as one SVG or PNG file for papers, in light colours whatever the page shows.

const SCALE = 3; // pixels of a PNG for one of the page
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "opacity", "paint-order", "font-family", "font-size", "font-weight", "text-anchor"];

/** Buttons below a figure; `host` holds its drawings, `called()` is its title. */
function saveButtons(host, called) {
  const name = () => `${dataset().name}-${protocol().name}-${called()}`.toLowerCase().replace(/[^a-z0-9@.]+/g, "-").replace(/^-|-$/g, "");
  const one = (kind, save) => el("button", { type: "button", class: "save", title: `Save this figure as ${kind}`, "aria-label": `Save ${kind} of this figure`, onclick: () => save(inLight(() => drawingOf(host)), name()) }, kind);
  return el("span", { class: "saves" }, one("SVG", saveVector), one("PNG", savePixels));
}

/** Colours are read as they are on a light page; nothing is painted in between. */
function inLight(read) {
  const theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  try {
    return read();
  } finally {
    document.documentElement.dataset.theme = theme;
  }
}

/** All drawings of the figure, and the texts around them (panels' names, keys), where they stand on the page. */
function drawingOf(host) {
  const box = host.getBoundingClientRect();
  const edge = 8;
  const size = { width: Math.ceil(box.width) + 2 * edge, height: Math.ceil(box.height) + 2 * edge };
  const root = draw("svg", { ...size, viewBox: `${-edge} ${-edge} ${size.width} ${size.height}`, xmlns: SVG });
  root.append(draw("rect", { x: -edge, y: -edge, ...size, fill: getComputedStyle(document.documentElement).getPropertyValue("--panel").trim() }));
  for (const svg of host.querySelectorAll("svg")) {
    const at = svg.getBoundingClientRect();
    const copy = styledCopy(svg);
    fill(copy, { x: at.left - box.left, y: at.top - box.top, width: at.width, height: at.height, overflow: "visible" }, []);
    root.append(copy);
  }
  const words = document.createTreeWalker(host, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const parent = words.currentNode.parentElement;
    if (!parent.closest("svg")) root.append(...linesOf(words.currentNode, parent, box));
  }
  return { root, ...size };
}

/** A drawing with its styles written into it: outside the page there is no style sheet. */
function styledCopy(svg) {
  const copy = svg.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((node, k) => {
    const style = getComputedStyle(node);
    for (const name of ["class", "style", "tabindex", "role", "aria-hidden"]) copies[k].removeAttribute(name);
    for (const name of KEPT) {
      const value = style.getPropertyValue(name);
      if (value && !(name === "stroke-dashoffset" && value === "0px")) copies[k].setAttribute(name, value);
    }
  });
  for (const node of copies) if (node.getAttribute("visibility") === "hidden" || node.getAttribute("fill") === "transparent" || node.getAttribute("fill") === "rgba(0, 0, 0, 0)") node.remove();
  return copy;
}

/** One text element a line in which the page has broken the text. */
function linesOf(node, parent, box) {
  const style = getComputedStyle(parent);
  const range = document.createRange();
  const lines = new Map();
  for (const { 0: word, index } of node.textContent.matchAll(/\S+\s*/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.trimEnd().length);
    const at = range.getClientRects()[0];
    if (!at) continue;
    const line = lines.get(Math.round(at.top)) ?? { left: at.left, bottom: at.bottom, height: at.height, words: "" };
    line.words += word;
    lines.set(Math.round(at.top), line);
  }
  return [...lines.values()].map((line) => draw("text", {
    x: (line.left - box.left).toFixed(1), y: (line.bottom - box.top - line.height * 0.24).toFixed(1), fill: style.color,
    "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight,
  }, line.words.trimEnd()));
}

const asText = (root) => new XMLSerializer().serializeToString(root);

function saveVector({ root }, name) {
  saveFile(new Blob([asText(root)], { type: "image/svg+xml" }), `${name}.svg`);
}

async function savePixels({ root, width, height }, name) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(asText(root))}`;
  await image.decode();
  const sheet = el("canvas", { width: width * SCALE, height: height * SCALE });
  sheet.getContext("2d").drawImage(image, 0, 0, width * SCALE, height * SCALE);
  sheet.toBlob((blob) => saveFile(blob, `${name}.png`), "image/png");
}

function saveFile(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
