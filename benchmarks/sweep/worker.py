"""A process that times calls on one module: python -m benchmarks.sweep.worker MODULE THREADS.

A call comes as a file of NumPy arrays, so that both modules compute with the same numbers.
"""

import functools
import gc
import json
import os
import pickle
import resource
import sys
import time
import timeit
import warnings
from typing import Any

import numpy as np

from ..worker import import_as_torch
from .operands import Call, Operand

BATCH = 1e-3  # seconds of one sample, if a call is shorter
SLOW = 0.1
MEMORY = 3 << 30
HALF = {"bfloat16", "float16"}
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}


def clock_for(threads: int) -> str:
    """Processor time, which other programs disturb less, adds up what several threads do at once."""
    return "cpu" if threads == 1 else "wall"


class NotApplicable(Exception):
    """The case says nothing about this call: no operand takes the layout, or there is no gradient."""


def main(module: str, threads: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    worker = Worker(module, int(threads))
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer = getattr(worker, command)(*arguments)
        except NotApplicable as error:
            answer = {"without": str(error)}
        except Exception as error:
            answer = {"refused": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
        answers.write(json.dumps(answer) + "\n")


class Worker:
    def __init__(self, module: str, threads: int) -> None:
        self.torch = import_as_torch(module)
        self.torch.set_num_threads(threads)
        self.clock = CLOCKS[clock_for(threads)]
        self.timer: Any = None
        # Arguments that count how often something is repeated grow too: what no memory holds is refused.
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.RLIM_INFINITY))
        gc.collect()
        gc.freeze()

    def version(self) -> dict[str, Any]:
        return {"version": self.torch.__version__}

    def prepare(self, path: str, dtype: str, layout: str, backward: bool) -> dict[str, Any]:
        """Make the operands, run once and find how many calls fill a batch; answers seconds of a call."""
        self.timer = None
        with open(path, "rb") as file:
            call: Call = pickle.load(file)
        self.torch.manual_seed(0)
        self.timer = self._timer(call, dtype, layout, backward)
        seconds = self.timer.timeit(1)
        self.calls = 1
        if seconds < SLOW:  # the first call may compile code
            seconds = self.timer.timeit(1)
            while seconds < BATCH / 2:
                self.calls = min(self.calls * 16, int(self.calls * BATCH / max(seconds, 1e-7)) + 1)
                seconds = self.timer.timeit(self.calls)
        return {"seconds": seconds / self.calls}

    def sample(self) -> dict[str, Any]:
        return {"seconds": self.timer.timeit(self.calls) / self.calls}

    def drop(self) -> dict[str, Any]:
        self.timer = None
        return {}

    # --- the statement that is timed -----------------------------------------------------------------------

    def _timer(self, call: Call, dtype: str, layout: str, backward: bool) -> timeit.Timer:
        self.leaves: list[Any] = []
        self.laid_out = self.of_dtype = 0
        shapes = [o.values.shape for o in _flat([call.args, call.kwargs]) if isinstance(o, Operand)]
        self.alike = len(shapes) > 1 and shapes.count(shapes[0]) > 1
        self.seen = 0
        names: dict[str, Any] = {}
        words = []
        for index, value in enumerate(call.args):
            names[f"a{index}"] = self._converted(value, dtype, layout, backward)
            words.append(f"a{index}")
        for index, (name, value) in enumerate(call.kwargs.items()):
            names[f"k{index}"] = self._converted(value, dtype, layout, backward)
            words.append(f"{name}=k{index}")
        if dtype != "float32" and not self.of_dtype:
            raise NotApplicable("no operand takes this dtype")
        if layout and not self.laid_out:
            raise NotApplicable("no operand takes this layout")
        statement, names["f"] = self._statement(call.function, names.get("a0"), words)
        if backward:
            statement = self._with_gradient(statement, names)
        return timeit.Timer(statement, timer=self.clock, globals=names)

    def _statement(self, function: str, first: Any, words: list[str]) -> tuple[str, Any]:
        if function.startswith("Tensor."):
            name = function[7:]
            if not callable(getattr(self.torch.Tensor, name)):
                return f"a0.{name}", None
            target = "a0.clone()" if _writes(name) else "a0"
            return f"{target}.{name}({', '.join(words[1:])})", None
        found = functools.reduce(getattr, function.split("."), self.torch)
        if _writes(function):
            copy = "[t.clone() for t in a0]" if isinstance(first, (list, tuple)) else "a0.clone()"
            words = [copy, *words[1:]]
        return f"f({', '.join(words)})", found

    def _with_gradient(self, statement: str, names: dict[str, Any]) -> str:
        if not self.leaves:
            raise NotApplicable("no operand has a gradient")
        results = [
            (index, leaf)
            for index, leaf in enumerate(_flat(eval(statement, names)))
            if getattr(leaf, "requires_grad", False)
        ]
        if not results:
            raise NotApplicable("no result has a gradient")
        index, result = results[0]
        gradient = self.torch.ones(result.shape, dtype=result.dtype)  # as a sum gives it, but with memory
        names |= {"grad": self.torch.autograd.grad, "leaves": self.leaves, "g": gradient, "flat": _flat}
        alone = isinstance(eval(statement, names), self.torch.Tensor)
        output = statement if alone else f"flat({statement})[{index}]"
        return f"grad({output}, leaves, g, allow_unused=True)"

    # --- operands ------------------------------------------------------------------------------------------

    def _converted(self, value: Any, dtype: str, layout: str, backward: bool) -> Any:
        if isinstance(value, Operand):
            return self._tensor(value, dtype, layout, backward)
        if isinstance(value, (list, tuple)):
            return type(value)(self._converted(item, dtype, layout, backward) for item in value)
        if isinstance(value, str) and value.startswith("dtype:"):
            return getattr(self.torch, value[6:])
        return value

    def _tensor(self, operand: Operand, dtype: str, layout: str, backward: bool) -> Any:
        values, own = operand.values, str(operand.values.dtype)
        whole = dtype.startswith(("int", "uint")) or dtype == "bool"
        keep = own == "bool" or (own.startswith(("int", "uint")) and not whole) or own.startswith("complex")
        if not keep and dtype == "bool":
            values = values > np.mean(values)
        elif not keep:
            values = values.astype("float32" if dtype in HALF else dtype)
        self.of_dtype += not keep
        tensor = self.torch.from_numpy(np.ascontiguousarray(values).reshape(values.shape))
        if not keep and dtype in HALF:
            tensor = tensor.to(getattr(self.torch, dtype))
        if operand.layout:
            return getattr(tensor, f"to_sparse_{operand.layout}")(*operand.blocks)
        if layout and not (own.startswith("int") and keep):
            tensor = self._laid_out(tensor, layout)
        if backward and operand.learned and not keep and tensor.is_floating_point():
            self.leaves.append(tensor.requires_grad_())
        return tensor

    def _laid_out(self, tensor: Any, layout: str) -> Any:
        self.seen += 1
        result = tensor
        if layout == "transposed" and tensor.dim() >= 2:
            result = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
        elif layout == "strided" and tensor.dim() >= 1 and tensor.numel() > 1:
            result = self.torch.stack([tensor, tensor], -1).flatten(-2)[..., ::2]
        elif layout == "broadcast" and tensor.dim() >= 2 and tensor.shape[0] > 1:
            # Of operands of one shape the first stays as it is.
            if not (self.alike and self.seen == 1):
                result = tensor[:1].expand(tensor.shape)
        self.laid_out += result is not tensor
        return result


def _writes(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in _flat(item)] if isinstance(value, (list, tuple)) else [value]


if __name__ == "__main__":
    main(*sys.argv[1:])
