// Recommendations from a folder that `ownview export --onnx` wrote. `ort` is any of ONNX Runtime's JavaScript packages, which
// have the same interface: onnxruntime-react-native on a telephone, onnxruntime-web in a browser, onnxruntime-node elsewhere.

const whole = (ort, values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [values.length]);

// The k best items, by position in items.csv, for a history of such positions, the oldest first; and the scores of all.
export async function recommend(ort, session, history, k = 10, afterPause = false) {
  const given = { history: whole(ort, history), k: whole(ort, [k]) };
  // A blend asks whether the latest item is from before a pause.
  if (session.inputNames.includes("after_pause")) given.after_pause = whole(ort, [Number(afterPause)]);
  const { best, scores } = await session.run(given);
  return { best: Array.from(best.data, Number), scores: scores.data };
}
