// Tensors by handle, and calls of operators.
import { DTYPES, RushlightError, dtypeNumber } from "./core.js";

// enum rl_kind of rushlight/c.h; an rl_value is its number, a length, and eight bytes.
const NONE = 0, TENSOR = 1, TENSORS = 2, BOOLEAN = 3, INT = 4, FLOAT = 5, INTS = 6, FLOATS = 7, STRING = 8, DTYPE = 9;
const VALUE_BYTES = 16, MOST_RESULTS = 64;

const KEEP = Symbol("handle");
let scope = null; // tensors made since the innermost tidy()

function arrayDType(data) {
  // Uint8ClampedArray is what a canvas gives.
  if (data instanceof Uint8ClampedArray) return "uint8";
  for (const [name, , type] of DTYPES) if (name !== "bool" && data instanceof type) return name;
  return null;
}

function shapeOf(data) {
  const sizes = [];
  for (let level = data; Array.isArray(level); level = level[0]) sizes.push(level.length);
  return sizes;
}

function flattened(data, sizes, depth = 0, out = []) {
  if (depth === sizes.length) {
    if (Array.isArray(data)) throw new RushlightError("rows of a tensor differ in length", "value");
    out.push(data);
    return out;
  }
  if (!Array.isArray(data) || data.length !== sizes[depth])
    throw new RushlightError("rows of a tensor differ in length", "value");
  for (const row of data) flattened(row, sizes, depth + 1, out);
  return out;
}

export class Tensor {
  constructor(core, handle, secret) {
    if (secret !== KEEP) throw new RushlightError("tensors are made by tensor(), zeros(), ...", "type");
    this.core = core;
    this._handle = handle >>> 0;
    core.dropped.register(this, { release: "_rl_tensor_release", handle: this._handle }, this);
    scope?.add(this);
  }

  get handle() {
    if (!this._handle) throw new RushlightError("this tensor was disposed of", "value");
    return this._handle;
  }
  /** Gives its memory back now. */
  dispose() {
    if (!this._handle) return;
    this.core.dropped.unregister(this);
    this.core.run("_rl_tensor_release", this._handle);
    this._handle = 0;
    scope?.delete(this);
  }

  get shape() {
    const { core } = this;
    core.check("_rl_tensor_dim", this.handle, core.room);
    core.check("_rl_tensor_sizes", this.handle, core.room + 8);
    const at = core.u32(core.room + 8);
    return Array.from({ length: core.u32(core.room) }, (_, i) => core.i64(at + 8 * i));
  }
  get size() {
    this.core.check("_rl_tensor_numel", this.handle, this.core.room);
    return this.core.i64(this.core.room);
  }
  get dtype() {
    this.core.check("_rl_tensor_dtype", this.handle, this.core.room);
    return DTYPES[this.core.u32(this.core.room)][0];
  }

  /** A copy of the elements, in a typed array. */
  data() {
    const { core } = this;
    const dense = this.op("contiguous");
    try {
      const [, bytes, Type] = DTYPES[dtypeNumber(dense.dtype)];
      core.check("_rl_tensor_data", dense.handle, core.room);
      const at = core.u32(core.room);
      const length = (dense.size * bytes) / Type.BYTES_PER_ELEMENT;
      return new Type(core.bytes.buffer, at, length).slice(); // the copy is no shared memory
    } finally {
      if (dense !== this) dense.dispose();
    }
  }
  item() {
    this.core.check("_rl_tensor_item", this.handle, this.core.room);
    return this.core.f64(this.core.room);
  }
  /** Nested arrays of numbers. */
  tolist() {
    const data = this.data();
    const step = (sizes, from, count) =>
      sizes.length === 0
        ? data[from]
        : Array.from({ length: sizes[0] }, (_, i) => {
            const inner = count / sizes[0];
            return step(sizes.slice(1), from + i * inner, inner);
          });
    return step(this.shape, 0, data.length);
  }

  requiresGrad(on = true) {
    this.core.check("_rl_tensor_set_requires_grad", this.handle, on ? 1 : 0);
    return this;
  }
  backward() {
    this.core.check("_rl_tensor_backward", this.handle);
  }
  get grad() {
    this.core.check("_rl_tensor_grad", this.handle, this.core.room);
    const handle = this.core.u32(this.core.room);
    return handle ? wrap(this.core, handle) : null;
  }

  /** An operator of which this is the first argument: t.op("softmax.int", 1). */
  op(name, ...args) {
    return call(this.core, name, this, ...args);
  }
  toString() {
    return `Tensor(${this.dtype}[${this.shape.join(", ")}])`;
  }
}

// Operators as methods; all others are reached by op().
const METHODS = {
  add: "add.Tensor", sub: "sub.Tensor", mul: "mul.Tensor", div: "div.Tensor", matmul: "matmul", neg: "neg",
  exp: "exp", log: "log", sqrt: "sqrt", abs: "abs", tanh: "tanh", sigmoid: "sigmoid", relu: "relu", sum: "sum",
  mean: "mean", max: "max", min: "min", argmax: "argmax", reshape: "reshape", transpose: "transpose.int",
  unsqueeze: "unsqueeze", squeeze: "squeeze", flatten: "flatten.using_ints", softmax: "softmax.int",
  logSoftmax: "log_softmax.int", clone: "clone", detach: "detach", contiguous: "contiguous", eq: "eq", gt: "gt",
  lt: "lt", indexSelect: "index_select", slice: "slice.Tensor", select: "select.int",
};
for (const [method, name] of Object.entries(METHODS))
  Tensor.prototype[method] = function (...args) {
    return call(this.core, name, this, ...args);
  };

export function wrap(core, handle) {
  return new Tensor(core, handle, KEEP);
}

