"""The programs of `suites/peers.py` and `suites/engines.py` as other libraries have them, a module for each.

Only a process that is measured imports one of these modules. `cases` gives the rows that the library has.
A row does the same work here and there: equal shapes, equal precision, equal number of steps.
"""

import importlib.util
from typing import NamedTuple


class Peer(NamedTuple):
    title: str
    package: str  # what it is imported as


PEERS = {
    "jax_jit": Peer("JAX", "jax"),
    "mlx_cpu": Peer("MLX", "mlx"),
    "numpy_arrays": Peer("NumPy", "numpy"),
    "sklearn_sgd": Peer("scikit-learn", "sklearn"),
    "openvino_file": Peer("OpenVINO", "openvino"),
    "onnxruntime_file": Peer("ONNX Runtime", "onnxruntime"),
}

ENGINES = ("openvino_file", "onnxruntime_file")  # of the suite `engines`; the others are the suite `peers`


def installed(name: str) -> bool:
    return importlib.util.find_spec(PEERS[name].package) is not None
