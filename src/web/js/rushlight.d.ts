// Rushlight in browsers and Node. docs/browser.md tells more.

export type DType =
  | "bool" | "uint8" | "int8" | "int16" | "int32" | "int64" | "uint16" | "uint32" | "uint64"
  | "float16" | "bfloat16" | "float32" | "float64" | "complex64" | "complex128";

/** float16 and bfloat16 are their bits in a Uint16Array; complex numbers are pairs. */
export type TypedArray =
  | Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint16Array | Uint32Array | BigUint64Array
  | Float32Array | Float64Array;
export type Numbers = number | bigint | boolean | Numbers[];

/**
 * "engine": WebAssembly lacks what is needed, or rushlight.wasm is damaged; "network": a file could not be fetched;
 * "stopped": the program trapped, and this instance is of no more use. The others are those of rushlight/c.h.
 */
export type ErrorKind =
  | "runtime" | "value" | "type" | "index" | "not-implemented" | "out-of-memory" | "other" | "engine" | "network"
  | "stopped";
export class RushlightError extends Error {
  readonly kind: ErrorKind;
}

/** What an operator takes. A number without a fraction counts as an integer; float() makes it another. */
export type Argument =
  | Tensor | Tensor[] | number | bigint | boolean | string | number[] | bigint[] | null | undefined
  | DTypeArgument | FloatArgument;
export type Result = Tensor | number | bigint | boolean | null | Result[];
export interface DTypeArgument { readonly number: number }
export interface FloatArgument { readonly value: number }

export class Tensor {
  private constructor();
  readonly shape: number[];
  /** Number of elements. */
  readonly size: number;
  readonly dtype: DType;
  /** A copy of the elements. */
  data(): TypedArray;
  /** The only element. */
  item(): number;
  tolist(): Numbers;
  /** Gives the memory back now; else that happens once nothing refers to the tensor. */
  dispose(): void;

  requiresGrad(on?: boolean): this;
  backward(): void;
  readonly grad: Tensor | null;

  /** Any operator of which this is the first argument: `t.op("softmax.int", 1)`. */
  op(name: string, ...args: Argument[]): Result;

  add(other: Tensor | number): Tensor;
  sub(other: Tensor | number): Tensor;
  mul(other: Tensor | number): Tensor;
  div(other: Tensor | number): Tensor;
  matmul(other: Tensor): Tensor;
  neg(): Tensor;
  exp(): Tensor;
  log(): Tensor;
  sqrt(): Tensor;
  abs(): Tensor;
  tanh(): Tensor;
  sigmoid(): Tensor;
  relu(): Tensor;
  sum(): Tensor;
  mean(): Tensor;
  max(): Tensor;
  min(): Tensor;
  argmax(dim?: number, keepdim?: boolean): Tensor;
  reshape(sizes: number[]): Tensor;
  transpose(first: number, second: number): Tensor;
  unsqueeze(dim: number): Tensor;
  squeeze(): Tensor;
  flatten(first?: number, last?: number): Tensor;
  softmax(dim: number): Tensor;
  logSoftmax(dim: number): Tensor;
  clone(): Tensor;
  detach(): Tensor;
  contiguous(): Tensor;
  eq(other: Tensor | number): Tensor;
  gt(other: Tensor | number): Tensor;
  lt(other: Tensor | number): Tensor;
  indexSelect(dim: number, index: Tensor): Tensor;
  slice(dim: number, start: number, end: number, step?: number): Tensor;
  select(dim: number, index: number): Tensor;
}

export interface TensorInfo {
  name: string;
  /** "float32[N, 3, 224, 224]" */
  type: string;
  dtype: DType | "other";
  /** -1 where the caller chooses; null where any shape will do. */
  sizes: number[] | null;
}
/** Tensors, or typed arrays where the model knows all sizes: one, in the model's order, or by name. */
export type Inputs = Tensor | TypedArray | (Tensor | TypedArray)[] | Record<string, Tensor | TypedArray>;

export class Model {
  private constructor();
  readonly methods: string[];
  readonly inputs: TensorInfo[];
  readonly outputs: TensorInfo[];
  readonly hasState: boolean;
  method(name?: string): { inputs: TensorInfo[]; outputs: TensorInfo[] };
  /** Runs the first method. The results are the caller's to dispose of. */
  run(inputs: Inputs): Record<string, Tensor>;
  session(): Session;
  dispose(): void;
}
export class Session {
  private constructor();
  run(method: string, inputs?: Inputs): Record<string, Tensor>;
  reset(): void;
  clone(): Session;
  dispose(): void;
}

