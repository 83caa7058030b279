"""Running what compilers made of a joint graph: gradients, writes to inputs and views of them."""

import rushlight as torch
from rushlight.utils import _pytree as pytree

__all__ = ["boxed", "runner"]


def boxed(function):
    """A function of one list, as compilers may return it, for one of any form."""
    if getattr(function, "_boxed_call", False):
        return function
    return lambda values: function(*values)


def runner(program, forward, backward=None, saved=0):
    """A function of leaves; ``forward`` and ``backward`` are what compilers returned."""
    forward = boxed(forward)
    if backward is None:

        def results_of(leaves):
            with torch.no_grad():
                return _results(program, forward(list(leaves)))

    else:
        function = _function(program, forward, boxed(backward), saved)

        def results_of(leaves):
            return list(function.apply(*leaves))

    def run(*leaves):
        return _finish(program, leaves, results_of(leaves))

    return run


class _Once(torch.autograd.Function):
    """Gradients that were asked for with their own history, which is not known."""

    @staticmethod
    def forward(ctx, anchor, *gradients):
        return tuple(g.detach() if isinstance(g, torch.Tensor) else g for g in gradients)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")


def _function(program, forward, backward, saved):
    count = len(program.results)
    differentiable = frozenset(program.differentiable)
    strides = [program.results[i].stride() for i in program.differentiable]

    class CompiledFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *leaves):
            values = list(forward([t.detach() if isinstance(t, torch.Tensor) else t for t in leaves]))
            results = _results(program, values)
            kept = _apart(values[count - len(program.in_graph) :], [leaves[i] for i in program.written])
            ctx.numbers = [None if isinstance(v, torch.Tensor) else v for v in kept]
            ctx.save_for_backward(*(v for v in kept if isinstance(v, torch.Tensor)))
            others = [r for i, r in enumerate(results) if i not in differentiable]
            ctx.mark_non_differentiable(*(r for r in others if isinstance(r, torch.Tensor)))
            ctx.written_late = [leaves[i] for i in program.written_late]
            return tuple(results)

        @staticmethod
        def backward(ctx, *gradients):
            tensors = iter(ctx.saved_tensors)
            kept = [next(tensors) if number is None else number for number in ctx.numbers]
            tangents = [_laid_out(gradients[i], s) for i, s in zip(program.differentiable, strides)]
            with torch.no_grad():
                made = list(backward([*kept, *tangents]))
            made = _write_late(ctx.written_late, made)
            if torch.is_grad_enabled():
                made = _Once.apply(torch.empty(0, requires_grad=True), *made)
            return tuple(made)

    return CompiledFunction


def _results(program, values):
    """What a graph returned; None stands for what it wrote itself, and for what is made of inputs."""
    values, made = iter(values), []
    for i in range(len(program.results)):
        value = None if i in program.in_graph else next(values)
        made.append(None if i in program.aliases else _no_view(value))
    return made


def _write_late(targets, made):
    """The gradients, after the writes that the backward pass does to leaves."""
    count = len(made) - len(targets)
    if torch.is_grad_enabled() and any(t.requires_grad for t in targets):
        raise RuntimeError(
            "aot_autograd does not support input mutations with requires_grad in backward for "
            "create_graph=True"
        )
    with torch.no_grad():
        for target, value in zip(targets, made[count:]):
            target.copy_(value)
    return made[:count]


def _apart(kept, written):
    """Values for the backward pass, copied where they lie in what the program is about to write to."""
    memory = {t.untyped_storage()._cdata for t in written}
    return [
        v.clone() if isinstance(v, torch.Tensor) and v.untyped_storage()._cdata in memory else v for v in kept
    ]


def _laid_out(gradient, strides):
    """A gradient in the memory layout of its result, for which the backward pass was compiled."""
    if gradient.stride() == tuple(strides):
        return gradient
    return gradient.new_empty_strided(gradient.shape, strides).copy_(gradient)


def _finish(program, leaves, results):
    """What the program returns, after the writes that it does."""
    for i, value in zip(program.written, results):
        if i in program.places:
            sizes, strides, offset = program.places[i]
            leaves[i].as_strided_(sizes, strides, offset + leaves[i].storage_offset())
        if value is None:
            continue
        with torch.set_grad_enabled(torch.is_grad_enabled() and i not in program.hidden):
            leaves[i].copy_(value)
    outputs = [_output(o, leaves, results) for o in program.outputs]
    return pytree.tree_unflatten(outputs, program.spec)


def _output(output, leaves, results):
    if output.position is None and output.source is None:
        return output.constant
    whole = results[output.position] if output.source is None else leaves[output.source]
    if output.place is None:
        return whole
    view = _view(whole, output)
    if output.differentiable and not view.requires_grad:
        return view.requires_grad_()  # as the program asked for
    return view if output.differentiable else view.detach()


def _view(whole, output):
    """A view as the program made it, or one of its shape and strides."""
    sizes, strides, offset = output.place
    offset += whole.storage_offset()
    if output.steps is not None:
        view = whole
        for step in output.steps:
            view = step.call(view, step.func)
        if (view.shape, view.stride(), view.storage_offset()) == (sizes, strides, offset):
            return view
    return whole.as_strided(sizes, strides, offset)


def _no_view(tensor):
    """The same memory as a tensor of its own: programs may write to what they get."""
    if not isinstance(tensor, torch.Tensor) or not tensor._is_view():
        return tensor
    place = tensor.storage_offset(), tensor.size(), tensor.stride()
    return tensor.new_empty(0).set_(tensor.untyped_storage(), *place)
