"""OpenVINO on ONNX files, in single precision."""

import openvino

from ..engines import runs

version = openvino.__version__.partition("-")[0]


def load(folder, inputs):
    settings = {
        "INFERENCE_NUM_THREADS": runs.threads(),
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = openvino.Core().compile_model(folder / "model.onnx", "CPU", settings)
    request = compiled.create_infer_request()
    given = dict(zip(compiled.inputs, inputs, strict=True))
    output = compiled.outputs[0]
    return lambda: request.infer(given, share_inputs=True, share_outputs=True)[output]


def cases(sizes):
    return runs.cases(sizes, load)
