// The page: the curve of a training in the worker, a pad to draw on, a picture to classify.
import { makeNetwork, SIDE } from "./digits.js";
import { init } from "./rushlight/rushlight.js";

const $ = (id) => document.getElementById(id);
const fail = (e) => {
  $("state").textContent = e.message ?? String(e);
  $("state").className = "error";
};

// --- training

const losses = [], marks = []; // of each step; {step, accuracy} of each epoch
let steps = 1;

function drawCurve() {
  const canvas = $("curve"), { width, height } = canvas, pen = canvas.getContext("2d");
  const x = (step) => (step / steps) * (width - 20) + 10, top = Math.max(2.5, ...losses.slice(0, 1));
  const line = (color, points) => {
    pen.strokeStyle = color;
    pen.beginPath();
    points.forEach(([px, py], i) => (i ? pen.lineTo(px, py) : pen.moveTo(px, py)));
    pen.stroke();
  };
  pen.clearRect(0, 0, width, height);
  pen.font = "13px sans-serif";
  line("#d9480f", losses.map((loss, i) => [x(i), height - 10 - (Math.min(loss, top) / top) * (height - 30)]));
  line("#1864ab", marks.map(({ step, accuracy }) => [x(step), height - 10 - accuracy * (height - 30)]));
  pen.fillStyle = "#d9480f";
  pen.fillText("loss", width - 60, 16);
  pen.fillStyle = "#1864ab";
  pen.fillText("accuracy held out", width - 190, 16);
}

const worker = new Worker("worker.js", { type: "module" });
let network = null, rl = null;
worker.onerror = (e) => fail(new Error(`the worker did not start: ${e.message ?? "no reason given"}`));
worker.onmessage = ({ data }) => {
  if (data.kind === "error") return fail(data), ($("train").disabled = false);
  if (data.kind === "ready") {
    $("train").disabled = false;
    $("state").textContent = "Ready.";
  } else if (data.kind === "step") {
    losses.push(data.loss);
    steps = Math.round(losses.length / data.share);
    if (losses.length % 5 === 0) drawCurve();
  } else if (data.kind === "epoch") {
    marks.push(data);
    drawCurve();
    const share = (100 * data.accuracy).toFixed(2);
    $("progress").textContent = `epoch ${data.epoch}: loss ${losses.at(-1).toFixed(4)}, held out ${share}%, ${data.seconds.toFixed(1)} s`;
    $("progress").dataset.accuracy = data.accuracy;
  } else if (data.kind === "trained") {
    network = makeNetwork(rl.nn);
    network.loadStateDict(data.state);
    network.eval();
    $("train").disabled = false;
    $("state").textContent = "Trained: draw a digit.";
    $("state").dataset.trained = "yes";
    $("digit").textContent = "Draw a digit.";
  }
};
$("train").onclick = () => {
  losses.length = marks.length = 0;
  $("train").disabled = true;
  $("state").textContent = "Training …";
  worker.postMessage({ epochs: Number($("epochs").value), seed: Number($("seed").value) });
};

// --- drawing

const pad = $("pad").getContext("2d", { willReadFrequently: true });
pad.lineWidth = 16;
pad.lineCap = pad.lineJoin = "round";
let last = null;
const place = (e) => {
  const box = $("pad").getBoundingClientRect();
  return [((e.clientX - box.left) / box.width) * 160, ((e.clientY - box.top) / box.height) * 160];
};
$("pad").onpointerdown = (e) => {
  last = place(e);
  $("pad").setPointerCapture(e.pointerId);
};
$("pad").onpointermove = (e) => {
  if (!last) return;
  const next = place(e);
  pad.beginPath();
  pad.moveTo(...last);
  pad.lineTo(...next);
  pad.stroke();
  last = next;
};
$("pad").onpointerup = () => {
  last = null;
  classifyDigit();
};
$("clear").onclick = () => {
  pad.clearRect(0, 0, 160, 160);
  $("digit").textContent = network ? "Draw a digit." : "Train first, then draw a digit.";
};

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
  $("digit").textContent = `This is a ${best}, with ${(100 * chances[best]).toFixed(1)}%.`;
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

async function classifyPicture(model) {
  const { data } = picture.getImageData(0, 0, 224, 224), plane = 224 * 224, pixels = new Float32Array(3 * plane);
  for (let i = 0; i < plane; ++i)
    for (let c = 0; c < 3; ++c) pixels[c * plane + i] = (data[4 * i + c] / 255 - MEAN[c]) / DEVIATION[c];
  const begin = performance.now();
  const scores = rl.tidy(() => Object.values(model.run(pixels))[0].softmax(1).data());
  const took = performance.now() - begin;
  const best = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a]).slice(0, 5);
  $("classes").replaceChildren(
    ...best.map((i) => {
      const item = document.createElement("li");
      item.textContent = `class ${i}: ${(100 * scores[i]).toFixed(2)}%`;
      return item;
    }),
  );
  $("took").textContent = `${took.toFixed(0)} ms`;
  $("took").dataset.milliseconds = took;
}

async function start() {
  rl = await init();
  drawScene();
  const about = await (await fetch("about.json")).json();
  $("weights").textContent = about.weights;
  const model = await rl.fetchModel("mobilenet.rl");
  $("classify").disabled = false;
  $("classify").onclick = () => classifyPicture(model).catch(fail);
  $("file").onchange = async () => {
    try {
      drawPicture(await createImageBitmap($("file").files[0]));
    } catch (e) {
      return fail(new Error(`the picture cannot be read: ${e.message}`));
    }
    await classifyPicture(model).catch(fail);
  };
}
start().catch(fail);
