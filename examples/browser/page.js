// The page: a training in the worker, a pad to draw on, a picture to classify.
import { drawCurve } from "./curve.js";
import { makeNetwork, SIDE } from "./digits.js";
import { canShareMemory, init } from "./rushlight/rushlight.js";

const $ = (id) => document.getElementById(id);
const say = (text) => {
  if ($("state").className !== "error") $("state").textContent = text;
};
const fail = (e) => {
  $("state").textContent = e.message ?? String(e);
  $("state").className = "error";
};
const percent = (share) => `${(100 * share).toFixed(1)}%`;

/** A list of names, each with a bar and its share of one. */
function showBars(list, named) {
  list.replaceChildren(
    ...named.map(([name, share]) => {
      const item = document.createElement("li"), label = document.createElement("span");
      const bar = document.createElement("meter"), value = document.createElement("span");
      label.textContent = name;
      bar.value = share;
      value.textContent = percent(share);
      item.append(label, bar, value);
      return item;
    }),
  );
}

// --- training

const training = { losses: [], marks: [], steps: 1 };
let network = null, rl = null, last = null;

const worker = new Worker("worker.js", { type: "module" });
worker.onerror = (e) => fail(new Error(`the worker did not start: ${e.message ?? "no reason given"}`));
const received = {
  error(e) {
    fail(e);
    $("train").disabled = false;
  },
  ready() {
    $("train").disabled = false;
    say("Ready: train the network first.");
  },
  step({ loss, share }) {
    training.losses.push(loss);
    training.steps = Math.round(training.losses.length / share);
    $("share").value = share;
    if (training.losses.length % 5 === 0) drawCurve($("curve"), training);
  },
  epoch(mark) {
    training.marks.push(mark);
    drawCurve($("curve"), training);
    const { epoch, accuracy, seconds } = mark, loss = training.losses.at(-1).toFixed(4);
    $("progress").textContent =
      `epoch ${epoch}: loss ${loss}, ${(100 * accuracy).toFixed(2)}% of the digits held out are right, ${seconds.toFixed(1)} s`;
    $("progress").dataset.accuracy = accuracy;
  },
  trained({ state }) {
    network = makeNetwork(rl.nn);
    network.loadStateDict(state);
    network.eval();
    $("train").disabled = false;
    say("Trained: draw a digit.");
    $("state").dataset.trained = "yes";
    $("digit").textContent = "Draw a digit.";
    classifyDigit();
  },
};
worker.onmessage = ({ data }) => received[data.kind](data);
$("train").onclick = () => {
  training.losses.length = training.marks.length = 0;
  $("train").disabled = true;
  say("Training …");
  worker.postMessage({ epochs: Number($("epochs").value), seed: Number($("seed").value) });
};
addEventListener("resize", () => drawCurve($("curve"), training));

// --- drawing

const pad = $("pad").getContext("2d", { willReadFrequently: true });
pad.lineWidth = 16;
pad.lineCap = pad.lineJoin = "round";
const place = (e) => {
  const box = $("pad").getBoundingClientRect();
  return [((e.clientX - box.left) / box.width) * 160, ((e.clientY - box.top) / box.height) * 160];
};
const lineTo = (next) => {
  pad.beginPath();
  pad.moveTo(...last);
  pad.lineTo(...next);
  pad.stroke();
  last = next;
};
$("pad").onpointerdown = (e) => {
  last = place(e);
  lineTo(last); // a dot, where nothing follows
  $("pad").setPointerCapture(e.pointerId);
};
$("pad").onpointermove = (e) => last && lineTo(place(e));
$("pad").onpointerup = $("pad").onpointercancel = () => {
  last = null;
  classifyDigit();
};
$("clear").onclick = () => {
  pad.clearRect(0, 0, 160, 160);
  $("seen").getContext("2d").clearRect(0, 0, 160, 160);
  $("digit").textContent = network ? "Draw a digit." : "Train first, then draw a digit.";
  showChances(new Array(10).fill(0));
};
const showChances = (chances) => showBars($("chances"), Array.from(chances, (chance, digit) => [digit, chance]));
showChances(new Array(10).fill(0));

