// Layers and optimizers, those of the C++ front end.
import { RushlightError } from "./core.js";
import { Tensor, call, keep, tensor, wrap } from "./tensor.js";

// {inFeatures: 4, bias: false} as names and numbers of the core.
function optionsOf(given) {
  const names = [], numbers = [];
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const list = Array.isArray(value) ? value : [value];
    list.forEach((number, i) => {
      if (typeof number !== "number" && typeof number !== "boolean")
        throw new RushlightError(`the option ${name} must be a number or a boolean`, "type");
      const snake = name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
      names.push(snake === "betas" ? `beta${i + 1}` : snake);
      numbers.push(Number(number));
    });
  }
  return { names: names.join(","), numbers };
}

/** What has parameters. Classes of one's own override forward() and keep their layers as fields. */
export class Module {
  training = true;
  forward() {
    throw new RushlightError("this module has no forward()", "not-implemented");
  }
  children() {
    return Object.entries(this).flatMap(([name, value]) =>
      value instanceof Module
        ? [[name, value]]
        : Array.isArray(value)
          ? value.flatMap((v, i) => (v instanceof Module ? [[`${name}.${i}`, v]] : []))
          : [],
    );
  }
  /** Parameters by name, those of layers within too. */
  namedParameters() {
    return new Map(this._collect("parameters"));
  }
  namedBuffers() {
    return new Map(this._collect("buffers"));
  }
  parameters() {
    return [...this.namedParameters().values()];
  }
  _own() {
    return { parameters: [], buffers: [] };
  }
  _collect(what) {
    const inner = this.children().flatMap(([name, module]) =>
      module._collect(what).map(([key, value]) => [`${name}.${key}`, value]),
    );
    return [...this._own()[what], ...inner];
  }
  /** Layers such as dropout act differently when they do not train. */
  train(on = true) {
    this.training = on;
    for (const [, module] of this.children()) module.train(on);
    return this;
  }
  eval() {
    return this.train(false);
  }
  /** Copies of all parameters and buffers as typed arrays, by name. */
  stateDict() {
    const all = [...this._collect("parameters"), ...this._collect("buffers")];
    return Object.fromEntries(all.map(([name, t]) => [name, { data: t.data(), shape: t.shape, dtype: t.dtype }]));
  }
  loadStateDict(state) {
    for (const [name, t] of [...this._collect("parameters"), ...this._collect("buffers")]) {
      const saved = state[name];
      if (!saved) throw new RushlightError(`the state has no '${name}'`, "value");
      const source = tensor(t.core, saved.data, saved.shape, saved.dtype);
      const target = call(t.core, "detach", t);
      call(t.core, "copy_", target, source);
      source.dispose();
      target.dispose();
    }
  }
}

class Layer extends Module {
  constructor(core, kind, options) {
    super();
    const { names, numbers } = optionsOf(options);
    core.scoped((frame) =>
      core.check("_rl_module_create", frame.text(kind), frame.text(names), frame.doubles(numbers), numbers.length, core.room),
    );
    // Not enumerable: children() looks at fields.
    const handle = core.u32(core.room);
    Object.defineProperties(this, { core: { value: core }, handle: { value: handle }, kind: { value: kind } });
    core.dropped.register(this, { release: "_rl_module_release", handle });
    core.check("_rl_module_tensor_count", handle, core.room, core.room + 4);
    const parameters = core.u32(core.room), all = parameters + core.u32(core.room + 4);
    const named = Array.from({ length: all }, (_, i) => {
      core.check("_rl_module_tensor", handle, i, core.room, core.room + 4);
      return [core.text(core.u32(core.room)), keep(wrap(core, core.u32(core.room + 4)))];
    });
    const own = { parameters: named.slice(0, parameters), buffers: named.slice(parameters) };
    Object.defineProperty(this, "_own", { value: () => own });
    for (const [name, t] of named) if (!(name in this)) Object.defineProperty(this, name, { value: t });
  }
  forward(input) {
    if (!(input instanceof Tensor)) throw new RushlightError("a layer takes a tensor", "type");
    this.core.check("_rl_module_forward", this.handle, input.handle, this.core.room);
    return wrap(this.core, this.core.u32(this.core.room));
  }
  train(on = true) {
    this.core.check("_rl_module_train", this.handle, on ? 1 : 0);
    return super.train(on);
  }
}

class Sequential extends Module {
  constructor(...layers) {
    super();
    Object.defineProperty(this, "layers", { value: layers });
  }
  children() {
    return this.layers.map((layer, i) => [String(i), layer]);
  }
  forward(input) {
    return this.layers.reduce((x, layer) => layer.forward(x), input);
  }
}

/** The layers, for one instance of the program. Options have the names of PyTorch, in camel case. */
export function makeNN(core) {
  const layer = (kind, ...positional) => (...args) => {
    const options = {};
    positional.forEach((name) => {
      if (typeof args[0] !== "object") options[name] = args.shift();
    });
    return new Layer(core, kind, { ...options, ...args[0] });
  };
  return {
    Module,
    sequential: (...layers) => new Sequential(...layers),
    linear: layer("Linear", "inFeatures", "outFeatures"),
    conv2d: layer("Conv2d", "inChannels", "outChannels", "kernelSize"),
    batchNorm1d: layer("BatchNorm1d", "numFeatures"),
    batchNorm2d: layer("BatchNorm2d", "numFeatures"),
    layerNorm: layer("LayerNorm", "normalizedShape"),
    embedding: layer("Embedding", "numEmbeddings", "embeddingDim"),
    maxPool2d: layer("MaxPool2d", "kernelSize"),
    avgPool2d: layer("AvgPool2d", "kernelSize"),
    dropout: layer("Dropout", "p"),
    flatten: layer("Flatten"),
    relu: layer("ReLU"),
    gelu: layer("GELU"),
    silu: layer("SiLU"),
    tanh: layer("Tanh"),
    sigmoid: layer("Sigmoid"),
    crossEntropy: (input, target) => call(core, "cross_entropy_loss", input, target),
    mseLoss: (input, target) => call(core, "mse_loss", input, target),
  };
}

class Optimizer {
  constructor(core, kind, parameters, options) {
    this.core = core;
    const list = [...parameters], { names, numbers } = optionsOf(options);
    if (!list.length) throw new RushlightError("an optimizer got an empty list of parameters", "value");
    core.scoped((frame) =>
      core.check(
        "_rl_optimizer_create", frame.text(kind), frame.pointers(list.map((t) => t.handle)), list.length,
        frame.text(names), frame.doubles(numbers), numbers.length, core.room,
      ),
    );
    this.handle = core.u32(core.room);
    core.dropped.register(this, { release: "_rl_optimizer_release", handle: this.handle });
  }
  step() {
    this.core.check("_rl_optimizer_step", this.handle);
  }
  zeroGrad() {
    this.core.check("_rl_optimizer_zero_grad", this.handle);
  }
  setLearningRate(lr) {
    this.core.check("_rl_optimizer_set_lr", this.handle, lr);
  }
}

export function makeOptim(core) {
  const optimizer = (kind) => (parameters, options = {}) => new Optimizer(core, kind, parameters, options);
  return { sgd: optimizer("SGD"), adam: optimizer("Adam"), adamW: optimizer("AdamW"), rmsprop: optimizer("RMSprop") };
}
