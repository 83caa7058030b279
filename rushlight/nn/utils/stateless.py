"""Calling a module with other tensors in the place of its own."""

import contextlib
import sys

import rushlight as torch

__all__ = ["functional_call"]

__capture__ = "traced"  # Note [Capture marks]


def _tied_names(module):
    """For each name of a parameter or buffer, all names of the same tensor."""
    names = {}
    for name, tensor in _named_tensors(module):
        names.setdefault(id(tensor), set()).add(name)
    return {name: group for group in names.values() for name in group}


def _named_tensors(module):
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _with_ties(module, tensors):
    """tensors under all names that their originals have; two values for one original are refused."""
    tied = _tied_names(module)
    extended = dict(tensors)
    for name, tensor in tensors.items():
        for other in tied.get(name, ()):
            if extended.setdefault(other, tensor) is not tensor:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(tied[name])}, which are tied. "
                    "Consider using tie_weights=False"
                )
    return extended


def _check_names(module, tensors):
    known = {name for name, _ in _named_tensors(module)}
    unexpected = sorted(set(tensors) - known)
    missing = sorted(known - set(tensors))
    problems = []
    for kind, names in (("Unexpected", unexpected), ("Missing", missing)):
        if names:
            problems.append(f"{kind} key(s): " + ", ".join(repr(n) for n in names) + ".")
    if problems:
        listed = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{listed}")


def _swap(module, path, tensor):
    """Put tensor in the place of what path names; returns what undoes that, and the table that holds it."""
    prefix, _, name = path.rpartition(".")
    owner = module.get_submodule(prefix)
    if not isinstance(tensor, torch.Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before, table[name] = table[name], tensor
            return table.__setitem__, (name, before), table
    if not hasattr(owner, name):
        # A name of nothing in the module is one for the call alone: a parameter's is a parameter's.
        setattr(owner, name, tensor)
        return delattr, (owner, name), None
    before = getattr(owner, name)
    if not isinstance(before, torch.Tensor):
        raise TypeError(f"attribute `{path}`: {before} is not an instance of torch.Tensor")
    object.__setattr__(owner, name, tensor)
    return object.__setattr__, (owner, name, before), None


@contextlib.contextmanager
def _reparametrize_module(module, tensors, tie_weights=False, strict=False):
    given = tensors
    if tie_weights:
        tensors = _with_ties(module, tensors)
    if strict:
        _check_names(module, tensors)
    undo = []
    try:
        for path, tensor in tensors.items():
            undo.append((path, *_swap(module, path, tensor)))
        yield
    finally:
        for path, restore, args, table in reversed(undo):
            if table is not None and path in given:  # what the module assigned anew goes to the caller
                given[path] = table.get(args[0], given[path])
            restore(*args)


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    scripted = sys.modules.get("rushlight.jit._script")  # not loaded: there is no such module
    if scripted is not None and isinstance(module, scripted.ScriptModule):
        raise RuntimeError("Stateless API can't be used with Jitted modules")
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """The old name of `torch.func.functional_call`."""
    import warnings

    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a "
        "future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
