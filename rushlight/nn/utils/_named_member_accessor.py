"""Reading and replacing a module's tensors by dotted names, as packages that rebuild modules do."""

import rushlight as torch

_MISSING = object()


def _find(module, name, tensor_only=True):
    """Where a tensor is kept and what it is: (table or None for a plain attribute, value)."""
    for table in (module._parameters, module._buffers):
        if name in table:
            return table, table[name]
    value = getattr(module, name, _MISSING)
    if tensor_only and value is not _MISSING and not isinstance(value, torch.Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    return None, value


def _put(module, name, table, tensor):
    if table is not None:
        table[name] = tensor
    elif tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)


def set_tensor(module, name, tensor):
    """Put a tensor in the place of the parameter, buffer or attribute `name`."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module, name, tensor, allow_missing=False):
    """Do so and return what was there; ``allow_missing`` lets nothing be there."""
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    table, before = _find(module, name)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    _put(module, name, table, tensor)
    return before


def swap_submodule(module, name, submodule):
    """Put a module in the place of the child `name` and return that."""
    for value in (module, submodule):
        if not isinstance(value, torch.nn.Module):
            raise TypeError(f"{value} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before, module._modules[name] = module._modules[name], submodule
    return before


class NamedMemberAccessor:
    """Tensors and modules below a module, by dotted name."""

    def __init__(self, module):
        self.module = module

    def _split(self, name):
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def get_submodule(self, name):
        return self.module.get_submodule(name)

    def swap_submodule(self, path, value):
        return swap_submodule(*self._split(path), value)

    def get_tensor(self, name):
        owner, last = self._split(name)
        _, value = _find(owner, last)
        if value is _MISSING:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        return value

    def set_tensor(self, name, value):
        set_tensor(*self._split(name), value)

    def del_tensor(self, name):
        owner, last = self._split(name)
        table, value = _find(owner, last)
        if value is _MISSING:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        if table is None:
            delattr(owner, last)
        else:
            del table[last]

    def swap_tensor(self, name, value, allow_missing=False):
        return swap_tensor(*self._split(name), value, allow_missing=allow_missing)

    def get_tensors(self, names):
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        self.set_tensors(named_tensors, named_tensors.values())

    def del_tensors(self, names):
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names, values, allow_missing=False):
        return [self.swap_tensor(n, v, allow_missing) for n, v in zip(names, values, strict=True)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """The tensors that were there, by name, and the names where none was; all or nothing is swapped."""
        before, missing = {}, []
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys):
        """Which of the names the module lacks, and which of its own are not among them."""
        known = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(known - set(keys)), sorted(set(keys) - known)

    def named_parameters(self, remove_duplicate=True):
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
