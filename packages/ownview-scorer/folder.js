// Reads the three files of `ownview export` that a scorer needs: model.json, items.csv and model.safetensors.

const KINDS = { F32: Float32Array, I64: BigInt64Array };

// The arrays of a safetensors file: { name: { shape, values } }; places come as Uint32Array.
function tensors(buffer) {
  const view = new DataView(buffer), start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  delete header.__metadata__;
  return Object.fromEntries(Object.entries(header).map(([name, about]) => {
    const [from, to] = about.data_offsets, kind = KINDS[about.dtype];
    if (!kind) throw new Error(`model.safetensors: ${name} has type ${about.dtype}; expected ${Object.keys(KINDS).join(" or ")}`);
    const values = new kind(buffer.slice(start + from, start + to));
    return [name, { shape: about.shape, values: kind === BigInt64Array ? Uint32Array.from(values, Number) : values }];
  }));
}

// Rows of a CSV file: cells in quotation marks may hold commas, line ends and doubled marks.
function cells(text) {
  const rows = [[]];
  let cell = "", quoted = false;
  for (let k = 0; k < text.length; k += 1) {
    const letter = text[k];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[k + 1] === '"') { cell += '"'; k += 1; } else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === "," || letter === "\n") {
      rows[rows.length - 1].push(cell);
      cell = "";
      if (letter === "\n") rows.push([]);
    } else cell += letter;
  }
  return rows.filter((row) => row.length);
}

// The form's arrays under the names and shapes that the scorer reads.
function arraysOf(form, read) {
  const matrix = ({ shape, values }) => ({ width: shape[1], values }), arrays = {};
  if (form.bias) arrays.bias = read.bias.values;
  if (form.kind === "factors") arrays.items = matrix(read.items);
  else {
    form.terms.forEach((term, place) => {
      const name = `term${place}`, of = (part) => read[`${name}.${part}`];
      if (term.weights === "rows") {
        arrays[`${name}.rows`] = { offsets: of("offsets").values, columns: of("columns").values, values: of("values").values };
      } else for (const part of term.weights === "whole" ? ["weights"] : ["left", "right"]) arrays[`${name}.${part}`] = matrix(of(part));
    });
  }
  return arrays;
}

async function requireSame(name, buffer, expected) {
  const digest = new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", buffer));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== expected) throw new Error(`${name}: is damaged: its SHA-256 is not the one in model.json`);
}

export async function readFolder(read) {
  const about = JSON.parse(new TextDecoder().decode(await read("model.json")));
  if (about.format !== 1) throw new Error(`model.json: format ${about.format}; expected 1`);
  const buffers = {};
  for (const [name, digest] of Object.entries(about.sha256)) {
    buffers[name] = await read(name);
    await requireSame(name, buffers[name], digest);
  }
  // Text that spreadsheets would take for a formula has an apostrophe in front.
  const items = cells(new TextDecoder().decode(buffers["items.csv"])).slice(1)
    .map((row) => row.map((cell) => cell.replace(/^'(?='*[=+\-@\t\r])/, "")));
  const exact = buffers["model.safetensors"];
  return {
    ids: items.map((row) => row[0]), titles: items.map((row) => row[1]), known: items.map((_, place) => place),
    form: about.form, arrays: arraysOf(about.form, tensors(exact)), about,
  };
}
