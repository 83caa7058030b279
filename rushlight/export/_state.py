"""Which tensors of exported methods are state: those that some method writes to."""

import rushlight as torch

from ._lower import UnsupportedError


def find_state(lowered, owners):
    """({name: tensor}, {method: {constant: name of the state}}) of {method: (graph, constants)}.

    A tensor is the same in all methods if it is the same memory, whatever it is called there.
    """
    written = {}  # key of a tensor -> (tensor, constant, source)
    for graph, constants in lowered.values():
        for constant, source in graph.written_constants():
            t = constants[constant]
            written.setdefault(_key(t), (t, constant, source))
    names, state = {}, {}
    called = _attributes(owners)
    for key, (t, constant, _) in written.items():
        name = called.get(key, constant)
        while name in state:
            name += "_"
        names[key], state[name] = name, t
    used = {}
    for method, (_, constants) in lowered.items():
        used[method] = {c: names[_key(t)] for c, t in constants.items() if _key(t) in names}
        for constant, t in constants.items():
            if constant not in used[method]:
                _refuse_overlap(constant, t, written.values())
    for t, constant, _ in written.values():
        _refuse_overlap(constant, t, (w for w in written.values() if w[0] is not t))
    return {name: t.detach().contiguous() for name, t in state.items()}, used


def _key(t):
    if not t.nbytes:
        return id(t)
    return t.data_ptr(), t.dtype, tuple(t.shape), t.stride()


def _span(t):
    last = sum((n - 1) * stride for n, stride in zip(t.shape, t.stride()))
    return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()


def _refuse_overlap(constant, t, written):
    if not t.nbytes:
        return
    start, end = _span(t)
    for other, name, source in written:
        first, last = _span(other) if other.nbytes else (0, 0)
        if first < end and start < last:
            where = f"{source}: " if source else ""
            raise UnsupportedError(
                f"rushlight.export.save: {where}the model writes to '{name}', which shares memory with "
                f"'{constant}': keep one tensor and take views of it where they are needed"
            )


def _attributes(owners, depth=5):
    """Names of tensors that modules hold, in containers and plain objects too, such as caches."""
    found, seen = {}, set()

    def visit(value, name, left):
        if isinstance(value, torch.Tensor):
            found.setdefault(_key(value), name)
            return
        if id(value) in seen or left == 0:
            return
        seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            parts = {**value._parameters, **value._buffers, **value._modules}
            parts.update((k, v) for k, v in vars(value).items() if not k.startswith("_"))
            left = depth + 1  # modules nest as deep as they like
        elif isinstance(value, dict):
            parts = {str(k): v for k, v in value.items() if isinstance(k, (str, int))}
        elif isinstance(value, (list, tuple)):
            parts = {str(i): v for i, v in enumerate(value)}
        elif hasattr(value, "__dict__") and not callable(value):
            parts = vars(value)
        else:
            return
        for key, part in parts.items():
            visit(part, f"{name}.{key}" if name else key, left - 1)

    for owner in owners:
        visit(owner, "", depth)
    return found
