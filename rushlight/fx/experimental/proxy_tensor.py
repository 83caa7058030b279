"""`make_fx`: a graph of the operators that really run, recorded below autograd and the transforms."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import traceback

import rushlight as torch
from rushlight._command.names import is_own_file
from rushlight._extension.dispatch_keys import PRE_DISPATCH
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight._subclasses.size_choices import ComparableSize, SizeTruth
from rushlight.fx import PH, GraphModule, Tracer
from rushlight.fx.node import map_aggregate
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata
from rushlight.fx.proxy import Proxy
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _all_modes,
    _pop_mode,
    _push_mode,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rushlight.fx.node import Argument, Target
    from rushlight.nn import Module

__all__ = [
    "DecompositionInterpreter",
    "PythonKeyTracer",
    "decompose",
    "disable_proxy_modes_tracing",
    "dispatch_trace",
    "get_innermost_proxy_mode",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "handle_sym_dispatch",
    "make_fx",
    "maybe_disable_thunkify",
    "maybe_enable_thunkify",
    "py_sym_types",
]

py_sym_types = (torch.SymInt, torch.SymFloat, torch.SymBool)
CURRENT_DECOMPOSITION_TABLE: dict = {}


class PythonKeyTracer(Tracer):
    """The tracer under `make_fx`: modules run, and tensors stand for themselves."""

    whole_scans = False  # whether a scan is one node, which has no gradient in the graph
    apart = False  # whether gradients are switched off in what is traced, though they were not around it

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.tensor_tracker = {}  # id -> (tensor, its proxy): held, so that ids stay unique
        self.constants = set()  # ids of tracked tensors whose numbers no argument and no chance decides

    def call_module(self, m: Module, forward, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return forward(*args, **kwargs)

    def calling_functions(self):
        """Around the call of an operator of functions; gives whether it matters where gradients are on."""
        return contextlib.nullcontext(False)

    def getattr(self, attr: str, attr_val, parameter_proxy_cache):
        return attr_val

    def _patch(self, patcher, fn_globals):
        """Nothing is replaced: no function meets a proxy, and compiled programs notice changes of classes."""
        mine, own = type(self), PythonKeyTracer
        if mine.call_module is not own.call_module or mine.getattr is not own.getattr:
            super()._patch(patcher, fn_globals)

    def track(self, tensor: Any, proxy):
        """From now on the tensor is the value of this proxy."""
        self.tensor_tracker[id(tensor)] = tensor, proxy

    def proxy_of(self, tensor: Any):
        """The proxy of a tensor, or None if it is a constant of the graph."""
        found = self.tensor_tracker.get(id(tensor))
        return None if found is None else found[1]

    def create_arg(self, a: Argument) -> Argument:
        if isinstance(a, torch.Tensor):
            proxy = self.proxy_of(a)
            if proxy is not None:
                return proxy.node
            is_parameter = isinstance(a, torch.nn.Parameter)
            return self._constant(a, "_param_constant" if is_parameter else "_tensor_constant")
        if isinstance(a, py_sym_types):  # a number or truth that the program read from its data
            from rushlight._subclasses.data_numbers import _proxy_of

            return super().create_arg(_proxy_of(a))
        if isinstance(a, (ComparableSize, SizeTruth)):
            return int(a) if isinstance(a, int) else bool(a)
        return super().create_arg(a)


def _describe(node, value, fakes):
    """What is known of a value goes into the node's meta."""

    def kind(v):
        if isinstance(v, FakeTensor) or not isinstance(v, torch.Tensor):
            return v
        return fakes.from_tensor(v.detach() if v.requires_grad else v)

    with disable_proxy_modes_tracing():
        node.meta["val"] = map_aggregate(value, kind)
        if isinstance(value, torch.Tensor):
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)
    if isinstance(value, (tuple, list)):
        for user in node.users:
            if user.target is operator.getitem:
                _describe(user, value[user.args[1]], fakes)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Sees operators, runs them, and records them as nodes."""

    def __init__(
        self,
        tracer: Any,
        tracing_mode: str = "real",
        pre_dispatch: bool = False,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
        *,
        allow_non_fake_inputs: bool = True,
        refuse_values: bool = True,
    ) -> None:
        super().__init__(PRE_DISPATCH if pre_dispatch else None)
        self.tracer, self.tracing_mode, self.pre_dispatch = tracer, tracing_mode, pre_dispatch
        self.switches = None  # of a trace of calls as the program makes them
        self.decomposition_table = decomposition_table or {}
        self.enable_tracing = True
        self.refuse_values = refuse_values
        self.fakes = FakeTensorMode(allow_non_fake_inputs=allow_non_fake_inputs or tracing_mode == "real")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(map(_answers_itself, types)):
            tensors = _tensors_of(args, kwargs)
            if any(_answers_itself(type(t)) and self.tracer.proxy_of(t) is None for t in tensors):
                return NotImplemented  # what its class does is seen then
        if self.switches is not None:
            self.switches.follow()
        decomposition = self.decomposition_table.get(func)
        if decomposition is not None:
            with self:
                result = decomposition(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if self._asks_for_value(func, args):
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring "
                "out! It's likely that this is caused by data-dependent control flow or similar. The graph "
                f"cannot depend on values of its inputs, as it does in {_user_line()}."
            )
        if torch.Tag.inplace_view in func.tags:
            self._keep_description(args[0])
        return self._record(func, args, kwargs)

    def _asks_for_value(self, func, args):
        if torch.Tag.data_dependent_output not in func.tags or self.fakes.data_numbers is not None:
            return False
        tracked = [a for a in args if isinstance(a, torch.Tensor) and self.tracer.proxy_of(a) is not None]
        return self.refuse_values and any(id(a) not in self.tracer.constants for a in tracked)

    def _note_constants(self, func, args, kwargs, result):
        """Numbers computed of constants alone are constants, too, which a program may read."""
        constants, given = self.tracer.constants, _tensors_of(args, kwargs)
        known = torch.Tag.nondeterministic_seeded not in func.tags and all(
            id(t) in constants or self.tracer.proxy_of(t) is None for t in given
        )
        results = [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        if known and given and all(t.numel() == 1 for t in results):
            constants.update(map(id, results))
        elif func._schema.is_mutable:
            constants.difference_update(map(id, given))

    def _keep_description(self, tensor):
        """The node of a tensor that is about to get another shape keeps what is known of it now."""
        proxy = self.tracer.proxy_of(tensor)
        if proxy is not None and proxy.node.meta.get("val") is tensor:
            with disable_proxy_modes_tracing():
                proxy.node.meta["val"] = tensor.detach()

    def _record(self, func, args, kwargs):
        if func._opname == "lift_fresh":
            func = torch.ops.aten.clone.default  # the program may write to what the graph holds as a constant
        numbers = self.fakes.data_numbers
        if numbers is not None and numbers.unchecked and numbers.tracer is self.tracer:
            numbers.check_united()
        traced: Any = (torch.Tensor, float) if numbers is not None and numbers.floats else torch.Tensor
        if numbers is not None and numbers.integers:
            numbers.check_arguments(func, args, kwargs)
            traced = torch.Tensor, float, int
        as_proxies = functools.partial(pytree.tree_map_only, traced, self._proxy_or_constant)
        name = self.tracer.graph._target_to_str(func._opname)
        proxy_args, proxy_kwargs = as_proxies(args), as_proxies(kwargs)
        shown = _named_for(func, args)
        proxy = self.tracer.create_proxy("call_function", shown, proxy_args, proxy_kwargs, name=name)
        result = func(*args, **kwargs)
        if numbers is not None and func._opname == "_local_scalar_dense":
            numbers.attach(proxy)
        track_tensor_tree(result, proxy, constant=None, tracer=self.tracer)
        if self.tracing_mode == "real":
            self._note_constants(func, args, kwargs, result)
        _describe(proxy.node, result, self.fakes)
        return result

    def _proxy_or_constant(self, tensor):
        if isinstance(tensor, float):
            return self.fakes.data_numbers.floats.get(float.__add__(tensor, 0.0), tensor)
        if isinstance(tensor, int):
            numbers = self.fakes.data_numbers
            known = numbers.integers.get(int(tensor))
            return tensor if known is None else numbers.proxy(known)
        proxy = self.tracer.proxy_of(tensor)
        return tensor if proxy is None else proxy


def _named_for(func, args):
    """The overload by which PyTorch's graphs name a call: comparisons with numbers have their own."""
    other = func.with_number
    is_number = other is not None and len(args) > other[1] and not isinstance(args[other[1]], torch.Tensor)
    return other[0] if is_number and isinstance(args[0], torch.Tensor) else func


