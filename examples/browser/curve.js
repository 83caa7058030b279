// The picture of a training: the loss of each step, and the accuracy held out after each epoch.
const LOSS = "#d9480f", ACCURACY = "#1864ab", GRID = "#d8dee4", TEXT = "#59636e";
const EDGE = { left: 44, right: 48, top: 26, bottom: 24 };

/** Draws on a canvas: `losses` of the steps, `marks` of {step, epoch, accuracy}, and how many steps there will be. */
export function drawCurve(canvas, { losses, marks, steps }) {
  // As many points as the screen has.
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";

  const top = Math.ceil(2 * Math.max(0.5, ...losses)) / 2;
  const x = (step) => EDGE.left + (step / steps) * (width - EDGE.left - EDGE.right);
  const y = (share) => height - EDGE.bottom - share * (height - EDGE.top - EDGE.bottom);
  const line = (color, points, thickness) => {
    pen.strokeStyle = color;
    pen.lineWidth = thickness;
    pen.beginPath();
    points.forEach(([px, py], i) => (i ? pen.lineTo(px, py) : pen.moveTo(px, py)));
    pen.stroke();
  };
  const text = (color, align, said, px, py) => {
    pen.fillStyle = color;
    pen.textAlign = align;
    pen.fillText(said, px, py);
  };

  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    line(GRID, [[EDGE.left, y(share)], [width - EDGE.right, y(share)]], 1);
    text(LOSS, "right", (top * share).toFixed(2), EDGE.left - 8, y(share) + 4);
    text(ACCURACY, "left", `${100 * share}%`, width - EDGE.right + 8, y(share) + 4);
  }
  const every = Math.max(1, Math.ceil(marks.length / 12));
  for (const { step, epoch } of marks)
    if (epoch % every === 0) text(TEXT, "center", epoch, x(step), height - 7);
  text(TEXT, "left", "epoch", 4, height - 7);
  text(LOSS, "left", "loss", EDGE.left, 16);
  text(ACCURACY, "right", "accuracy held out", width - EDGE.right, 16);

  line(LOSS, losses.map((loss, i) => [x(i + 1), y(loss / top)]), 1.2);
  line(ACCURACY, marks.map(({ step, accuracy }) => [x(step), y(accuracy)]), 2);
  pen.fillStyle = ACCURACY;
  for (const { step, accuracy } of marks) {
    pen.beginPath();
    pen.arc(x(step), y(accuracy), 3, 0, 2 * Math.PI);
    pen.fill();
  }
}
