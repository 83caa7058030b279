"use strict";
// From a Chrome trace to threads, lanes, arrows and sums.

// Events are kept in columns: a trace has hundreds of thousands.
function readTrace(trace) {
  const raw = (trace.traceEvents || trace || []).filter((e) => e && e.ph);
  const complete = raw.filter((e) => e.ph === "X" && e.cat !== "Trace" && Number.isFinite(e.ts));
  complete.sort((a, b) => a.ts - b.ts || (b.dur || 0) - (a.dur || 0));
  const origin = complete.reduce((least, e) => Math.min(least, e.ts), Infinity);
  const zero = Number.isFinite(origin) ? origin : trace.memory ? trace.memory.start : 0;
  const model = { zero, events: [], threads: [], arrows: [], end: 0, memory: null };
  const threads = new Map();
  for (const e of complete) {
    const key = `${e.pid}/${e.tid}`;
    if (!threads.has(key)) {
      threads.set(key, { key, name: `thread ${e.tid}`, lanes: [], open: [] });
      model.threads.push(threads.get(key));
    }
    addEvent(model, threads.get(key), e);
  }
  for (const e of raw) {
    const thread = e.ph === "M" && e.name === "thread_name" && threads.get(`${e.pid}/${e.tid}`);
    if (thread) thread.name = e.args.name;
  }
  addArrows(model, threads, raw);
  if (trace.memory) model.memory = readMemory(model, trace.memory);
  return model;
}

// Blocks come as [first moment, last moment or null, bytes, category, operator, module]; the last two by number.
function readMemory(model, memory) {
  model.end = Math.max(model.end, memory.end - model.zero);
  const blocks = memory.blocks.map(([start, end, bytes, category, operator, module]) => ({
    start: start - model.zero, end: end === null ? Infinity : end - model.zero, bytes, category,
    operator: memory.names[operator], module: memory.names[module],
  }));
  const changes = [];
  for (const block of blocks) {
    changes.push([block.start, block.category, block.bytes]);
    if (block.end !== Infinity) changes.push([block.end, block.category, -block.bytes]);
  }
  changes.sort((a, b) => a[0] - b[0] || a[2] - b[2]);
  const steps = [];
  const sizes = memory.categories.map(() => 0);
  for (const [time, category, bytes] of changes) {
    sizes[category] += bytes;
    const step = { time, sizes: sizes.slice(), total: sizes.reduce((a, b) => a + b, 0) };
    if (steps.length && steps[steps.length - 1].time === time) steps.pop();
    steps.push(step);
  }
  const peak = steps.reduce((most, s) => (s.total > most.total ? s : most), { total: 0, time: 0 });
  return { categories: memory.categories, blocks, steps, peak };
}

function addEvent(model, thread, e) {
  const event = {
    id: model.events.length, name: String(e.name), kind: e.cat || "", start: e.ts - model.zero,
    duration: e.dur || 0, args: e.args || {}, thread, parent: null, inside: 0, depth: 0,
  };
  event.end = event.start + event.duration;
  // Half a nanosecond of slack: times are rounded when they are written.
  while (thread.open.length && thread.open[thread.open.length - 1].end < event.end - 5e-4) thread.open.pop();
  event.parent = thread.open[thread.open.length - 1] || null;
  event.depth = thread.open.length;
  if (event.parent) event.parent.inside += event.duration;
  thread.open.push(event);
  (thread.lanes[event.depth] = thread.lanes[event.depth] || []).push(event);
  model.events.push(event);
  model.end = Math.max(model.end, event.end);
}

// A flow's ends name a thread and a time; they belong to the innermost event there.
function addArrows(model, threads, raw) {
  const starts = new Map();
  const at = (e) => {
    const thread = threads.get(`${e.pid}/${e.tid}`);
    return thread && innermost(thread, e.ts - model.zero);
  };
  for (const e of raw) if (e.ph === "s") starts.set(`${e.cat}/${e.id}`, e);
  for (const e of raw) {
    const start = e.ph === "f" && starts.get(`${e.cat}/${e.id}`);
    const from = start && at(start), to = start && at(e);
    if (from && to) model.arrows.push({ from, to });
  }
}

function innermost(thread, time) {
  for (let depth = thread.lanes.length - 1; depth >= 0; depth--) {
    const lane = thread.lanes[depth];
    const event = lane[firstEndingAfter(lane, time - 5e-4)];
    if (event && event.start <= time + 5e-4) return event;
  }
  return null;
}

// Events of a lane follow each other, so that their ends are in order too.
function firstEndingAfter(lane, time) {
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].end < time) low = middle + 1; else high = middle;
  }
  return low;
}

function sumsByName(model) {
  const sums = new Map();
  for (const event of model.events) {
    const sum = sums.get(event.name) || { name: event.name, calls: 0, total: 0, self: 0, bytes: 0 };
    sum.calls += 1;
    sum.total += event.duration;
    sum.self += event.duration - event.inside;
    sum.bytes += event.args.Bytes || 0;
    sums.set(event.name, sum);
  }
  return [...sums.values()];
}

function formatTime(us) {
  const size = Math.abs(us);
  const [unit, name] = size >= 1e6 ? [1e6, "s"] : size >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return `${Number((us / unit).toFixed(unit === 1 && size >= 10 ? 1 : 3))} ${name}`;
}

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let n = bytes, unit = 0;
  while (Math.abs(n) >= 1024 && unit < units.length - 1) { n /= 1024; unit += 1; }
  return `${unit ? n.toFixed(2) : n} ${units[unit]}`;
}
