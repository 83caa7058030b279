"""Graphs of functions and modules for whoever runs them elsewhere: without mutation, and flat."""

from dataclasses import dataclass, field
from typing import Any

import rushlight as torch
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils import _pytree as pytree

from . import _joint_trace, config
from .functional_call import functional_call

__all__ = ["BackwardSignature", "GraphSignature", "aot_export_joint_simple", "aot_export_module"]


@dataclass
class BackwardSignature:
    """What the outputs of a joint graph's backward pass are."""

    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


@dataclass
class GraphSignature:
    """What the inputs and outputs of a module's graph are, by the names of their nodes.

    Inputs are parameters, buffers and the leaves of the arguments; outputs the new values of what is written
    to, the leaves of the result, and gradients."""

    parameters: list
    buffers: list
    user_inputs: list
    user_outputs: list
    inputs_to_parameters: dict
    inputs_to_buffers: dict
    buffers_to_mutate: dict
    parameters_to_mutate: dict
    user_inputs_to_mutate: dict
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    backward_signature: BackwardSignature | None = None
    input_tokens: list = field(default_factory=list)
    output_tokens: list = field(default_factory=list)


class _Exported:
    """A module as a function of flat inputs, and what its trace tells."""

    def __init__(self, mod, args, kwargs):
        self.parameters = dict(mod.named_parameters(remove_duplicate=False))
        self.buffers = dict(mod.named_buffers(remove_duplicate=False))
        held = {**self.parameters, **self.buffers}
        self.names = list(held)
        given, self.in_spec = pytree.tree_flatten((tuple(args), kwargs))
        self.leaves = [*held.values(), *given]
        self.written: list = []
        self.out_spec: Any = None
        self._mod = mod

    def __call__(self, *leaves):
        args, kwargs = pytree.tree_unflatten(list(leaves[len(self.names) :]), self.in_spec)
        return functional_call(self._mod, dict(zip(self.names, leaves)), args, kwargs)

    def note(self, run):
        """What a run wrote to; refuses what no graph of its inputs can say."""
        self.out_spec = run.spec
        tensors = [i for i, t in enumerate(run.mine) if isinstance(t, torch.Tensor)]
        if any(not run.is_where_it_was(i) for i in tensors):
            raise RuntimeError(_joint_trace.MOVED)
        self.written = [i for i in tensors if run.value(run.mine[i]) is not run.before[i]]
        if self.written and any(a is not b for a, b in zip(self.leaves, _joint_trace.apart(self.leaves))):
            raise RuntimeError(_joint_trace.refusal_of_shared(self.leaves))

    def signature(self, graph, backward=None):
        """The names of what a graph of this module takes and returns."""
        inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
        outputs = [getattr(n, "name", None) for n in graph.output_node().args[0]]
        parameters, count = list(self.parameters), len(self.names)
        mutated = dict(zip(outputs, self.written))
        user_outputs = outputs[len(mutated) : len(mutated) + self.out_spec.num_leaves]
        return GraphSignature(
            parameters=parameters,
            buffers=list(self.buffers),
            user_inputs=inputs[count:],
            user_outputs=user_outputs,
            inputs_to_parameters=dict(zip(inputs, parameters)),
            inputs_to_buffers=dict(zip(inputs[len(parameters) :], self.buffers)),
            buffers_to_mutate={o: self.names[i] for o, i in mutated.items() if len(parameters) <= i < count},
            parameters_to_mutate={o: self.names[i] for o, i in mutated.items() if i < len(parameters)},
            user_inputs_to_mutate={o: inputs[i] for o, i in mutated.items() if i >= count},
            in_spec=self.in_spec,
            out_spec=self.out_spec,
            backward_signature=None if backward is None else backward(inputs, outputs, user_outputs),
        )


def aot_export_module(
    mod,
    args,
    *,
    decompositions=None,
    trace_joint,
    output_loss_index=None,
    pre_dispatch=False,
    dynamic_shapes=None,
    kwargs=None,
):
    """The graph of a module as a function of its parameters, buffers and arguments, and its `GraphSignature`.

    What the module writes to are further results. With ``trace_joint`` the graph also has the gradients of
    the result at ``output_loss_index``, the only one that may require them. With ``pre_dispatch`` it holds
    operators as the module calls them, as `make_fx` does."""
    if pre_dispatch and trace_joint:
        raise RuntimeError("pre_dispatch is not supported when trace_joint is True.")
    _refuse_random_state()
    exported = _Exported(mod, args, kwargs or {})
    mode = "symbolic" if dynamic_shapes else "fake"
    make = _joint_graph if trace_joint else _forward_graph
    module, backward = make(exported, dict(decompositions or {}), mode, pre_dispatch, output_loss_index)
    _joint_trace.tidy(module, differentiated=not pre_dispatch)
    return module, exported.signature(module.graph, backward)


