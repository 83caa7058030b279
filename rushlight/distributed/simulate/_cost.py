"""What a training step costs on one process: times and sizes, block by block."""

import time
from dataclasses import dataclass, replace
from statistics import median

import rushlight as torch
from rushlight.nn import ModuleList, Sequential
from rushlight.utils._pytree import tree_leaves, tree_map


@dataclass(frozen=True)
class Block:
    """A part of a model that runs as a whole: seconds, and bytes, of one batch.

    `saved` is what the backward pass needs, `output` what the next block gets."""

    name: str
    forward: float
    backward: float
    parameters: float
    saved: float
    output: float
    tensors: int = 1  # of parameters


@dataclass(frozen=True)
class Cost:
    """A model's blocks in the order in which they run, and what a step costs besides.

    `optimizer` seconds step all parameters, whose states take `state_bytes` a byte of them; `copy` bytes a
    second are moved within memory; `hook` seconds go to each parameter whose gradient is shared; `jitter` is
    the relative standard deviation of a step's time.
    """

    blocks: tuple
    optimizer: float = 0.0
    state_bytes: float = 2.0
    copy: float = 8e9
    hook: float = 20e-6
    jitter: float = 0.0

    @property
    def parameters(self):
        return sum(block.parameters for block in self.blocks)

    @property
    def step(self):
        """Seconds of a step on one process alone."""
        return sum(block.forward + block.backward for block in self.blocks) + self.optimizer

    def scaled(self, speed=1.0, batch=1.0):
        """The same on a processor `speed` times as fast, for a batch `batch` times as large."""
        blocks = tuple(
            replace(
                b,
                forward=b.forward * batch / speed,
                backward=b.backward * batch / speed,
                saved=b.saved * batch,
                output=b.output * batch,
            )
            for b in self.blocks
        )
        copy, optimizer = self.copy * speed, self.optimizer / speed
        return replace(self, blocks=blocks, optimizer=optimizer, copy=copy, hook=self.hook / speed)


def _blocks_of(model, prefix=""):
    """The parts to measure: children, with containers opened."""
    found = []
    for name, child in model.named_children():
        opened = isinstance(child, (Sequential, ModuleList))
        found += _blocks_of(child, f"{prefix}{name}.") if opened else [(prefix + name, child)]
    return found


def _nbytes(value):
    return sum(t.nbytes for t in tree_leaves(value) if isinstance(t, torch.Tensor))


def _fresh(value):
    """Tensors as a block gets them: results of another one."""

    def detached(t):
        return t.detach().requires_grad_(t.is_floating_point()) if isinstance(t, torch.Tensor) else t

    return tree_map(detached, value)


def _seconds(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times


class _Recorder:
    """Notes the arguments and results with which blocks run."""

    def __init__(self, blocks):
        self.calls, self._names = [], {module: name for name, module in blocks}
        self._handles = [m.register_forward_hook(self._note, with_kwargs=True) for m in self._names]

    def _note(self, module, args, kwargs, output):
        self.calls.append((self._names[module], module, _fresh(args), _fresh(kwargs), output))

    def remove(self):
        for handle in self._handles:
            handle.remove()


def _measured(name, module, args, kwargs, output, repeats):
    saved: dict = {}

    def pack(t):
        saved[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        module(*args, **kwargs)
    own = {p.untyped_storage().data_ptr() for p in module.parameters()}
    forward, backward = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        result = module(*args, **kwargs)
        forward.append(time.perf_counter() - start)
        pairs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
        gradients = [torch.ones_like(t) for t in pairs]
        start = time.perf_counter()
        if pairs:
            torch.autograd.backward(pairs, gradients)
        backward.append(time.perf_counter() - start)
        for t in (*module.parameters(), *tree_leaves((args, kwargs))):
            if isinstance(t, torch.Tensor):
                t.grad = None
    return Block(
        name,
        median(forward),
        median(backward),
        sum(p.nbytes for p in module.parameters()),
        sum(size for place, size in saved.items() if place not in own),
        _nbytes(output),
        sum(1 for _ in module.parameters()),
    )


def measure(model, args, optimizer=None, loss=None, repeats=5):
    """The Cost of `loss(model(*args))`, forward and back, and of the optimizer's step, on this process.

    Blocks are the model's children, containers opened, as they run. What the model does between them is
    spread over them. Parameters keep their values and gradients are cleared.
    """
    loss = loss or (lambda output: sum(t.float().sum() for t in tree_leaves(output) if t.requires_grad))
    recorder = _Recorder(_blocks_of(model))
    try:
        model(*args)
    finally:
        recorder.remove()
    if not recorder.calls:
        recorder.calls.append(("model", model, _fresh(args), {}, model(*args)))
    blocks = [_measured(*call, repeats) for call in recorder.calls]
    forward, backward = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        value = loss(model(*args))
        forward.append(time.perf_counter() - start)
        start = time.perf_counter()
        value.backward()
        backward.append(time.perf_counter() - start)
        if _ < repeats - 1:
            model.zero_grad()
    whole = median(forward), median(backward)
    parts = sum(b.forward for b in blocks), sum(b.backward for b in blocks)
    blocks = [
        replace(b, forward=b.forward * whole[0] / parts[0], backward=b.backward * whole[1] / parts[1])
        for b in blocks
    ]
    cost = Cost(tuple(blocks), jitter=_spread([f + b for f, b in zip(forward, backward)]), copy=_copy_rate())
    if optimizer is not None:
        cost = replace(cost, **_of_optimizer(model, optimizer, repeats))
    model.zero_grad()
    return cost


def _spread(times):
    """A robust relative standard deviation."""
    middle = median(times)
    return 1.48 * median(abs(t - middle) for t in times) / middle


def _of_optimizer(model, optimizer, repeats):
    before = {p: p.detach().clone() for p in model.parameters()}
    optimizer.step()
    seconds = median(_seconds(optimizer.step, repeats))
    states = sum(_nbytes(state) for state in optimizer.state.values())
    with torch.no_grad():
        for p, value in before.items():
            p.copy_(value)
    return {"optimizer": seconds, "state_bytes": states / max(sum(p.nbytes for p in before), 1)}


def _copy_rate():
    """Of memory that no cache holds, as gradients are."""
    source = torch.ones(1 << 24)
    target = source.clone()
    return source.nbytes / median(_seconds(lambda: target.copy_(source), 5))