/** A name of a dtype, as an argument of an operator. */
export class DTypeArgument {
  constructor(name) {
    this.number = dtypeNumber(name);
  }
}
/** A number that operators take as one with a fraction, even where it has none. */
export class Float {
  constructor(value) {
    this.value = value;
  }
}

function writeValue(core, frame, at, value) {
  const set = (kind, length, write) => {
    core.view.setInt32(at, kind, true);
    core.view.setUint32(at + 4, length, true);
    core.view.setBigInt64(at + 8, 0n, true);
    write?.(core.view);
  };
  const pointer = (kind, length, target) => set(kind, length, (v) => v.setUint32(at + 8, target, true));
  if (value === null || value === undefined) return set(NONE, 0);
  if (value instanceof Tensor) return pointer(TENSOR, 0, value.handle);
  if (value instanceof DTypeArgument) return set(DTYPE, 0, (v) => v.setInt32(at + 8, value.number, true));
  if (value instanceof Float) return set(FLOAT, 0, (v) => v.setFloat64(at + 8, value.value, true));
  if (typeof value === "boolean") return set(BOOLEAN, 0, (v) => v.setInt32(at + 8, value ? 1 : 0, true));
  if (typeof value === "bigint") return set(INT, 0, (v) => v.setBigInt64(at + 8, value, true));
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return set(INT, 0, (v) => v.setBigInt64(at + 8, BigInt(value), true));
    return set(FLOAT, 0, (v) => v.setFloat64(at + 8, value, true));
  }
  if (typeof value === "string") return pointer(STRING, new TextEncoder().encode(value).length, frame.text(value));
  if (Array.isArray(value)) {
    if (value.length && value.every((v) => v instanceof Tensor))
      return pointer(TENSORS, value.length, frame.pointers(value.map((t) => t.handle)));
    if (value.every((v) => typeof v === "bigint" || Number.isSafeInteger(v)))
      return pointer(INTS, value.length, frame.int64s(value));
    if (value.every((v) => typeof v === "number")) return pointer(FLOATS, value.length, frame.doubles(value));
  }
  throw new RushlightError(`no operator takes ${Object.prototype.toString.call(value)}`, "type");
}

function readValue(core, at) {
  const view = core.view;
  switch (view.getInt32(at, true)) {
    case TENSOR: {
      const handle = view.getUint32(at + 8, true);
      return handle ? wrap(core, handle) : null;
    }
    case BOOLEAN:
      return view.getInt32(at + 8, true) !== 0;
    case INT: {
      const n = view.getBigInt64(at + 8, true);
      return Number.isSafeInteger(Number(n)) ? Number(n) : n;
    }
    case FLOAT:
      return view.getFloat64(at + 8, true);
    default:
      return null;
  }
}

/** Calls an operator by its name. One result is itself, several are an array. */
export function call(core, name, ...args) {
  return core.scoped((frame) => {
    const values = frame.alloc(VALUE_BYTES * args.length);
    args.forEach((value, i) => writeValue(core, frame, values + VALUE_BYTES * i, value));
    const results = frame.alloc(VALUE_BYTES * MOST_RESULTS + 4), count = results + VALUE_BYTES * MOST_RESULTS;
    core.view.setUint32(count, MOST_RESULTS, true);
    core.check("_rl_call", frame.text(name), values, args.length, results, count);
    const found = Array.from({ length: core.u32(count) }, (_, i) => readValue(core, results + VALUE_BYTES * i));
    return found.length === 1 ? found[0] : found;
  });
}

/** A tensor of numbers: a typed array with sizes, a number, or nested arrays. */
export function tensor(core, data, sizes, dtype) {
  let source = data;
  if (!ArrayBuffer.isView(data)) {
    const found = shapeOf(data);
    source = flattened(data, found);
    sizes ??= found;
    dtype ??= typeof source[0] === "boolean" ? "bool" : typeof source[0] === "bigint" ? "int64" : "float32";
  }
  dtype ??= arrayDType(source);
  if (!dtype) throw new RushlightError("a tensor's elements must be in a typed array, or numbers", "type");
  sizes ??= [source.length];
  const number = dtypeNumber(dtype), [, bytes, Type] = DTYPES[number];
  return core.scoped((frame) => {
    core.check("_rl_tensor_empty", frame.int64s(sizes), sizes.length, number, core.room);
    const made = wrap(core, core.u32(core.room));
    const room = (made.size * bytes) / Type.BYTES_PER_ELEMENT;
    if (room !== source.length) {
      made.dispose();
      throw new RushlightError(`sizes [${sizes}] of ${dtype} take ${room} numbers, not ${source.length}`, "value");
    }
    core.check("_rl_tensor_data", made.handle, core.room);
    const to = new Type(core.bytes.buffer, core.u32(core.room), room);
    if (Type === BigInt64Array || Type === BigUint64Array) {
      const given = source instanceof Type ? source : Array.from(source, (n) => BigInt(n));
      to.set(given);
    } else {
      to.set(source);
    }
    return made;
  });
}

/** Runs f; tensors that it made and does not return are disposed of. */
export function tidy(f) {
  const outer = scope, own = (scope = new Set());
  let kept = [];
  try {
    const result = f();
    if (result instanceof Promise) throw new RushlightError("tidy() takes no asynchronous function", "type");
    kept = (Array.isArray(result) ? result : [result]).filter((t) => t instanceof Tensor);
    return result;
  } finally {
    scope = outer;
    for (const t of kept) {
      own.delete(t);
      outer?.add(t);
    }
    for (const t of [...own]) t.dispose();
  }
}
/** Keeps a tensor beyond the innermost tidy(). */
export function keep(t) {
  scope?.delete(t);
  return t;
}