def _refuse_random_state():
    if config.functionalize_rng_ops:
        raise RuntimeError("Functionalized RNG is not currently supported in the aot_export workflow.")


def _forward_graph(exported, table, mode, pre_dispatch, _):
    def record(*primals):
        run = _joint_trace.Run(exported, primals, (), (), pre_dispatch)
        exported.note(run)
        return run.value([*(run.mine[i] for i in exported.written), *run.returned])

    plain = _without_history(exported.leaves)
    with torch.set_grad_enabled(pre_dispatch and torch.is_grad_enabled()):
        make = make_fx(record, table, mode, _allow_non_fake_inputs=True, pre_dispatch=pre_dispatch)
        return make(*plain), None


def _without_history(leaves):
    return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in _joint_trace.apart(leaves)]


def _joint_graph(exported, table, mode, _, loss_index):
    if loss_index is None:
        raise RuntimeError(
            "If trace_joint=True it is required that one of your forward outputs must be a scalar loss.\n"
            "You must specify the which (index) output is the loss with output_loss_index."
        )
    leaves = exported.leaves
    needs = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) and t.requires_grad]

    def record(*primals):
        run = _joint_trace.Run(exported, primals, needs, (), False)
        exported.note(run)
        if found := [i for i in exported.written if i in needs]:
            raise RuntimeError(f"Found an input that requires gradients and is mutated: input {found[0]}")
        with run.mode:
            loss = _loss_of(run.returned, loss_index)
            gradients = torch.autograd.grad(loss, [run.roots[i] for i in needs], allow_unused=True)
        return run.value([*(run.mine[i] for i in exported.written), *run.returned, *gradients])

    def backward(inputs, outputs, user_outputs):
        gradients = dict(zip(outputs[len(outputs) - len(needs) :], needs))
        count = len(exported.parameters)
        return BackwardSignature(
            {o: exported.names[i] for o, i in gradients.items() if i < count},
            {o: inputs[i] for o, i in gradients.items() if i >= len(exported.names)},
            user_outputs[loss_index],
        )

    with torch.enable_grad():
        return make_fx(record, table, mode, _allow_non_fake_inputs=True)(*_without_history(leaves)), backward


def _loss_of(returned, index):
    """The result that is the loss; the others may not require gradients."""
    for i, value in enumerate(returned):
        if i != index and isinstance(value, torch.Tensor) and value.requires_grad:
            raise RuntimeError(
                "Found an output of the forward that requires gradients, that was not the scalar loss: the "
                f"output at index {i}, where index {index} is the loss. Call .detach() on each other output."
            )
    loss = returned[index]
    if not loss.requires_grad:
        raise RuntimeError(
            f"The output at index {index} was marked as the loss, but it does not require gradients"
        )
    if loss.numel() != 1:
        raise RuntimeError(
            f"We require the output marked as the loss (at index {index}) to be a scalar, but it has shape "
            f"{loss.shape}"
        )
    return loss


def aot_export_joint_simple(func, args, *, trace_joint, num_params_buffers=0, decompositions=None):
    """The graph of a function of tensors: of its results, or also of gradients of its arguments.

    Arguments may not nest, and the function may not write to arguments or return views of them."""
    _refuse_random_state()
    if any(not isinstance(a, (torch.Tensor, int, float, bool)) for a in args):
        raise RuntimeError("aot_export_joint_simple requires individual inputs not to be pytrees")
    with torch.set_grad_enabled(trace_joint):
        try:
            program = _joint_trace.analyse(func, args)
        except _joint_trace.AsWritten as error:
            raise RuntimeError(f"aot_export_joint_simple: {error}") from error
        if program.written:
            if program.places:
                raise RuntimeError(f"aot_export_joint_simple: {_joint_trace.MOVED}")
            raise RuntimeError(f"Found an input that received a metadata or data mutation: {program.written}")
        if any(o.source is not None for o in program.outputs):
            raise RuntimeError("aot_export_joint_simple does not support outputs that alias inputs")
        if trace_joint and not program.differentiable:
            raise RuntimeError("no result depends on an argument that requires grad: no backward pass")
        return _joint_trace.trace(func, program, args, decompositions, joint=trace_joint)