// What was drawn, cut out, as high as the digits of the data are, in the middle of 8 x 8.
function drawnDigit() {
  const ink = pad.getImageData(0, 0, 160, 160).data;
  let [left, top, right, bottom] = [160, 160, -1, -1];
  for (let y = 0; y < 160; ++y)
    for (let x = 0; x < 160; ++x)
      if (ink[4 * (160 * y + x) + 3] > 64) {
        left = Math.min(left, x), right = Math.max(right, x);
        top = Math.min(top, y), bottom = Math.max(bottom, y);
      }
  if (right < 0) return null;
  const size = Math.max(bottom - top, right - left, 40) + 1;
  const x0 = (left + right + 1 - size) / 2, y0 = (top + bottom + 1 - size) / 2;
  const pixels = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < SIDE; ++y)
    for (let x = 0; x < SIDE; ++x) {
      let sum = 0, count = 0;
      for (let v = 0; v < 10; ++v)
        for (let u = 0; u < 10; ++u, ++count) {
          const px = Math.floor(x0 + ((x + u / 10) / SIDE) * size), py = Math.floor(y0 + ((y + v / 10) / SIDE) * size);
          if (px >= 0 && py >= 0 && px < 160 && py < 160) sum += ink[4 * (160 * py + px) + 3] / 255;
        }
      pixels[SIDE * y + x] = sum / count;
    }
  return pixels;
}

function classifyDigit() {
  const pixels = drawnDigit();
  if (!pixels || !network) return;
  const shown = $("seen").getContext("2d");
  pixels.forEach((p, i) => {
    shown.fillStyle = `rgb(${[0, 0, 0].map(() => Math.round(255 * (1 - p)))})`;
    shown.fillRect((i % SIDE) * 20, Math.floor(i / SIDE) * 20, 20, 20);
  });
  const chances = rl.tidy(() =>
    rl.noGrad(() => network.forward(rl.tensor(pixels, [1, 1, SIDE, SIDE])).softmax(1).data()),
  );
  const best = chances.indexOf(Math.max(...chances));
  showChances(chances);
  $("digit").textContent = `This is a ${best}, with ${percent(chances[best])}.`;
  $("digit").dataset.digit = best;
}

// --- a picture

const MEAN = [0.485, 0.456, 0.406], DEVIATION = [0.229, 0.224, 0.225];
const picture = $("picture").getContext("2d", { willReadFrequently: true });

function drawPicture(image) {
  const size = Math.min(image.width, image.height);
  picture.drawImage(image, (image.width - size) / 2, (image.height - size) / 2, size, size, 0, 0, 224, 224);
}
function drawScene() {
  const sky = picture.createLinearGradient(0, 0, 0, 224);
  sky.addColorStop(0, "#4a90d9");
  sky.addColorStop(1, "#e8f1fa");
  picture.fillStyle = sky;
  picture.fillRect(0, 0, 224, 224);
  picture.fillStyle = "#3c7a3c";
  picture.fillRect(0, 150, 224, 74);
  picture.fillStyle = "#c0392b";
  picture.fillRect(60, 90, 104, 80);
  picture.fillStyle = "#7f1d1d";
  picture.beginPath();
  picture.moveTo(48, 90), picture.lineTo(112, 40), picture.lineTo(176, 90);
  picture.fill();
}

async function classifyPicture(model, names) {
  const { data } = picture.getImageData(0, 0, 224, 224), plane = 224 * 224, pixels = new Float32Array(3 * plane);
  for (let i = 0; i < plane; ++i)
    for (let c = 0; c < 3; ++c) pixels[c * plane + i] = (data[4 * i + c] / 255 - MEAN[c]) / DEVIATION[c];
  const begin = performance.now();
  const scores = rl.tidy(() => Object.values(model.run(pixels))[0].softmax(1).data());
  const took = performance.now() - begin;
  const best = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a]).slice(0, 5);
  showBars($("classes"), best.map((i) => [names[i] ?? `class ${i}`, scores[i]]));
  $("took").textContent = `${took.toFixed(0)} ms, ${rl.threads === 1 ? "one thread" : `${rl.threads} threads`}`;
  $("took").dataset.milliseconds = took;
}

async function start() {
  drawCurve($("curve"), training);
  drawScene();
  rl = await init({ threads: canShareMemory ? Math.min(navigator.hardwareConcurrency, 4) : 1 });
  const about = await (await fetch("about.json")).json();
  $("weights").textContent = about.weights;
  const model = await rl.fetchModel("mobilenet.rl");
  const classify = () => classifyPicture(model, about.classes).catch(fail);
  $("classify").disabled = false;
  $("classify").onclick = classify;
  $("file").onchange = async () => {
    try {
      drawPicture(await createImageBitmap($("file").files[0]));
    } catch (e) {
      return fail(new Error(`the picture cannot be read: ${e.message}`));
    }
    await classify();
  };
}
start().catch(fail);
