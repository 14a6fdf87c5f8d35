// Numbers to pixels and to words.

function linear(low, high, from, to) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.ticks = (count, least = 0) => roundTicks(low, high, count, least);
  scale.low = low;
  scale.high = high;
  return scale;
}

function logarithmic(low, high, from, to) {
  const start = Math.log10(low);
  const span = Math.log10(high) - start || 1;
  const scale = (value) => from + ((Math.log10(Math.max(value, low)) - start) / span) * (to - from);
  scale.ticks = (count) => logTicks(low, high, count);
  scale.low = low;
  scale.high = high;
  return scale;
}

/** Steps of 1, 2 or 5 times a power of ten, and never below `least`: there is no round 1.5. */
function roundTicks(low, high, count, least = 0) {
  const rough = (high - low || 1) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
  return ticks;
}

function logTicks(low, high, count) {
  if (high / low < 12) return roundTicks(low, high, Math.max(count, 3)).filter((tick) => tick > 0);
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) powers.push(power);
  const inside = (tick) => tick >= low * 0.999 && tick <= high * 1.001;
  const at = (factors) => powers.flatMap((power) => factors.map((factor) => factor * 10 ** power)).filter(inside);
  const ticks = [[1, 2, 5], [1, 3]].map(at).find((found) => found.length <= count) ?? at([1]);
  const skip = Math.ceil(ticks.length / Math.max(count, 2));
  return ticks.length > 1 ? ticks.filter((_, k) => k % skip === 0) : [low, high];
}

const CHARACTER = 6.8; // pixels that a character of a tick takes, or a little less

/** As many ticks as their texts leave room for across `room` pixels, evenly spaced, no text twice. */
function fittingTicks(axis, room) {
  let ticks = [];
  for (let count = Math.max(3, Math.floor(room / 58)); count >= 2; count--) {
    ticks = distinctTicks(axis.ticks ?? axis.scale.ticks(count, axis.whole ? 1 : 0), axis.format);
    const ends = ticks.map((tick) => [axis.scale(tick), (axis.format(tick).length * CHARACTER) / 2 + 4]);
    if (ends.every(([at, half], k) => k === 0 || at - half >= ends[k - 1][0] + ends[k - 1][1])) return ticks;
  }
  return ticks.filter((_, k) => k === 0 || k === ticks.length - 1);
}

const distinctTicks = (ticks, format) => ticks.filter((tick, k) => k === 0 || format(tick) !== format(ticks[k - 1]));

/** A range with a little room, for values that may all be equal. */
function extent(values, { zero = false, log = false, room = 0.06 } = {}) {
  const known = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (!known.length) return log ? [0.001, 1] : [0, 1];
  const low = Math.min(...known);
  const high = Math.max(...known);
  if (log) {
    const spread = Math.max((high / low) ** room, 1.15);
    return [low / spread, high * spread];
  }
  const margin = (high - low || Math.abs(high) || 1) * room;
  return [zero && low >= 0 ? 0 : low - margin, high + margin];
}

const places = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–");
const share = (value) => places(value, 3);
const percent = (value) => {
  const hundred = 100 * value;
  const digits = hundred === 0 || hundred >= 9.95 ? 0 : hundred >= 0.095 ? 1 : Math.min(6, 1 - Math.floor(Math.log10(hundred)));
  return `${places(hundred, digits)}\u00a0%`;
};
const percentTick = (value) => `${tidy(100 * value)}\u00a0%`;
const whole = (value) => Math.round(value).toLocaleString("en-GB");
const tidy = (value) => {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(1).replace("e-", "e−").replace("e+", "e");
  return String(Number(value.toPrecision(3))).replace("-", "−");
};

function withUnit(value, units) {
  const [size, unit] = units.find(([least]) => value >= least) ?? units[units.length - 1];
  return `${Number((value / size).toPrecision(3))}\u00a0${unit}`;
}
const bytes = (value) => (value ? withUnit(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]) : "0 B");
const seconds = (value) => (value ? withUnit(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) : "0 s");
