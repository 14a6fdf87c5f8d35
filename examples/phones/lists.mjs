// Lists of ten in Node, to compare with Python's: node lists.mjs PACKAGE FOLDER < HISTORIES, a JSON list of lists of
// positions; lists of positions come out. PACKAGE is onnxruntime-node or onnxruntime-web, and NODE_PATH says where it lies.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { recommend } from "./recommend.mjs";

const [name, folder] = process.argv.slice(2), ort = createRequire(import.meta.url)(name);
const session = await ort.InferenceSession.create(readFileSync(`${folder}/model.onnx`));
const lists = [];
for (const history of JSON.parse(readFileSync(0, "utf8"))) {
  const { best, scores } = await recommend(ort, session, history);
  lists.push({ best, scores: Array.from(scores) });
}
console.log(JSON.stringify(lists));
