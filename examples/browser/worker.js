// Trains the digits network away from the page, which stays quick to answer.
import { makeNetwork, shuffled, SIDE, split } from "./digits.js";
import { init } from "./rushlight/rushlight.js";

const BATCH = 64, RATE = 5e-3;
let rl, data;

async function start() {
  rl = await init();
  const response = await fetch("digits.bin");
  if (!response.ok) throw new Error(`digits.bin: the server answered ${response.status}`);
  data = split(new Uint8Array(await response.arrayBuffer()));
  postMessage({ kind: "ready", training: data.training.count, heldOut: data.heldOut.count });
}

function accuracy(network, set) {
  network.eval();
  const right = rl.tidy(() =>
    rl.noGrad(() => {
      const images = rl.tensor(set.images, [set.count, 1, SIDE, SIDE]), labels = rl.tensor(set.labels);
      return network.forward(images).argmax(1).eq(labels).sum().item();
    }),
  );
  return right / set.count;
}

function train({ epochs, seed }) {
  rl.manualSeed(seed);
  const network = makeNetwork(rl.nn), { nn } = rl, { training } = data;
  const optimizer = rl.optim.adamW(network.parameters(), { lr: RATE, weightDecay: 0.01 });
  const images = rl.tensor(training.images, [training.count, 1, SIDE, SIDE]), labels = rl.tensor(training.labels);
  const batches = Math.ceil(training.count / BATCH), begin = performance.now();
  for (let epoch = 0, step = 0; epoch < epochs; ++epoch) {
    network.train();
    const order = shuffled(training.count, seed * 1000 + epoch + 1);
    for (let i = 0; i < training.count; i += BATCH, ++step) {
      optimizer.setLearningRate(RATE * 0.5 * (1 + Math.cos((Math.PI * step) / (epochs * batches))));
      const loss = rl.tidy(() => {
        const chosen = rl.tensor(BigInt64Array.from(order.slice(i, i + BATCH), BigInt));
        const loss = nn.crossEntropy(network.forward(images.indexSelect(0, chosen)), labels.indexSelect(0, chosen));
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
        return loss.item();
      });
      postMessage({ kind: "step", step, loss, share: (step + 1) / (epochs * batches) });
    }
    const seconds = (performance.now() - begin) / 1000;
    postMessage({ kind: "epoch", epoch: epoch + 1, step, accuracy: accuracy(network, data.heldOut), seconds });
  }
  images.dispose();
  labels.dispose();
  postMessage({ kind: "trained", state: network.stateDict(), memory: rl.memoryBytes });
}

const started = start();
const report = (e) => postMessage({ kind: "error", message: e.message ?? String(e) });
started.catch(report);
onmessage = async ({ data: message }) => {
  try {
    await started;
    train(message);
  } catch (e) {
    report(e);
  }
};
