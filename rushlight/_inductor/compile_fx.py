"""From a graph of operators to a function of tensors."""

import logging

import rushlight as torch
from rushlight import _C
from rushlight._dynamo._backward import NoBackward
from rushlight._dynamo.exc import Unsupported
from rushlight._inductor import config
from rushlight._inductor._convolutions import fuse_convolutions
from rushlight._inductor._cuda_graphs import Recorded, recordable
from rushlight._inductor._freeze import freeze
from rushlight._inductor._functional import functionalize
from rushlight._inductor._joint import Joint
from rushlight._inductor._lower import NotLowered, graph_text
from rushlight._inductor._optimize import batch, optimize
from rushlight._inductor._packed import pack_products
from rushlight._inductor._passes import device_of, remove_dead, storage_of
from rushlight.fx._operator_code import generate

__all__ = ["compile_fx"]

_decisions = logging.getLogger("torch.__inductor")


def compile_fx(module, example_inputs, **options):
    """A function that does what the module's graph says: takes tensors, gives a tuple of them."""
    graph = module.graph
    results = graph.output_node().args[0]
    records = torch.is_grad_enabled() and any(t.requires_grad for t in example_inputs)
    lite = options.get("mode") == "lite"  # operators as they were captured
    if records and module.meta.get("backward") is not None:
        try:
            if lite:
                raise NoBackward("mode='lite'")
            return Program(Joint(module, module.meta["backward"]))
        except (NoBackward, NotLowered) as error:
            _decisions.info("operators record themselves one by one: %s", error)
            graph.output_node().args = (results,)
    if records:
        module = module.meta.get("checkpoints", module.meta.get("calls", module))
        if module is None:
            raise Unsupported(
                "a checkpoint of a function that the program makes cannot be a step of autograd"
            )
        graph = module.graph
    remove_dead(graph)
    if records or lite or _gives_views(graph):
        return generate(module)  # operators record themselves
    try:
        graph_text(graph)
    except NotLowered:
        optimize(graph)
        return generate(module)
    return _without_gradients(graph, len(results), module.meta, _wants_recording(options))


def _wants_recording(options):
    """Whether the mode or the options of `torch.compile` ask for CUDA graphs."""
    return options.get("mode") in ("reduce-overhead", "max-autotune") or bool(
        options.get("options", {}).get("triton.cudagraphs")
    )


def _without_gradients(graph, results, told, record):
    """The program of a graph without gradients, and what its capture told of it."""
    first_state, sizes_change = told.get("state"), told.get("sizes change", False)
    functionalize(graph)
    on_cpu = device_of(graph) == "cpu"  # whose kernels take steps behind convolutions, and keep weights
    if on_cpu:
        fuse_convolutions(graph, first_state if config.freezing else None)
        batch(graph)
        if config.pack_products:
            pack_products(graph, first_state if config.freezing else None, sizes_change)
    freezes = on_cpu and config.freezing and first_state is not None
    frozen = freeze(graph, first_state, sizes_change) if freezes else None
    optimize(graph, sizes_change)
    if frozen is not None:
        optimize(frozen.graph, sizes_change)
    program = Program(graph_text(graph), results, frozen, first_state)
    if on_cpu or not record or first_state is None:
        return program
    reason = recordable(graph, first_state)
    if reason is not None:
        _decisions.info("a graph is not recorded: %s", reason)
        return program
    return Recorded(program)


class Program:
    """A function of a list of tensors, which a compiled graph runs."""

    _boxed_call = True

    def __init__(self, source, results=None, frozen=None, first_state=None):
        self.joint = source if isinstance(source, Joint) else None
        self.text = source.text if self.joint else source
        self.results = len(source.results) if self.joint else results
        self.frozen_text = graph_text(frozen.graph) if frozen else None
        self.sources = frozen.sources if frozen else []  # inputs that the frozen values are made of
        self.first_state = first_state

    def texts(self):
        """All that runs, as text: what this is tells whether it pays."""
        steps = self.joint.steps if self.joint else []
        backward = [next(iter(step.backwards.values()))[0] for step in steps]
        return [self.text, *backward, *([self.frozen_text] if self.frozen_text else [])]

    def bind(self, rest, form="l", guards=None):
        """The graph that takes `rest` besides arguments, and gives a tensor, a tuple or a list."""
        more = () if guards is None else (guards,)
        sources = [i - self.first_state for i in self.sources] if self.frozen_text else []
        left = [tensor for i, tensor in enumerate(rest) if i not in sources]
        made = _C._CompiledGraph(self.text, self.results, left, form, *more)
        if self.frozen_text:
            made.freeze(self.frozen_text, [rest[i] for i in sources])
        if self.joint is not None:
            self.joint.connect(made)
        return made

    def __call__(self, inputs):
        first = self.first_state if self.frozen_text else len(inputs)
        return self.bind(list(inputs[first:])).run(inputs[:first])


def _gives_views(graph):
    """Whether an output shares memory with an input: views know their grad mode, and what they look into."""
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    if not torch.is_grad_enabled():  # only those of what requires a gradient require one themselves
        inputs = [n for n in inputs if getattr(n.meta["val"], "requires_grad", False)]
    storages = {storage_of(n) for n in inputs}
    return any(storage_of(n) in storages for n in graph.output_node().args[0])