def _tensors_of(args, kwargs):
    return [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]


def _answers_itself(kind):
    """Whether operators on tensors of this class are what the class makes of them."""
    return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ and not issubclass(kind, FakeTensor)


def _user_line():
    """Where the user's program is, with its text."""
    frames = traceback.extract_stack()
    frames = [f for f in frames if not is_own_file(f.filename) and not f.filename.startswith("<")]
    if not frames:
        return "the program"
    return f"{frames[-1].filename}, line {frames[-1].lineno}: `{frames[-1].line}`"


def track_tensor_tree(inner_res, proxy_res, *, constant=None, tracer: Any):
    """The tensors of a result are the values of a proxy, or of its items."""
    if isinstance(inner_res, torch.Tensor):
        tracer.track(inner_res, proxy_res)
    elif isinstance(inner_res, (tuple, list)):
        for i, item in enumerate(inner_res):
            if isinstance(item, (torch.Tensor, tuple, list)):
                track_tensor_tree(item, proxy_res[i], tracer=tracer)
    return inner_res


def _fake_signature(fn, nargs):
    """A function of so many arguments by position, for one whose own cannot be read."""
    names = ",".join(f"arg{i}" for i in range(nargs))
    return eval(f"lambda {names}: fn({names})", {"fn": fn})


