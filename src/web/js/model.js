// Models of one file, and their sessions.
import { DTYPES, RushlightError } from "./core.js";
import { Tensor, tensor, wrap } from "./tensor.js";

const INFO_BYTES = 24; // rl_model_tensor

function readInfo(core, at) {
  const view = core.view;
  const dtype = view.getInt32(at + 8, true), count = view.getUint32(at + 16, true), sizes = view.getUint32(at + 20, true);
  return {
    name: core.text(view.getUint32(at, true)),
    type: core.text(view.getUint32(at + 4, true)),
    dtype: DTYPES[dtype]?.[0] ?? "other",
    sizes: view.getInt32(at + 12, true) ? Array.from({ length: count }, (_, i) => core.i64(sizes + 8 * i)) : null,
  };
}

// Inputs in the model's order, from what a caller gives: tensors, typed arrays where sizes are known, by name or not.
function ordered(core, infos, given, made) {
  let list = Array.isArray(given) ? given : [given];
  const plain = !Array.isArray(given) && !(given instanceof Tensor) && !ArrayBuffer.isView(given);
  if (plain) {
    for (const name of Object.keys(given))
      if (!infos.some((info) => info.name === name))
        throw new RushlightError(`there is no input '${name}'; there are ${infos.map((i) => i.name).join(", ")}`, "value");
    list = infos.map((info) => {
      if (given[info.name] === undefined) throw new RushlightError(`the input '${info.name}' is missing`, "value");
      return given[info.name];
    });
  }
  if (list.length !== infos.length)
    throw new RushlightError(`the method takes ${infos.length} inputs, but got ${list.length}`, "value");
  return list.map((value, i) => {
    if (value instanceof Tensor) return value;
    const { name, sizes, dtype } = infos[i];
    if (!ArrayBuffer.isView(value))
      throw new RushlightError(`the input '${name}' must be a tensor or a typed array`, "type");
    if (!sizes || sizes.includes(-1))
      throw new RushlightError(`the sizes of the input '${name}' are the caller's to choose: give a tensor`, "value");
    const one = tensor(core, value, sizes, dtype);
    made.push(one);
    return one;
  });
}

class Runner {
  constructor(core, handle, release) {
    this.core = core;
    this._handle = handle;
    this._release = release;
    core.dropped.register(this, { release, handle }, this);
  }
  get handle() {
    if (!this._handle) throw new RushlightError("this model or session was disposed of", "value");
    return this._handle;
  }
  dispose() {
    if (!this._handle) return;
    this.core.dropped.unregister(this);
    this.core.run(this._release, this._handle);
    this._handle = 0;
  }
}

function runMethod(runner, model, method, given, start) {
  const { core } = runner;
  const { inputs, outputs } = model.method(method);
  const made = [];
  try {
    const list = ordered(core, inputs, given, made);
    return core.scoped((frame) => {
      const results = frame.alloc(4 * outputs.length);
      start(frame, frame.pointers(list.map((t) => t.handle)), list.length, results, outputs.length);
      const found = {};
      outputs.forEach((info, i) => (found[info.name] = wrap(core, core.u32(results + 4 * i))));
      return found;
    });
  } finally {
    for (const t of made) t.dispose();
  }
}

export class Model extends Runner {
  /** @param {Uint8Array} bytes a whole file, which is copied */
  constructor(core, bytes) {
    const at = core.alloc(bytes.length);
    core.bytes.set(bytes, at);
    core.check("_rl_browser_model", at, bytes.length, core.room); // it frees the bytes, now or with the model
    super(core, core.u32(core.room), "_rl_model_release");
    core.check("_rl_model_method_count", this.handle, core.room);
    this.methods = Array.from({ length: core.u32(core.room) }, (_, i) => {
      core.check("_rl_model_method", this.handle, i, core.room);
      return core.text(core.u32(core.room));
    });
    this._described = new Map();
  }

  /** What a method takes and gives. */
  method(name = this.methods[0]) {
    const known = this._described.get(name);
    if (known) return known;
    const { core } = this;
    const described = core.scoped((frame) => {
      const text = frame.text(name), info = frame.alloc(INFO_BYTES);
      core.check("_rl_model_method_sizes", this.handle, text, core.room, core.room + 4);
      const counts = [core.u32(core.room), core.u32(core.room + 4)];
      const list = (function_, count) =>
        Array.from({ length: count }, (_, i) => {
          core.check(function_, this.handle, text, i, info);
          return readInfo(core, info);
        });
      return {
        inputs: list("_rl_model_method_input", counts[0]),
        outputs: list("_rl_model_method_output", counts[1]),
      };
    });
    this._described.set(name, described);
    return described;
  }
  /** Whether methods write to a state: such a model runs in sessions. */
  get hasState() {
    this.core.check("_rl_model_state_count", this.handle, this.core.room);
    return this.core.u32(this.core.room) > 0;
  }
  get inputs() {
    return this.method().inputs;
  }
  get outputs() {
    return this.method().outputs;
  }

  /** Runs the first method; of others, session().run(). Results by name. */
  run(inputs) {
    return runMethod(this, this, this.methods[0], inputs, (frame, list, count, results, room) =>
      this.core.check("_rl_model_run", this.handle, list, count, results, room),
    );
  }
  /** State of its own, which methods write to. */
  session() {
    this.core.check("_rl_session_create", this.handle, this.core.room);
    return new Session(this, this.core.u32(this.core.room));
  }
}

export class Session extends Runner {
  constructor(model, handle) {
    super(model.core, handle, "_rl_session_release");
    this.model = model;
  }
  run(method, inputs = []) {
    return runMethod(this, this.model, method, inputs, (frame, list, count, results, room) =>
      this.core.check("_rl_session_run", this.handle, frame.text(method), list, count, results, room),
    );
  }
  reset() {
    this.core.check("_rl_session_reset", this.handle);
  }
  clone() {
    this.core.check("_rl_session_clone", this.handle, this.core.room);
    return new Session(this.model, this.core.u32(this.core.room));
  }
}
