// The exports of rushlight.wasm, with JavaScript's values: memory, text, errors.

export class RushlightError extends Error {
  /** @param {string} kind what went wrong, as in the type ErrorKind */
  constructor(message, kind = "other", options = undefined) {
    super(message, options);
    this.name = "RushlightError";
    this.kind = kind;
  }
}

// enum rl_error of rushlight/c.h
const KINDS = ["", "runtime", "value", "type", "index", "not-implemented", "out-of-memory", "other"];

// enum rl_dtype: name, bytes an element, what its numbers are in
export const DTYPES = [
  ["bool", 1, Uint8Array],
  ["uint8", 1, Uint8Array],
  ["int8", 1, Int8Array],
  ["int16", 2, Int16Array],
  ["int32", 4, Int32Array],
  ["int64", 8, BigInt64Array],
  ["uint16", 2, Uint16Array],
  ["uint32", 4, Uint32Array],
  ["uint64", 8, BigUint64Array],
  ["float16", 2, Uint16Array],
  ["bfloat16", 2, Uint16Array],
  ["float32", 4, Float32Array],
  ["float64", 8, Float64Array],
  ["complex64", 8, Float32Array],
  ["complex128", 16, Float64Array],
];

export function dtypeNumber(name) {
  const number = DTYPES.findIndex(([known]) => known === name);
  if (number < 0) throw new RushlightError(`there is no dtype '${name}'`, "value");
  return number;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** One instance of the program: its exports, and room for arguments. */
export class Core {
  constructor(module) {
    this.module = module;
    this.heap = new Uint8Array(0);
    this.broken = null;
    this.room = this.alloc(256); // results of calls
    // Handles that JavaScript dropped; what `release` is called with must not hold them.
    this.dropped = new FinalizationRegistry(({ release, handle }) => {
      if (!this.broken) this.module[release](handle);
    });
  }

  alloc(bytes) {
    const at = this.module._rl_browser_alloc(Math.max(bytes, 1));
    if (!at) throw new RushlightError(`out of memory: ${bytes} bytes are not to be had in this tab`, "out-of-memory");
    return at >>> 0;
  }
  free(at) {
    this.module._free(at);
  }

  // Memory that grew has another buffer. Another thread may have made it grow.
  get bytes() {
    const { buffer } = this.module.wasmMemory;
    if (this.heap.buffer !== buffer) this.heap = new Uint8Array(buffer);
    return this.heap;
  }
  get view() {
    return new DataView(this.bytes.buffer);
  }
  u32(at) {
    return this.view.getUint32(at, true);
  }
  i64(at) {
    return Number(this.view.getBigInt64(at, true));
  }
  f64(at) {
    return this.view.getFloat64(at, true);
  }

  text(at) {
    const bytes = this.bytes;
    let end = at;
    while (bytes[end]) ++end;
    return decoder.decode(bytes.slice(at, end));
  }

  /** Calls a function that gives an rl_error; throws what went wrong. */
  check(name, ...args) {
    const failed = this.run(name, ...args);
    if (failed) throw new RushlightError(this.text(this.module._rl_last_error() >>> 0), KINDS[failed] ?? "other");
  }
  run(name, ...args) {
    if (this.broken) throw new RushlightError(`this instance stopped before: ${this.broken}`, "stopped");
    try {
      return this.module[name](...args);
    } catch (e) {
      // A trap, such as a stack that is too deep. What was written half may be anything from here on.
      this.broken = e.message ?? String(e);
      throw new RushlightError(`the program stopped: ${this.broken}`, "stopped", { cause: e });
    }
  }

  /** Calls f with a place for arguments that are freed afterwards. */
  scoped(f) {
    const frame = new Frame(this);
    try {
      return f(frame);
    } finally {
      for (const at of frame.blocks) this.free(at);
    }
  }
}

class Frame {
  constructor(core) {
    this.core = core;
    this.blocks = [];
  }
  alloc(bytes) {
    const at = this.core.alloc(bytes);
    this.blocks.push(at);
    return at;
  }
  text(string) {
    const bytes = encoder.encode(string);
    const at = this.alloc(bytes.length + 1);
    this.core.bytes.set(bytes, at);
    this.core.bytes[at + bytes.length] = 0;
    return at;
  }
  pointers(list) {
    const at = this.alloc(4 * list.length);
    const view = this.core.view;
    list.forEach((p, i) => view.setUint32(at + 4 * i, p, true));
    return at;
  }
  int64s(list) {
    const at = this.alloc(8 * list.length);
    const view = this.core.view;
    list.forEach((n, i) => {
      if (typeof n !== "bigint" && !Number.isSafeInteger(n)) throw new RushlightError(`${n} is no integer`, "type");
      view.setBigInt64(at + 8 * i, BigInt(n), true);
    });
    return at;
  }
  doubles(list) {
    const at = this.alloc(8 * list.length);
    const view = this.core.view;
    list.forEach((n, i) => view.setFloat64(at + 8 * i, n, true));
    return at;
  }
}