def _has_plain_signature(f):
    code = getattr(inspect.unwrap(f), "__code__", None)
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code is not None and not code.co_flags & stars and not inspect.ismethod(f)


def dispatch_trace(root: Any, tracer: Any, concrete_args: dict[str, Any] | None = None):
    """Run a function on proxies with a tracer; returns its module."""
    graph = tracer.trace(root, concrete_args)
    for node in graph.nodes:  # code with nested inputs takes over the names of leaves
        if node.op != "output":
            node.type = None
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else getattr(root, "__name__", "f")
    return GraphModule(tracer.root, graph, name if name.isidentifier() else "GraphModule")


class _MakefxTracer:
    """One `make_fx`: how to trace, and the trace."""

    def __init__(self, f, tracing_mode, pre_dispatch, **options):
        self.f, self.tracing_mode, self.pre_dispatch = f, tracing_mode, pre_dispatch
        self.options = options  # of the mode

    def trace_sizes(self, *args):
        """The trace with sizes that are computed."""
        from ._sized_trace import trace

        symbolic = self.tracing_mode == "symbolic"
        return trace(
            self.f, args, lambda make, numbers: self.trace(*args, make=make, numbers=numbers), symbolic
        )

    def trace(self, *args, make=None, numbers=None):
        tracer = PythonKeyTracer()
        mode = ProxyTorchDispatchMode(tracer, self.tracing_mode, self.pre_dispatch, **self.options)
        leaves = pytree.tree_leaves(args)
        known = next((leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)), None)
        if known is not None:  # fakes of two modes do not mix
            mode.fakes = known
        if make is None:
            inputs = [self._input(leaf, mode) for leaf in leaves]
        else:
            inputs = make(mode.fakes)
        spec = pytree.tree_structure(args)
        placeholders = pytree.tree_map(lambda _: PH, args)
        f = self.f if _has_plain_signature(self.f) else _fake_signature(self.f, len(args))

        @functools.wraps(f)
        def wrapped(*proxies):
            for value, proxy in zip(inputs, pytree.tree_leaves(proxies)):
                if isinstance(value, torch.Tensor):
                    tracer.track(value, proxy)
                _describe(proxy.node, value, mode.fakes)
            if numbers is not None:
                numbers.tracer, mode.fakes.data_numbers = tracer, numbers
            if self.pre_dispatch:
                from ._pre_dispatch import Switches

                mode.switches = Switches(tracer)
            with self._fake_mode(mode), mode:
                result = f(*pytree.tree_unflatten(inputs, spec))
            if mode.switches is not None:
                mode.switches.finish()
            mode.fakes.data_numbers = None
            return result

        return dispatch_trace(wrapped, tracer, concrete_args=tuple(placeholders))

    def _input(self, value, mode):
        if (
            self.tracing_mode == "fake"
            and isinstance(value, torch.Tensor)
            and not isinstance(value, FakeTensor)
        ):
            return mode.fakes.from_tensor(value)
        return value

    def _fake_mode(self, mode):
        return mode.fakes if self.tracing_mode != "real" else contextlib.nullcontext()


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    **options,
) -> Callable[..., GraphModule]:
    """A function that traces `f` on its arguments and returns a GraphModule of operators.

    ``decomposition_table`` maps operators to functions that express them by others. ``tracing_mode`` is
    ``"real"`` or ``"fake"``, where shapes are those of the arguments, or ``"symbolic"``: the graph computes
    with the sizes of its arguments, as far as the function allows other ones. With ``pre_dispatch`` the graph
    has the operators that the function calls, before autograd and autocast: composites whole, and changes of
    grad mode and autocast as nodes.

    Real tensors that a function takes from elsewhere are refused among fake ones, unless
    ``_allow_non_fake_inputs``.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(
            f'tracing_mode should be one of "real", "fake", or "symbolic", got {tracing_mode}'
        )
    maker = _MakefxTracer(
        f,
        tracing_mode,
        pre_dispatch,
        decomposition_table=decomposition_table,
        allow_non_fake_inputs=_allow_non_fake_inputs,
        refuse_values=_error_on_data_dependent_ops,
    )

    @functools.wraps(f)
    def wrapped(*args):
        with disable_proxy_modes_tracing():  # a trace around this one sees what its graph does alone
            return maker.trace(*args) if tracing_mode == "real" else maker.trace_sizes(*args)

    return wrapped


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple[Argument, ...],
    kwargs: dict[str, Argument],
    tracing_mode: str = "real",
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
):
    """A trace of ``func(*args, **kwargs)`` that an outer trace does not see."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def call(*values):
        args, kwargs = pytree.tree_unflatten(list(values), spec)
        return func(*args, **kwargs)

    with disable_proxy_modes_tracing():
        return make_fx(call, decomposition_table=decomposition_table, tracing_mode=tracing_mode)(*leaves)


