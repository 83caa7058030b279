// NumPy's .npy files.
import { RushlightError } from "./core.js";

const TYPES = {
  "|b1": "bool", "|u1": "uint8", "|i1": "int8", "<i2": "int16", "<i4": "int32", "<i8": "int64", "<u2": "uint16",
  "<u4": "uint32", "<u8": "uint64", "<f2": "float16", "<f4": "float32", "<f8": "float64", "<c8": "complex64",
  "<c16": "complex128",
};
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** {dtype, shape, bytes} of a file's bytes. */
export function readNpy(file) {
  const fail = (why) => {
    throw new RushlightError(`cannot read the .npy file: ${why}`, "value");
  };
  if (file.length < 12 || MAGIC.some((b, i) => file[i] !== b)) fail("it is none");
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const wide = file[6] > 1;
  const start = wide ? 12 : 10, length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  if (start + length > file.length) fail("it was cut short");
  const header = new TextDecoder("latin1").decode(file.subarray(start, start + length));
  const descr = /'descr':\s*'([^']*)'/.exec(header)?.[1], order = /'fortran_order':\s*(True|False)/.exec(header)?.[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1];
  if (!descr || !order || shape === undefined) fail("its header is damaged");
  const dtype = TYPES[descr];
  if (!dtype) fail(`elements of type ${descr} are not supported`);
  if (order === "True") fail("it is in Fortran's order; numpy.ascontiguousarray changes that");
  const sizes = shape.split(",").map((s) => s.trim()).filter(Boolean).map(Number);
  if (!sizes.every((n) => Number.isSafeInteger(n) && n >= 0)) fail("its header is damaged");
  const bytes = sizes.reduce((a, b) => a * b, 1) * Number(/\d+$/.exec(descr)[0]);
  if (start + length + bytes !== file.length) fail(`it should have ${bytes} bytes of elements`);
  return { dtype, shape: sizes, bytes: file.slice(start + length) };
}

export function writeNpy({ dtype, shape, data }) {
  const descr = Object.keys(TYPES).find((key) => TYPES[key] === dtype);
  if (!descr) throw new RushlightError(`.npy files have no elements of type ${dtype}`, "value");
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${sizes}), }`;
  header += " ".repeat(64 - ((10 + header.length + 1) % 64)) + "\n";
  const elements = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const file = new Uint8Array(10 + header.length + elements.length);
  file.set([...MAGIC, 1, 0, header.length & 255, header.length >> 8]);
  file.set(new TextEncoder().encode(header), 10);
  file.set(elements, 10 + header.length);
  return file;
}
