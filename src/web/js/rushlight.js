// Rushlight in browsers and Node: models of one file, tensors, training. docs/browser.md
import { Core, RushlightError } from "./core.js";
import { Model, Session } from "./model.js";
import { makeNN, makeOptim } from "./nn.js";
import { DTypeArgument, Float, Tensor, call, keep, tensor, tidy } from "./tensor.js";

export { Model, RushlightError, Session, Tensor };

// Modules that only validate where the engine knows vectors, and exceptions.
const VECTORS = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
const EXCEPTIONS = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 6, 64, 25, 11, 11];

function checkEngine() {
  if (typeof WebAssembly !== "object") throw new RushlightError("this engine has no WebAssembly", "engine");
  for (const [what, bytes] of [["vectors (SIMD)", VECTORS], ["exceptions", EXCEPTIONS]])
    if (!WebAssembly.validate(new Uint8Array(bytes)))
      throw new RushlightError(`this engine's WebAssembly has no ${what}: a newer browser has them`, "engine");
}

/** Whether more than one thread is to be had: in Node, and in pages that are cross-origin isolated. */
export const canShareMemory =
  typeof SharedArrayBuffer === "function" && (globalThis.crossOriginIsolated ?? true);

function checkThreads(threads) {
  if (!Number.isSafeInteger(threads) || threads < 1 || threads > 64)
    throw new RushlightError(`threads are a number from 1 to 64, not ${threads}`, "value");
  if (threads > 1 && !canShareMemory)
    throw new RushlightError(
      "threads need memory that workers share. Browsers give it to pages that are cross-origin isolated: served with the " +
        "headers 'Cross-Origin-Opener-Policy: same-origin' and 'Cross-Origin-Embedder-Policy: require-corp'. " +
        "init() without threads needs nothing of that", "engine");
}

// The program with threads is another one: its memory is shared, which an engine may refuse.
const PROGRAMS = {
  single: { load: () => import("./rushlight.mjs"), wasm: new URL("./rushlight.wasm", import.meta.url) },
  threads: { load: () => import("./rushlight-threads.mjs"), wasm: new URL("./rushlight-threads.wasm", import.meta.url) },
};

const inNode = typeof process === "object" && !!process.versions?.node;

// Bytes of a URL or, in Node, of a file.
async function fetchBytes(source) {
  const url = source instanceof URL ? source : new URL(String(source), inNode ? `file://${process.cwd()}/` : globalThis.location?.href ?? import.meta.url);
  if (inNode && url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    try {
      return new Uint8Array(await readFile(url));
    } catch (cause) {
      throw new RushlightError(`cannot read ${url.pathname}: ${cause.message}`, "network", { cause });
    }
  }
  let response;
  try {
    response = await fetch(url);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    throw new RushlightError(`cannot fetch ${url}: ${cause.message}`, "network", { cause });
  }
}

/** Starts an instance of the program. Instances share nothing. */
export async function init({ wasm, threads = 1 } = {}) {
  checkEngine();
  checkThreads(threads);
  const program = threads > 1 ? PROGRAMS.threads : PROGRAMS.single;
  const { default: start } = await program.load().catch((cause) => {
    throw new RushlightError(`the script of the program cannot be loaded: ${cause.message}`, "network", { cause });
  });
  const bytes = wasm instanceof ArrayBuffer || ArrayBuffer.isView(wasm)
    ? wasm
    : wasm instanceof WebAssembly.Module ? null : await fetchBytes(wasm ?? program.wasm);
  try {
    const module = await instantiate(start, bytes ? await WebAssembly.compile(bytes) : wasm, threads - 1);
    return new Rushlight(new Core(module), threads);
  } catch (cause) {
    if (cause instanceof RangeError)
      throw new RushlightError(`too little memory to start: ${cause.message}`, "out-of-memory", { cause });
    throw new RushlightError(
      `${program.wasm.pathname.split("/").at(-1)} does not load: it was cut short, or is of another version (${cause.message})`,
      "engine", { cause });
  }
}

// Emscripten's script, which does not tell of what fails within instantiateWasm.
function instantiate(start, compiled, workers) {
  return new Promise((done, fail) =>
    start({
      workers,
      instantiateWasm(imports, received) {
        WebAssembly.instantiate(compiled, imports).then((instance) => received(instance, compiled), fail);
        return {};
      },
    }).then(done, fail),
  );
}

export class Rushlight {
  constructor(core, threads) {
    this.core = core;
    /** How many threads an operation may use. */
    this.threads = threads;
    core.check("_rl_browser_set_threads", threads);
    this.nn = makeNN(core);
    this.optim = makeOptim(core);
  }

  /** A model of one file, from its bytes. */
  loadModel(bytes) {
    if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes))
      throw new RushlightError("a model is loaded from the bytes of its file", "type");
    const view = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new Model(this.core, view);
  }
  async fetchModel(source) {
    return this.loadModel(await fetchBytes(source));
  }

  tensor(data, sizes, dtype) {
    return tensor(this.core, data, sizes, dtype);
  }
  zeros(...sizes) {
    return call(this.core, "zeros", sizes.flat());
  }
  ones(...sizes) {
    return call(this.core, "ones", sizes.flat());
  }
  randn(...sizes) {
    return call(this.core, "randn", sizes.flat());
  }
  rand(...sizes) {
    return call(this.core, "rand", sizes.flat());
  }
  randperm(n) {
    return call(this.core, "randperm", n);
  }

  /** Any operator by its name, "add.Tensor" or "linalg::inv". */
  call(name, ...args) {
    return call(this.core, name, ...args);
  }
  dtype(name) {
    return new DTypeArgument(name);
  }
  float(value) {
    return new Float(value);
  }
  /** The schema of an operator, or null. */
  schema(name) {
    return this.core.scoped((frame) => {
      const at = this.core.run("_rl_schema", frame.text(name)) >>> 0;
      return at ? this.core.text(at) : null;
    });
  }

  tidy(f) {
    return tidy(f);
  }
  keep(t) {
    return keep(t);
  }
  /** Runs f without recording gradients. */
  noGrad(f) {
    const before = this._grad ?? true;
    this._setGrad(false);
    try {
      return f();
    } finally {
      this._setGrad(before);
    }
  }
  _setGrad(on) {
    this.core.check("_rl_set_grad_enabled", on ? 1 : 0);
    this._grad = on;
  }
  manualSeed(seed) {
    this.core.check("_rl_manual_seed", BigInt(seed));
  }
  /** Ends the instance: its workers, which keep Node from ending, and what holds its memory. */
  close() {
    this.core.broken ??= "it was closed";
    this.core.module.PThread?.terminateAllThreads();
  }
  /** Bytes of memory that the instance has; it never shrinks. */
  get memoryBytes() {
    return this.core.bytes.length;
  }
}