# --- modes in force ---------------------------------------------------------------------------------


def get_innermost_proxy_mode():
    """The mode that records now, or None."""
    return next((mode for mode in reversed(_all_modes()) if isinstance(mode, ProxyTorchDispatchMode)), None)


get_proxy_mode = get_innermost_proxy_mode


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """Within it, nothing is recorded."""
    taken = [_pop_mode(mode._dispatch_key) for mode in reversed(_all_modes())][::-1]
    others = [mode for mode in taken if not isinstance(mode, ProxyTorchDispatchMode)]
    for mode in others:
        _push_mode(mode)
    try:
        yield
    finally:
        for mode in reversed(others):
            _pop_mode(mode._dispatch_key)
        for mode in taken:
            _push_mode(mode)


@contextlib.contextmanager
def decompose(decomposition_table):
    """Within it, `CURRENT_DECOMPOSITION_TABLE` is this table."""
    global CURRENT_DECOMPOSITION_TABLE
    before, CURRENT_DECOMPOSITION_TABLE = CURRENT_DECOMPOSITION_TABLE, decomposition_table
    try:
        yield CURRENT_DECOMPOSITION_TABLE
    finally:
        CURRENT_DECOMPOSITION_TABLE = before


def maybe_disable_thunkify():
    return contextlib.nullcontext()


maybe_enable_thunkify = maybe_disable_thunkify


def handle_sym_dispatch(func: Callable[..., Any], args: tuple[Argument, ...], kwargs: dict[str, Argument]):
    """Calls on symbolic numbers, of which there are none."""
    return func(*args, **kwargs)


class DecompositionInterpreter(torch.fx.Interpreter):
    """Runs a graph of operators, and records it with some of them decomposed."""

    def __init__(
        self,
        module: Module,
        new_graph,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = PythonKeyTracer()
        self.tracer.graph, self.tracer.root, self.tracer.tensor_attrs = new_graph, module, {}
        self.decomposition_table = decomposition_table or {}
        self.mode = ProxyTorchDispatchMode(self.tracer, decomposition_table=self.decomposition_table)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        value = super().placeholder(target, args, kwargs)
        proxy = Proxy(self.new_graph.placeholder(target), self.tracer)
        track_tensor_tree(value, proxy, tracer=self.tracer)
        return value

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        value = super().get_attr(target, args, kwargs)
        proxy = Proxy(self.new_graph.get_attr(target), self.tracer)
        track_tensor_tree(value, proxy, tracer=self.tracer)
        return value

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        value = super().output(target, args, kwargs)
        self.new_graph.output(self.tracer.create_arg(value))
        return value

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with decompose(self.decomposition_table), self.mode:
            return super().run(*args, **kwargs)
