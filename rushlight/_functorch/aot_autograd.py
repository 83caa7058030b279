"""Ahead-of-time autograd: compilers get a program's forward and backward pass as graphs of operators.

``aot_function(f, fw_compiler, bw_compiler)`` records both when it is first called with such arguments,
without mutation, splits them (`partitioners`) and calls the compilers; `aot_module` and
`aot_module_simplified` do that for modules.
"""

import contextlib
import functools
import itertools

import rushlight as torch
from rushlight.utils import _pytree as pytree

from . import _joint_run, _joint_trace, config
from ._aot_export import BackwardSignature, GraphSignature, aot_export_joint_simple, aot_export_module
from ._shared_inputs import Merged
from .functional_call import functional_call
from .partitioners import default_partition

__all__ = [
    "BackwardSignature",
    "GraphSignature",
    "aot_export_joint_simple",
    "aot_export_module",
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compiled_function",
    "compiled_module",
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_graph_being_compiled",
    "make_boxed_compiler",
    "make_boxed_func",
]

AOT_COUNTER = itertools.count()  # numbers of programs
_compiling: list = []  # names of the graphs that compilers work on
_number = 0


def make_boxed_func(f):
    """``f`` as a function of one list of arguments, which runners may empty."""

    def boxed(args):
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_call(f):
    """Marks a function of one list as such."""
    f._boxed_call = True
    return f


def make_boxed_compiler(compiler):
    """A compiler whose functions take one list of arguments."""

    @functools.wraps(compiler)
    def wrapped(fx_g, inps):
        return make_boxed_func(compiler(fx_g, inps))

    return wrapped


def get_aot_compilation_context():
    """(names of the graphs being compiled, the module's name, the number of the graph)."""
    return list(_compiling), "model", _number


def get_aot_graph_name():
    """A name for the graph being compiled."""
    return "_".join(["model", *(_compiling or ["inference"]), str(_number)])


get_graph_being_compiled = get_aot_graph_name


@contextlib.contextmanager
def _working_on(name):
    _compiling.append(f"{_number}_{name}")
    try:
        yield
    finally:
        _compiling.pop()


class _Compilers:
    """What a caller of `aot_function` asks for."""

    def __init__(self, forward, backward, inference, partition, decompositions, dynamic, writes=False):
        self.forward = forward
        self.backward = backward or getattr(forward, "bw_compiler", None) or forward
        self.inference = inference or forward
        self.partition, self.decompositions, self.dynamic = partition, decompositions, dynamic
        self.writes = writes  # whether graphs may write to inputs

    def compile(self, function, leaves):
        """A function of such leaves."""
        global _number
        _number = next(AOT_COUNTER)
        try:
            return _checked(self._compile(function, leaves), leaves, _number)
        except _joint_trace.SharedInputs as shared:
            merged = Merged(function, leaves, shared.written, _number)
        except _joint_trace.AsWritten:
            return function
        try:
            run = self._compile(merged.function, merged.leaves(leaves))
        except _joint_trace.AsWritten:
            return function

        def run_merged(*given):
            return merged.restore(run(*merged.leaves(given)), given)

        return _checked(run_merged, leaves, _number)

    def _compile(self, function, leaves):
        program = _joint_trace.analyse(function, leaves)
        joint = bool(program.needs and program.differentiable)
        module = _joint_trace.trace(function, program, leaves, self.decompositions, self.dynamic, joint)
        examples = _examples(module)
        if not joint:
            if self.writes:
                _joint_trace.write_in_graph(program, module)
            with torch.no_grad(), _working_on("inference"):
                return _joint_run.runner(program, self.inference(module, examples))
        count = len(program.results)
        inputs = len(leaves)
        parts = self.partition(module, (examples[:inputs], examples[inputs:]), num_fwd_outputs=count)
        saved = len(parts[0].graph.output_node().args[0]) - count
        if self.writes:
            _joint_trace.write_in_graph(program, parts[0])
        with torch.no_grad(), _working_on("forward"):
            forward = self.forward(parts[0], _examples(parts[0]))
        return _joint_run.runner(program, forward, self._when_needed(parts[1], _number), saved)

    def _when_needed(self, module, number):
        """What the compiler makes of the backward pass, which it gets when that first runs."""

        @functools.cache
        def compiled():
            global _number
            before, _number = _number, number
            try:
                with torch.no_grad(), _working_on("backward"):
                    return _joint_run.boxed(self.backward(module, _examples(module)))
            finally:
                _number = before

        return make_boxed_call(lambda values: compiled()(values))


