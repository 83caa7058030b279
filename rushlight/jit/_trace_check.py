"""The check of a trace: the program runs again, must give the same operations and constants, and what script
and program compute must be equal."""

import difflib
import warnings

import rushlight
from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.jit._tracer_warnings import TracerWarning, warn
from rushlight.utils._pytree import tree_leaves, tree_map_only

__all__ = ["TracingCheckError", "check_traced"]


class TracingCheckError(Exception):
    """Two runs of a program gave different operations, so one of them cannot stand for it."""

    def __init__(self, graph_diff_error, tensor_compare_error, extra_msg=None) -> None:
        parts = ["Tracing failed sanity checks!", extra_msg, graph_diff_error, tensor_compare_error]
        super().__init__("\n".join(part for part in parts if part))


def check_traced(made, functions, module, checks, tolerance, record_run):
    """Record again, which must give the same operations, and compare what script and program compute."""
    for (name, function), examples in zip(functions.items(), checks, strict=True):
        traced = made if name == "forward" else getattr(made, name)
        unit = type(made)._script_methods[name]
        if unit.drawing:
            nodes = "".join(f"\t{line}\n" for line in unit.drawing)
            warn(
                "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
                f"{nodes}This may cause errors in trace checking. To disable trace checking, pass "
                "check_trace=False to torch.jit.trace()"
            )
        for args, kwargs in examples:
            with rushlight.random.fork_rng(devices=[]):
                runs = _Runs(module, args, kwargs)
                _same_operations(
                    made, unit, lambda *a, f=function, n=name, **k: record_run(n, f, module, a, k), runs
                )
                _compare(runs(function), runs(traced), tolerance)


class _Runs:
    """Runs functions from equal states: inputs, buffers and random numbers."""

    def __init__(self, module, args, kwargs):
        self.module, self.inputs, self.random = module, (args, kwargs), rushlight.get_rng_state()
        self.state = [(tensor, tensor.detach().clone()) for tensor in module.buffers()]

    def __call__(self, function):
        rushlight.set_rng_state(self.random)
        args, kwargs = _detached(self.inputs)
        try:
            return function(*args, **kwargs)
        finally:
            with rushlight.no_grad():
                for tensor, value in self.state:
                    tensor.copy_(value)


def _detached(inputs):
    return tree_map_only(Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), inputs)


def _same_operations(made, unit, record, runs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        recorded = runs(record)
    again = recorded.unit
    if again.code != unit.code:
        lines = difflib.ndiff(unit.code.splitlines(), again.code.splitlines())
        difference = "\n\t\t".join(lines)
        raise TracingCheckError(
            f"ERROR: Graphs differed across invocations!\n\tGraph diff:\n\t\t{difference}", None
        )
    _same_constants(made, recorded.constants)


def _same_constants(made, constants):
    """A tensor that depends on the inputs by no operation that a trace sees is the example's for good."""
    for name, value in constants.items():
        known = made._buffers.get(name)
        if known is not None and not _equal(known, value):
            raise TracingCheckError(
                None,
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often "
                "indicates that the tracer has encountered untraceable code."
                f"\n\tFirst: {known}\n\tThen: {value}",
            )


def _equal(a, b):
    try:
        rushlight.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        return False
    return True


def _compare(expected, got, tolerance):
    for number, (a, b) in enumerate(zip(tree_leaves(expected), tree_leaves(got), strict=True), 1):
        try:
            a = rushlight.tensor(a) if isinstance(a, int) else a  # a size, which a trace gives as a tensor
            rushlight.testing.assert_close(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            warnings.warn(
                f"Output nr {number}. of the traced function does not match the corresponding output of the "
                f"Python function. Detailed error:\n{error}",
                TracerWarning,
                stacklevel=4,
            )


show_from("jit._trace", TracingCheckError)
