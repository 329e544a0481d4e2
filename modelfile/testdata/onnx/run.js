// Runs each ONNX model of a folder in ONNX Runtime, with inputs that are sines, and prints inputs and
// outputs as JSON. The paths are those of the folder and of a folder node_modules with onnxruntime-node:
//
//	node run.js FOLDER NODE_MODULES > FOLDER/answers.json
const fs = require('fs'), path = require('path');
const [folder, modules] = process.argv.slice(2);
const ort = require(path.resolve(modules, 'onnxruntime-node'));

const values = (tensors) => Object.fromEntries(Object.entries(tensors).map(
  ([name, t]) => [name, Array.from(t.data, (v) => Number(Number(v).toPrecision(9)))]));

async function run(file) {
  const session = await ort.InferenceSession.create(path.join(folder, file), { graphOptimizationLevel: 'disabled' });
  const feeds = {};
  session.inputMetadata.forEach((m, k) => {
    const n = m.shape.reduce((a, b) => a * b, 1);
    feeds[m.name] = new ort.Tensor('float32', Float32Array.from({ length: n }, (_, i) => Math.sin(1 + k + i)), m.shape);
  });
  return { in: values(feeds), out: values(await session.run(feeds)) };
}

(async () => {
  const answers = {};
  for (const file of fs.readdirSync(folder).filter((f) => f.endsWith('.onnx')).sort()) answers[file.slice(0, -5)] = await run(file);
  console.log('{\n' + Object.entries(answers).map(([name, a]) => JSON.stringify(name) + ':' + JSON.stringify(a)).join(',\n') + '\n}');
})();
