"""Runs a model of one file in threads through the C interface of the small runtime, without the package.

    python small_runtime_program.py LIBRARY MODEL INPUT.npy OUTPUT.npy THREADS

Prints the process's peak memory in bytes, before the model was loaded and at the end."""

import ctypes
import resource
import sys
import threading

import numpy as np

library, model_path, input_path, output_path, threads = sys.argv[1:]
rl = ctypes.CDLL(library)
rl.rl_last_error.restype = ctypes.c_char_p
handle, size = ctypes.c_void_p, ctypes.c_size_t


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def check(status):
    if status:
        raise RuntimeError(rl.rl_last_error().decode())


def tensor_of(array):
    sizes, made = (ctypes.c_int64 * array.ndim)(*array.shape), handle()
    data = array.ctypes.data_as(ctypes.c_void_p)
    check(rl.rl_tensor_from_memory(data, sizes, None, size(array.ndim), 11, None, None, ctypes.byref(made)))
    return made


def array_of(tensor):
    dim, sizes, data = size(), ctypes.POINTER(ctypes.c_int64)(), ctypes.c_void_p()
    check(rl.rl_tensor_dim(tensor, ctypes.byref(dim)))
    check(rl.rl_tensor_sizes(tensor, ctypes.byref(sizes)))
    check(rl.rl_tensor_data(tensor, ctypes.byref(data)))
    shape = sizes[: dim.value]
    memory = (ctypes.c_float * int(np.prod(shape))).from_address(data.value)
    return np.array(memory, dtype=np.float32).reshape(shape)


array = np.load(input_path)
before = peak()
model = handle()
check(rl.rl_model_load(model_path.encode(), ctypes.byref(model)))
results = []


def work():
    for _ in range(3):
        given, out = tensor_of(array), handle()
        check(rl.rl_model_run(model, ctypes.byref(given), size(1), ctypes.byref(out), size(1)))
        results.append(array_of(out))
        rl.rl_tensor_release(out)
        rl.rl_tensor_release(given)


workers = [threading.Thread(target=work) for _ in range(int(threads))]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert len(results) == 3 * len(workers)
assert all(np.array_equal(results[0], r) for r in results)
np.save(output_path, results[0])
print(before, peak())
rl.rl_model_release(model)
