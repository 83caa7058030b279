"""ONNX Runtime on ONNX files, all of its optimisations on."""

import onnxruntime

from ..engines import runs

version = onnxruntime.__version__


def load(folder, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = runs.threads(), 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    given = {value.name: x for value, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, given)[0]


def cases(sizes):
    return runs.cases(sizes, load)
