"""Functions and modules whose forward and backward pass are CUDA graphs."""

from typing import Any

import rushlight
from rushlight.utils import _pytree


def _leaves(tree):
    return _pytree.tree_flatten(tree)


class _Recorded:
    """One callable: its graphs and the tensors that they read and write."""

    def __init__(self, function, sample):
        self.function, self.sample = function, sample
        self.inputs = list(_leaves(sample)[0])
        module = isinstance(function, rushlight.nn.Module)
        self.parameters = list(function.parameters()) if module else []
        self.surface = (*self.inputs, *self.parameters)
        if not all(isinstance(t, rushlight.Tensor) for t in self.inputs):
            raise TypeError("In the beta API, sample_args for each callable must contain only Tensors.")
        self.learns = any(t.requires_grad for t in self.surface)

    def run(self):
        self.outputs, self.form = _leaves(self.function(*self.sample))

    def gradients(self, seeds, unused):
        wanted = [t for t in self.surface if t.requires_grad]
        outputs = [t for t in self.outputs if t.requires_grad]
        return rushlight.autograd.grad(outputs, wanted, seeds, only_inputs=True, allow_unused=unused)

    def warm_up(self, times, unused):
        for _ in range(times):
            self.run()
            if self.learns:
                self.gradients([rushlight.empty_like(o) for o in self.outputs if o.requires_grad], unused)

    def record_forward(self, pool):
        self.forward = rushlight.cuda.CUDAGraph()
        with rushlight.cuda.graph(self.forward, pool=pool):
            self.run()

    def record_backward(self, pool, unused):
        self.backward: Any = None
        if not self.learns:
            return
        self.seeds = [rushlight.empty_like(o) if o.requires_grad else None for o in self.outputs]
        self.backward = rushlight.cuda.CUDAGraph()
        with rushlight.cuda.graph(self.backward, pool=pool):
            found = iter(self.gradients([s for s in self.seeds if s is not None], unused))
        self.grads = [next(found) if t.requires_grad else None for t in self.surface]

    def graphed(self):
        """The function that runs the graphs."""
        recorded = self

        class Graphed(rushlight.autograd.Function):
            @staticmethod
            def forward(ctx, *surface):
                for kept, given in zip(recorded.inputs, surface):
                    if kept.data_ptr() != given.data_ptr():
                        kept.copy_(given)
                recorded.forward.replay()
                return tuple(o.detach() for o in recorded.outputs)

            @staticmethod
            def backward(ctx, *grads):
                for seed, grad in zip(recorded.seeds, grads):
                    if seed is not None and seed.data_ptr() != grad.data_ptr():
                        seed.copy_(grad)
                recorded.backward.replay()
                return tuple(g.detach() if g is not None else None for g in recorded.grads)

        def call(*args):
            outputs = Graphed.apply(*_leaves(args)[0], *recorded.parameters)
            return _pytree.tree_unflatten(list(outputs), recorded.form)

        return call


def _with_eager_fallback(module, call):
    """The module in the mode it was recorded in runs its graphs, in the other mode it runs as before."""
    training, eager = module.training, module.forward

    def forward(*args):
        return call(*args) if module.training == training else eager(*args)

    module.forward = forward
    return module


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Modules or functions of the same meaning whose passes are recorded graphs.

    Args:
        callables: one or a tuple; a tuple runs in this order, its backward passes in reverse.
        sample_args: for each a tuple of tensors, of the shapes and requires_grad of those to come.
        num_warmup_iters: runs before the recording.
        allow_unused_input: whether inputs may have no gradient.
        pool: to share with other graphs.
    """
    if rushlight.is_autocast_enabled("cuda") and rushlight.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    for c in callables:
        if isinstance(c, rushlight.nn.Module) and (
            c._backward_hooks or c._forward_hooks or c._forward_pre_hooks
        ):
            raise RuntimeError(
                "Modules must not have hooks registered at the time they are passed. However, registering "
                "hooks on modules after passing them through make_graphed_callables is allowed."
            )
    recordings = [_Recorded(c, args) for c, args in zip(callables, sample_args)]
    pool = rushlight.cuda.graph_pool_handle() if pool is None else pool
    rushlight.cuda.synchronize()
    with rushlight.cuda.stream(rushlight.cuda.Stream()):
        for recorded in recordings:
            recorded.warm_up(num_warmup_iters, allow_unused_input)
    rushlight.cuda.synchronize()
    for recorded in recordings:
        recorded.record_forward(pool)
    for recorded in reversed(recordings):
        recorded.record_backward(pool, allow_unused_input)
    made = []
    for c, recorded in zip(callables, recordings):
        call = recorded.graphed()
        made.append(_with_eager_fallback(c, call) if isinstance(c, rushlight.nn.Module) else call)
    return made[0] if single else tuple(made)
