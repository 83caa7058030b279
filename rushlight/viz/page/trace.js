// The trace: a band for each thread, in it a lane for each depth of calls.

const LANE = 19, AXIS = 20, TITLE = 20, GAP = 8;

class TraceView extends TimeCanvas {
  constructor(canvas, model, onSelect) {
    super(canvas, model.end);
    this.model = model;
    this.onSelect = onSelect;
    this.top = 0;
    this.selected = null;
    this.matches = new Set();
    this.drawn = 0;
    this.place();
  }

  place() {
    let y = AXIS;
    for (const thread of this.model.threads) {
      thread.y = y;
      y += TITLE + thread.lanes.length * LANE + GAP;
    }
    this.depth = y;
  }

  scroll(pixels) {
    this.top = Math.max(0, Math.min(this.top + pixels, this.depth - this.height));
    this.redraw();
  }

  y(event) { return event.thread.y + TITLE + event.depth * LANE - this.top; }

  fit() {
    const e = this.selected;
    if (!e) return super.fit();
    const margin = Math.max(e.duration * 0.1, 1e-3);
    this.show(e.start - margin, e.end + margin);
    this.scroll(this.y(e) - this.height / 3);
  }

  select(event, move) {
    this.selected = event;
    this.onSelect(event);
    if (event && move) {
      if (event.end < this.from || event.start > this.to) {
        const half = Math.max((this.to - this.from) / 2, event.duration);
        this.show(event.start + event.duration / 2 - half, event.start + event.duration / 2 + half);
      }
      const y = this.y(event);
      if (y < AXIS + TITLE || y > this.height - LANE) this.scroll(y - this.height / 3);
    }
    this.redraw();
  }

  at(x, y) {
    if (y < AXIS) return null;
    for (const thread of this.model.threads) {
      const lane = thread.lanes[Math.floor((y + this.top - thread.y - TITLE) / LANE)];
      if (!lane) continue;
      const time = this.time(x), pixels = (this.to - this.from) / this.width;
      for (const near of [0, 2 * pixels]) { // a narrow event can be hit beside it
        const event = lane[firstEndingAfter(lane, time - near)];
        if (event && event.start <= time + near) return event;
      }
    }
    return null;
  }

  hover(e) {
    const event = this.at(e.offsetX, e.offsetY);
    this.canvas.style.cursor = event ? "pointer" : "grab";
    showTip(event && `${event.name}\n${formatTime(event.duration)}, itself ${formatTime(event.duration - event.inside)}`, e);
  }

  click(e) { this.select(this.at(e.offsetX, e.offsetY)); }

  fill(event) {
    if (this.matches.size && !this.matches.has(event)) return colour("--line");
    const [light, vivid] = [this.light, this.vivid];
    if (event.kind === "python_function") return `hsl(215 12% ${light})`;
    if (event.kind === "user_annotation") return `hsl(145 32% ${light})`;
    return `hsl(${hueOf(event.name.replace(/^aten::/, ""))} ${vivid} ${light})`;
  }

  draw(pen) {
    this.light = colour("--light");
    this.vivid = colour("--vivid");
    this.drawn = 0;
    this.fills = new Map();
    for (const thread of this.model.threads) this.drawThread(pen, thread);
    this.drawArrows(pen);
    pen.fillStyle = colour("--paper");
    pen.fillRect(0, 0, this.width, AXIS);
    this.drawAxis(pen, 0, this.height);
    document.body.dataset.drawn = this.drawn;
  }

  drawThread(pen, thread) {
    const top = thread.y - this.top;
    const height = TITLE + thread.lanes.length * LANE;
    if (top > this.height || top + height < 0) return;
    pen.fillStyle = colour("--band");
    pen.fillRect(0, top, this.width, TITLE - 2);
    pen.fillStyle = colour("--faint");
    pen.textAlign = "left";
    pen.fillText(thread.name, 6, top + TITLE / 2 - 1);
    thread.lanes.forEach((lane, depth) => this.drawLane(pen, lane, top + TITLE + depth * LANE));
  }

  // What is narrower than a pixel is drawn once for that pixel.
  drawLane(pen, lane, y) {
    if (y > this.height || y + LANE < AXIS) return;
    let full = -1; // up to which pixel something was drawn
    for (let i = firstEndingAfter(lane, this.from); i < lane.length && lane[i].start <= this.to; i++) {
      const event = lane[i];
      const left = this.x(event.start), right = this.x(event.end);
      this.drawn += 1;
      if (right < full && event !== this.selected) continue;
      const x = Math.max(left, -1), width = Math.max(Math.min(right, this.width + 1) - x, 1);
      full = x + 1;
      pen.fillStyle = this.cached(event);
      pen.fillRect(x, y, width > 3 ? width - 0.6 : width, LANE - 1);
      if (width > 28) this.write(pen, event.name, x, y, width);
      if (event === this.selected) {
        pen.strokeStyle = colour("--mark");
        pen.lineWidth = 2;
        pen.strokeRect(x, y, Math.max(width, 3), LANE - 1);
        pen.lineWidth = 1;
      }
    }
  }

  cached(event) {
    if (this.matches.size) return this.fill(event);
    const key = event.kind + event.name;
    if (!this.fills.has(key)) this.fills.set(key, this.fill(event));
    return this.fills.get(key);
  }

  write(pen, name, x, y, width) {
    const text = name.replace(/^(aten::|nn\.Module: |autograd::engine::evaluate_function: )/, "");
    const letters = Math.floor((width - 8) / 7.2);
    if (letters < 3) return;
    pen.fillStyle = colour("--ink");
    pen.textAlign = "left";
    pen.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, x + 4, y + LANE / 2);
  }

  // All arrows while there is room, otherwise those of the selected event.
  drawArrows(pen) {
    const visible = (e) => e.end >= this.from && e.start <= this.to;
    let arrows = this.model.arrows.filter((a) => visible(a.from) && visible(a.to));
    if (this.selected) arrows = arrows.filter((a) => a.from === this.selected || a.to === this.selected);
    else if (arrows.length > 150) arrows = [];
    pen.strokeStyle = colour(this.selected ? "--mark" : "--faint");
    pen.globalAlpha = this.selected ? 1 : 0.5;
    for (const { from, to } of arrows) {
      const [x0, y0] = [this.x(from.end), this.y(from) + LANE / 2];
      const [x1, y1] = [this.x(to.start), this.y(to) + LANE / 2];
      const bend = Math.max(18, Math.abs(x1 - x0) / 3);
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 4, y1);
      pen.moveTo(x1 - 7, y1 - 4);
      pen.lineTo(x1, y1);
      pen.lineTo(x1 - 7, y1 + 4);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    document.body.dataset.arrows = arrows.length;
  }
}