def _checked(run, leaves, number):
    """With `debug_assert`, refuses arguments that need gradients where the graph has none for them."""
    if not config.debug_assert:
        return run
    without = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) and not t.requires_grad]

    def checked(*given):
        for i in without:
            if given[i].requires_grad:
                raise AssertionError(
                    f"At compilation time, graph {number} was compiled under the assumption that input {i} "
                    "would not require grad, but at runtime this was not the case.  This indicates a guard "
                    "bug in AOTAutograd or Dynamo, please file a bug to PyTorch."
                )
        return run(*given)

    return checked


def _examples(module):
    """Values for a graph's inputs: fakes where these are tensors."""
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def _key(leaves, spec):
    """What a recorded program is good for."""

    def of(leaf):
        if isinstance(leaf, torch.Tensor):
            place = leaf.shape, leaf.stride(), leaf.storage_offset()
            shared = leaf.untyped_storage()._cdata if leaf.layout is torch.strided else None
            return type(leaf), leaf.dtype, leaf.device, leaf.requires_grad, leaf.is_leaf, place, shared
        return type(leaf), leaf

    found = [of(leaf) for leaf in leaves]
    order: dict = {}  # which leaves share memory counts, not where it is
    found = [(*k[:-1], order.setdefault(k[-1], len(order))) if len(k) > 2 else k for k in found]
    return tuple(found), spec, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")


def aot_function(
    fn,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
    num_params_buffers=0,
    keep_inference_input_mutations=False,
    inference_compiler=None,
    *,
    static_argnums=None,
    dynamic=False,
    enable_log=True,
    disable_functionalization=False,
    **options,
):
    """``fn`` as what the compilers make of its forward and its backward pass.

    Args:
        fw_compiler: a function of a GraphModule of operators and its example inputs (fake tensors), which
            returns a function of these inputs, or of one list (`make_boxed_func`).
        bw_compiler: the same for the backward pass; None: ``fw_compiler.bw_compiler`` where there is
            one, or ``fw_compiler``.
        partition_fn: how the joint graph is split: `default_partition`, or
            `min_cut_rematerialization_partition`, which keeps less.
        decompositions: operators that are expressed by others in the graphs.
        inference_compiler: for calls that need no gradients; None: ``fw_compiler.bw_compiler`` where there is
            one, or ``fw_compiler``.

        keep_inference_input_mutations: whether the graph itself writes to arguments, where autograd does not
            see that; otherwise the new values are results of the graph.

    Programs are recorded anew for arguments of other shapes, dtypes or values. Where one writes to arguments
    that share memory, its graph takes that memory as one tensor. Programs that give an argument other memory
    run as they are written.
    """
    compilers = _Compilers(
        fw_compiler,
        bw_compiler,
        inference_compiler,
        partition_fn,
        decompositions,
        dynamic,
        keep_inference_input_mutations,
    )
    made: dict = {}

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = _key(leaves, spec)
        if key not in made:

            def of_leaves(*given):
                args, kwargs = pytree.tree_unflatten(list(given), spec)
                return fn(*args, **kwargs)

            made[key] = compilers.compile(of_leaves, leaves)
        return made[key](*leaves)

    return wrapped


compiled_function = aot_function


def _held(module):
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def aot_module(mod, *args, **kwargs):
    """A module that runs ``mod`` through `aot_function`; parameters and buffers are ``mod``'s."""

    def call(held, args, kwargs):
        return functional_call(mod, held, args, kwargs)

    compiled = aot_function(call, *args, **kwargs)

    class AOTModule(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.orig_module = mod

        def forward(self, *args, **kwargs):
            return compiled(_held(mod), args, kwargs)

    return AOTModule()


compiled_module = aot_module


def aot_module_simplified(
    mod,
    args,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
    keep_inference_input_mutations=False,
    inference_compiler=None,
    **options,
):
    """What the compilers make of a module for such ``args``: a function of arguments like them.

    For back ends of `torch.compile`, which get a module and examples and return a function."""
    compilers = _Compilers(
        fw_compiler,
        bw_compiler,
        inference_compiler,
        partition_fn,
        decompositions,
        False,
        keep_inference_input_mutations,
    )
    held = _held(mod)
    names, tensors = list(held), list(held.values())

    def of_leaves(*given):
        values = dict(zip(names, given))
        return functional_call(mod, values, tuple(given[len(names) :]))

    run = compilers.compile(of_leaves, [*tensors, *args])

    def forward(*runtime_args):
        return run(*tensors, *runtime_args)

    for name in ("zero_grad", "named_parameters", "named_buffers"):
        setattr(forward, name, getattr(mod, name))
    return forward