export interface Module {
  training: boolean;
  forward(input: Tensor): Tensor;
  parameters(): Tensor[];
  namedParameters(): Map<string, Tensor>;
  namedBuffers(): Map<string, Tensor>;
  train(on?: boolean): this;
  eval(): this;
  /** Copies of parameters and buffers, which structured clones and loadStateDict() take. */
  stateDict(): State;
  loadStateDict(state: State): void;
}
export type State = Record<string, { data: TypedArray; shape: number[]; dtype: DType }>;
export interface NN {
  /** For modules of one's own: fields that are modules are its parts. */
  Module: new () => Module;
  sequential(...layers: Module[]): Module;
  linear(inFeatures: number, outFeatures: number, options?: { bias?: boolean }): Module;
  conv2d(
    inChannels: number, outChannels: number, kernelSize: number,
    options?: { stride?: number; padding?: number; dilation?: number; groups?: number; bias?: boolean },
  ): Module;
  batchNorm1d(numFeatures: number, options?: { eps?: number; momentum?: number }): Module;
  batchNorm2d(numFeatures: number, options?: { eps?: number; momentum?: number }): Module;
  layerNorm(normalizedShape: number, options?: { eps?: number }): Module;
  embedding(numEmbeddings: number, embeddingDim: number): Module;
  maxPool2d(kernelSize: number, options?: { stride?: number; padding?: number }): Module;
  avgPool2d(kernelSize: number, options?: { stride?: number; padding?: number }): Module;
  dropout(p?: number): Module;
  flatten(): Module;
  relu(): Module;
  gelu(): Module;
  silu(): Module;
  tanh(): Module;
  sigmoid(): Module;
  crossEntropy(input: Tensor, target: Tensor): Tensor;
  mseLoss(input: Tensor, target: Tensor): Tensor;
}

export interface Optimizer {
  step(): void;
  zeroGrad(): void;
  setLearningRate(lr: number): void;
}
export interface Optim {
  sgd(
    parameters: Iterable<Tensor>,
    options?: { lr?: number; momentum?: number; dampening?: number; weightDecay?: number; nesterov?: boolean },
  ): Optimizer;
  adam(parameters: Iterable<Tensor>, options?: AdamOptions): Optimizer;
  adamW(parameters: Iterable<Tensor>, options?: AdamOptions): Optimizer;
  rmsprop(
    parameters: Iterable<Tensor>,
    options?: { lr?: number; alpha?: number; eps?: number; weightDecay?: number; momentum?: number },
  ): Optimizer;
}
export interface AdamOptions {
  lr?: number;
  betas?: [number, number];
  eps?: number;
  weightDecay?: number;
  amsgrad?: boolean;
}

export interface Rushlight {
  readonly nn: NN;
  readonly optim: Optim;
  /** How many threads an operation may use: what init() was told. */
  readonly threads: number;
  /** Bytes of memory that the instance has; it never shrinks. */
  readonly memoryBytes: number;

  loadModel(bytes: ArrayBuffer | ArrayBufferView): Model;
  /** From a URL or, in Node, a path. */
  fetchModel(source: string | URL): Promise<Model>;

  /** A typed array with sizes, or nested arrays of numbers: float32, unless `dtype` says otherwise. */
  tensor(data: TypedArray | Uint8ClampedArray | Numbers, sizes?: number[], dtype?: DType): Tensor;
  zeros(...sizes: number[]): Tensor;
  ones(...sizes: number[]): Tensor;
  randn(...sizes: number[]): Tensor;
  rand(...sizes: number[]): Tensor;
  randperm(n: number): Tensor;

  /** Any operator by its name: `call("cat", [a, b], 1)`. */
  call(name: string, ...args: Argument[]): Result;
  schema(name: string): string | null;
  dtype(name: DType): DTypeArgument;
  float(value: number): FloatArgument;

  /** Runs f; tensors that it made and does not return are disposed of. */
  tidy<T>(f: () => T): T;
  /** Keeps a tensor beyond the tidy() around it. */
  keep<T extends Tensor>(t: T): T;
  noGrad<T>(f: () => T): T;
  manualSeed(seed: number | bigint): void;
  /** Ends the instance and its workers, which keep Node from ending. */
  close(): void;
}

/**
 * Starts an instance of the program; instances share nothing.
 * `threads`: how many an operation may use; more than one need memory that workers share, which browsers give to pages
 * that are cross-origin isolated. `wasm`: rushlight.wasm (with threads rushlight-threads.wasm), if it is not beside the
 * script.
 */
export function init(options?: {
  threads?: number;
  wasm?: string | URL | ArrayBuffer | ArrayBufferView | WebAssembly.Module;
}): Promise<Rushlight>;
/** Whether more than one thread is to be had: in Node, and in pages that are cross-origin isolated. */
export const canShareMemory: boolean;
