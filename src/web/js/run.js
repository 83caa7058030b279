#!/usr/bin/env node
// Runs a model of one file in Node, with the options of rushlight-run:
//   node run.js model.rl --input x.npy --output y.npy
import { readFileSync, writeFileSync } from "node:fs";
import { DTYPES, RushlightError, dtypeNumber } from "./core.js";
import { readNpy, writeNpy } from "./npy.js";
import { init } from "./rushlight.js";

const USAGE = `usage: node run.js MODEL.rl [--method NAME] [--input [NAME=]X.npy ...] [--output [NAME=]Y.npy ...]
       [--threads N] [--repeat N]
Without inputs it says what the model takes and gives.`;

function parse(words) {
  const options = { inputs: [], outputs: [], repeat: 1, threads: 1, method: undefined, model: undefined };
  const named = (text) => {
    const at = text.indexOf("=");
    return at < 0 ? [null, text] : [text.slice(0, at), text.slice(at + 1)];
  };
  while (words.length) {
    const word = words.shift();
    const value = () => {
      if (!words.length) throw new RushlightError(`${word} needs a value\n${USAGE}`, "value");
      return words.shift();
    };
    if (word === "--help" || word === "-h") return null;
    else if (word === "--input") options.inputs.push(named(value()));
    else if (word === "--output") options.outputs.push(named(value()));
    else if (word === "--method") options.method = value();
    else if (word === "--repeat" || word === "--threads") {
      const number = (options[word.slice(2)] = Number(value()));
      if (!Number.isSafeInteger(number) || number < 1) throw new RushlightError(`${word} needs a number from 1`, "value");
    } else if (word.startsWith("-")) throw new RushlightError(`there is no option ${word}\n${USAGE}`, "value");
    else if (options.model) throw new RushlightError(`one model at a time\n${USAGE}`, "value");
    else options.model = word;
  }
  if (!options.model) throw new RushlightError(USAGE, "value");
  return options;
}

function fileBytes(path) {
  try {
    return new Uint8Array(readFileSync(path));
  } catch (e) {
    throw new RushlightError(`cannot open '${path}': ${e.message}`, "runtime");
  }
}

// Values in the order of `infos`, those without a name first come.
function placed(given, infos, what) {
  const found = new Array(infos.length);
  for (const [name, value] of given) {
    const at = name === null ? infos.findIndex((_, i) => found[i] === undefined) : infos.findIndex((i) => i.name === name);
    if (at < 0) throw new RushlightError(name === null ? `too many ${what}s` : `there is no ${what} '${name}'`, "value");
    found[at] = value;
  }
  return found;
}

function run(rl, options) {
  const model = rl.loadModel(fileBytes(options.model));
  const method = options.method ?? model.methods[0];
  const { inputs, outputs } = model.method(method);
  if (!options.inputs.length && inputs.length) {
    for (const name of model.methods) {
      const m = model.method(name);
      console.log(`${name}:`);
      for (const i of m.inputs) console.log(`  input ${i.name}: ${i.type}`);
      for (const o of m.outputs) console.log(`  output ${o.name}: ${o.type}`);
    }
    return;
  }
  const paths = placed(options.inputs, inputs, "input");
  const tensors = paths.map((path, i) => {
    if (path === undefined) throw new RushlightError(`the input '${inputs[i].name}' is missing`, "value");
    const { dtype, shape, bytes } = readNpy(fileBytes(path));
    const [, , Type] = DTYPES[dtypeNumber(dtype)];
    return rl.tensor(new Type(bytes.buffer), shape, dtype);
  });
  if (paths.length < inputs.length) throw new RushlightError(`the input '${inputs[paths.length].name}' is missing`, "value");
  const session = model.hasState || method !== model.methods[0] ? model.session() : null;
  let results;
  const times = [];
  for (let i = 0; i < options.repeat; ++i) {
    const start = performance.now();
    results = session ? session.run(method, tensors) : model.run(tensors);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  if (times.length > 1) console.log(`median of ${times.length} runs: ${times[times.length >> 1].toFixed(2)} ms`);
  const targets = placed(options.outputs, outputs, "output");
  outputs.forEach((info, i) => {
    const t = results[info.name];
    if (targets[i]) writeFileSync(targets[i], writeNpy({ dtype: t.dtype, shape: t.shape, data: t.data() }));
    else if (!options.outputs.length) console.log(`${info.name}: ${t.dtype}[${t.shape.join(", ")}]`);
  });
}

async function main() {
  const options = parse(process.argv.slice(2));
  if (!options) return console.log(USAGE);
  const rl = await init({ threads: options.threads });
  try {
    run(rl, options);
  } finally {
    rl.close();
  }
}

main().catch((e) => {
  console.error(`run.js: ${e instanceof RushlightError ? e.message : e.stack}`);
  process.exitCode = 1;
});
