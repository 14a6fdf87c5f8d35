// From text to numbers: base64, then gzip, then typed arrays; all of it in the page.

const KINDS = { "f4": Float32Array, "u4": Uint32Array, "u2": Uint16Array, "i2": Int16Array, "i1": Int8Array };

async function numbers(text, kind) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new KINDS[kind](await new Response(stream).arrayBuffer());
}

// Compressed rows: { offsets, columns, values }. Columns come as gaps, values as whole numbers times their row's scale.
async function rows(text) {
  const lengths = await numbers(text.lengths, "u4"), gaps = await numbers(text.gaps, `u${text.gap_bytes}`);
  const whole = await numbers(text.whole, "i1"), scales = await numbers(text.scales, "f4");
  const offsets = new Uint32Array(lengths.length + 1);
  const columns = new Uint32Array(gaps.length), values = new Float32Array(gaps.length);
  for (let row = 0, place = 0; row < lengths.length; row += 1) {
    offsets[row + 1] = offsets[row] + lengths[row];
    for (let column = 0; place < offsets[row + 1]; place += 1) {
      column += gaps[place];
      columns[place] = column;
      values[place] = (text.fine ? whole[place] * Math.sqrt(Math.abs(whole[place])) : whole[place]) * scales[row];
    }
  }
  return { offsets, columns, values };
}

// A matrix { width, values }, row after row.
async function matrix(text) {
  const width = Number(text.width);
  const whole = await numbers(text.whole, "i2"), scales = await numbers(text.scales, "f4");
  return { width, values: Float32Array.from(whole, (value, place) => value * scales[Math.floor(place / width)]) };
}

export async function decode(form) {
  const arrays = {};
  for (const [name, text] of Object.entries(form.arrays)) {
    if (text.floats !== undefined) arrays[name] = await numbers(text.floats, "f4");
    else arrays[name] = text.lengths === undefined ? await matrix(text) : await rows(text);
  }
  return arrays;
}
