// What both drawings share: a span of time that can be moved and zoomed, sharp pixels, a time axis.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function hueOf(text) {
  let hash = 7;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
  return hash % 360;
}

class TimeCanvas {
  constructor(canvas, end) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.end = Math.max(end, 1e-3);
    this.from = 0;
    this.to = this.end;
    this.pointers = new Map();
    this.waiting = false;
    new ResizeObserver(() => this.redraw()).observe(canvas);
    this.listen();
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("wheel", (e) => this.onWheel(e), { passive: false });
    c.addEventListener("pointerdown", (e) => this.onDown(e));
    c.addEventListener("pointermove", (e) => this.onMove(e));
    for (const end of ["pointerup", "pointercancel"]) c.addEventListener(end, (e) => this.onUp(e));
    c.addEventListener("pointerleave", () => showTip(null));
    c.addEventListener("keydown", (e) => this.onKey(e));
  }

  get width() { return this.canvas.clientWidth || 1; }
  get height() { return this.canvas.clientHeight || 1; }
  x(time) { return ((time - this.from) / (this.to - this.from)) * this.width; }
  time(x) { return this.from + (x / this.width) * (this.to - this.from); }

  show(from, to) {
    const least = 1e-3; // a nanosecond
    let span = Math.min(Math.max(to - from, least), this.end * 1.1);
    const middle = (from + to) / 2;
    const slack = this.end * 0.05;
    this.from = Math.max(-slack, Math.min(middle - span / 2, this.end + slack - span));
    this.to = this.from + span;
    this.redraw();
  }

  zoom(factor, x) {
    const middle = this.time(x);
    this.show(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  move(pixels) {
    const shift = (pixels / this.width) * (this.to - this.from);
    this.show(this.from + shift, this.to + shift);
  }

  scroll() {} // other rows, where there are any

  onWheel(e) {
    e.preventDefault();
    if (e.shiftKey) return this.scroll(e.deltaY || e.deltaX);
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) return this.move(e.deltaX);
    this.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.002))), e.offsetX);
  }

  onDown(e) {
    this.canvas.setPointerCapture?.(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
    this.travelled = 0;
  }

  onMove(e) {
    const before = this.pointers.get(e.pointerId);
    if (!before) return this.hover(e);
    const now = { x: e.offsetX, y: e.offsetY };
    const other = [...this.pointers].find(([id]) => id !== e.pointerId)?.[1];
    if (other) {
      const apart = (p) => Math.max(20, Math.abs(p.x - other.x));
      this.zoom(apart(before) / apart(now), other.x);
    } else {
      this.move(before.x - now.x);
      this.scroll(before.y - now.y);
    }
    this.travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    this.pointers.set(e.pointerId, now);
  }

  onUp(e) {
    if (this.pointers.delete(e.pointerId) && this.travelled < 5 && e.type === "pointerup") this.click(e);
  }

  onKey(e) {
    const middle = this.width / 2;
    const step = this.width / 8;
    const actions = {
      w: () => this.zoom(0.7, middle), s: () => this.zoom(1 / 0.7, middle),
      a: () => this.move(-step), d: () => this.move(step),
      ArrowLeft: () => this.move(-step), ArrowRight: () => this.move(step),
      ArrowUp: () => this.scroll(-60), ArrowDown: () => this.scroll(60),
      0: () => this.show(0, this.end), f: () => this.fit(),
    };
    const action = !e.ctrlKey && !e.metaKey && !e.altKey && actions[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!action) return;
    e.preventDefault();
    action();
  }

  fit() { this.show(0, this.end); }
  hover() {}
  click() {}

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.drawNow(); });
  }

  drawNow() {
    const { canvas, pen } = this;
    if (!canvas.clientWidth) return; // its tab is hidden
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = colour("--paper");
    pen.fillRect(0, 0, this.width, this.height);
    this.draw(pen);
  }

  // Lines at round times, with the first one's distance to the beginning written out.
  drawAxis(pen, top, bottom) {
    const wanted = ((this.to - this.from) * 110) / this.width;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= wanted);
    pen.textAlign = "left";
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) {
      const x = Math.round(this.x(t)) + 0.5;
      pen.strokeStyle = colour("--ink");
      pen.globalAlpha = 0.12;
      pen.beginPath();
      pen.moveTo(x, top);
      pen.lineTo(x, bottom);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = colour("--faint");
      pen.fillText(formatTime(Math.abs(t) < step / 2 ? 0 : t), x + 4, top + 9);
    }
  }
}

function showTip(text, e) {
  const tip = document.getElementById("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const right = e.clientX > innerWidth / 2;
  tip.style.left = right ? "auto" : `${e.clientX + 14}px`;
  tip.style.right = right ? `${innerWidth - e.clientX + 14}px` : "auto";
  tip.style.top = `${Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
}
