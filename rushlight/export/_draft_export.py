"""`draft_export`: a program exported as far as its example goes, and a report of what stands in the way.

Branches by numbers of the data are decided as the example's data does, and the graph checks them. Operators
without a function for fake tensors give what they gave on the example, of any sizes. Sizes that were asked to
change and cannot become static.
"""

import copy
import logging
import os
from enum import IntEnum

import rushlight as torch
from rushlight._command.names import is_own_file
from rushlight._functorch import config
from rushlight._subclasses import decisions
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

from .dynamic_shapes import Dim, UserError

__all__ = ["DraftExportReport", "FailureReport", "FailureType", "draft_export"]


class FailureType(IntEnum):
    """What keeps `export` from a program."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self):
        return self.name


class FailureReport:
    """One of them: its kind, and ``data`` about it, such as ``op``, ``expr``, ``result``, ``stack``."""

    def __init__(self, failure_type, data, xfail=False):
        self.failure_type, self.data, self.xfail = failure_type, data, xfail

    def __repr__(self):
        return f"FailureReport(failure_type={self.failure_type}, xfail={self.xfail}, data={self.data})"

    def print(self, str_to_filename=None):
        """What happened where, and what to write."""
        data, where = self.data, _shown(self.data.get("stack", ()))
        if self.failure_type == FailureType.MISSING_FAKE_KERNEL:
            return (
                f"Missing fake kernel.\n    torch.ops.{data['op']} is missing a fake kernel implementation."
                f"{where}\n    Its results were taken to be of any size. torch.library.register_fake("
                f'"{data["name"]}") adds one.\n'
            )
        if self.failure_type == FailureType.DATA_DEPENDENT_ERROR:
            return (
                f"Data dependent error.\n    The value of `{data['expr']}` depends on the data.\n    This "
                f"was encountered {data['occurrences']} times.{where}\n    It was taken to be "
                f"`{data['result']}`, as in the example, which the graph checks. torch._check says what may "
                "be relied on, and torch.cond takes both ways.\n"
            )
        return (
            f"Guard Added.\n    {data['expr']}\n    The dynamic shapes were changed, in which "
            "torch.export.Dim.AUTO takes what the program allows:\n    ```\n    dynamic_shapes = "
            f"{data['new_dynamic_shapes']}\n    ```\n"
        )


class DraftExportReport:
    """What `draft_export` found: ``failures``, and whether there were none."""

    def __init__(self, failures, str_to_filename=None, expressions_created=None, op_profiles=None):
        self.failures, self.str_to_filename = failures, str_to_filename or {}
        self.expressions_created, self.op_profiles = expressions_created or {}, op_profiles or {}

    def successful(self):
        return all(failure.xfail for failure in self.failures)

    def __repr__(self):
        return f"DraftExportReport({self.failures})"

    def __str__(self):
        if self.successful():
            return "No issues were found during export: torch.export.export gives the same program."
        head = f"WARNING: {len(self.failures)} issue(s) found during export, which is not sound.\n"
        return "\n".join([head, *(f"{i + 1}. {f.print()}" for i, f in enumerate(self.failures))])


def _shown(stack):
    frames = [f"\n        File {f['filename']}, lineno {f['line']}, in {f['name']}" for f in stack]
    return "".join(frames and ["\n    This occurred at", *frames])


def _frames(stack):
    """The frames of the user's code, the innermost three."""
    own = [f for f in stack if not is_own_file(f.filename) and os.path.exists(f.filename)]
    return [{"filename": f.filename, "line": f.lineno, "name": f.name, "loc": f.line} for f in own[-3:]]


class _Results(TorchDispatchMode):
    """Keeps what operators of programs give."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.namespace not in ("aten", "prims", "prim"):
            self.kept.setdefault(func, result)
        return result


def draft_export(
    mod,
    args,
    kwargs=None,
    *,
    dynamic_shapes=None,
    preserve_module_call_signature=(),
    strict=False,
    pre_dispatch=True,
    prefer_deferred_runtime_asserts_over_guards=False,
):
    """`export` that goes on where it would fail, as far as the example tells the way.

    The program has a ``_report``, which is printed: each failure with its place and what to write instead. A
    program with failures may be wrong for other inputs, as far as its checks do not say so.
    """
    from . import export

    results = _results_of_operators(mod, args, kwargs)
    how = {"strict": strict, "preserve_module_call_signature": preserve_module_call_signature}
    failures, shapes = [], dynamic_shapes
    with decisions.drafting(results) as draft, config.patch(fake_tensor_propagate_real_tensors=True):
        try:
            program = export(mod, args, kwargs, dynamic_shapes=shapes, **how)
        except UserError as error:
            shapes = pytree.tree_map(_freed, dynamic_shapes)
            program = export(mod, args, kwargs, dynamic_shapes=shapes, **how)
            expr = str(error).partition("\n\n")[0]
            data = {"expr": expr, "stack": [], "new_dynamic_shapes": shapes}
            failures.append(FailureReport(FailureType.GUARD_ADDED, data))
    for func, stack in draft.missing.items():
        data = {"op": str(func), "name": func._schema.name, "stack": _frames(stack)}
        failures.append(FailureReport(FailureType.MISSING_FAKE_KERNEL, data))
    for places in draft.decided.values():
        expr, result, stack = places[0]
        data = {"expr": expr, "result": result, "stack": _frames(stack), "occurrences": len(places)}
        failures.append(FailureReport(FailureType.DATA_DEPENDENT_ERROR, data))
    program._report = DraftExportReport(failures)
    if failures:
        logging.getLogger(__name__).warning("%s", program._report)
    return program


def _freed(dim):
    return Dim.AUTO if isinstance(dim, Dim) or dim is Dim.DYNAMIC else dim


def _results_of_operators(mod, args, kwargs):
    """{operator of the program: what it gives on the example}"""
    kept: dict = {}
    mod, args, kwargs = copy.deepcopy((mod, args, kwargs or {}))
    with torch.no_grad(), torch.random.fork_rng(), _Results(kept):
        mod(*args, **kwargs)
    return kept
