// Memory over time, stacked by category, and the blocks that are alive at a moment.

const SWATCHES = {
  parameter: "#3f8f4f", optimizer_state: "#c9962b", input: "#6b7684", temporary: "#8f6fd1",
  activation: "#d9534f", gradient: "#3b82d6", autograd_detail: "#3aa6a6", unknown: "#a9b1bb",
};
const swatch = (category) => SWATCHES[category] || SWATCHES.unknown;

class MemoryView extends TimeCanvas {
  constructor(canvas, model, onMoment) {
    super(canvas, model.end);
    this.memory = model.memory;
    this.onMoment = onMoment;
    this.moment = this.memory.peak.time;
  }

  stepAt(time) {
    const steps = this.memory.steps;
    let low = 0, high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle].time <= time) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  // What each pixel shows: the step with the largest total in it, so that no peak is lost.
  columns() {
    const steps = this.memory.steps;
    const found = [];
    let i = this.stepAt(this.from);
    for (let x = 0; x < this.width; x++) {
      let most = steps[i];
      const until = this.time(x + 1);
      while (i + 1 < steps.length && steps[i + 1].time < until) {
        i += 1;
        if (!most || steps[i].total > most.total) most = steps[i];
      }
      found.push(most);
    }
    return found;
  }

  draw(pen) {
    const columns = this.columns();
    const top = columns.reduce((most, s) => Math.max(most, s ? s.total : 0), 1) * 1.08;
    this.y = (bytes) => this.height - (bytes / top) * (this.height - AXIS);
    const floor = columns.map(() => 0);
    this.memory.categories.forEach((category, c) => {
      const path = new Path2D();
      columns.forEach((s, x) => path.lineTo(x, this.y(floor[x] + (s ? s.sizes[c] : 0))));
      for (let x = columns.length - 1; x >= 0; x--) path.lineTo(x, this.y(floor[x]));
      columns.forEach((s, x) => { floor[x] += s ? s.sizes[c] : 0; });
      pen.fillStyle = swatch(category);
      pen.globalAlpha = 0.85;
      pen.fill(path);
    });
    pen.globalAlpha = 1;
    this.drawAxis(pen, 0, this.height);
    this.drawScale(pen, top);
    const x = this.x(this.moment);
    pen.strokeStyle = colour("--mark");
    pen.beginPath();
    pen.moveTo(x, AXIS);
    pen.lineTo(x, this.height);
    pen.stroke();
    document.body.dataset.steps = this.memory.steps.length;
  }

  drawScale(pen, top) {
    const power = 2 ** Math.floor(Math.log2(top / 4));
    pen.textAlign = "right";
    for (let bytes = power; bytes < top; bytes += power) {
      const y = Math.round(this.y(bytes)) + 0.5;
      pen.strokeStyle = colour("--ink");
      pen.globalAlpha = 0.15;
      pen.beginPath();
      pen.moveTo(0, y);
      pen.lineTo(this.width, y);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = colour("--ink");
      pen.fillText(formatBytes(bytes), this.width - 4, y - 8);
    }
  }

  hover(e) {
    const time = this.time(e.offsetX);
    const step = this.memory.steps[this.stepAt(time)];
    if (!step) return showTip(null);
    const parts = this.memory.categories.map((c, i) => [c, step.sizes[i]]).filter(([, bytes]) => bytes);
    const lines = parts.reverse().map(([c, bytes]) => `${c.replace("_", " ")}: ${formatBytes(bytes)}`);
    showTip([`${formatTime(time)}: ${formatBytes(step.total)}`, ...lines].join("\n"), e);
  }

  click(e) {
    this.moment = this.time(e.offsetX);
    this.onMoment(this.moment);
    this.redraw();
  }

  aliveAt(time) {
    return this.memory.blocks.filter((b) => b.start <= time && b.end > time).sort((a, b) => b.bytes - a.bytes);
  }
}
