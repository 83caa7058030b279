"""The samples that PyTorch's own tests make of its operators (`op_db`), as values of Rushlight."""

import collections
import functools
import itertools

SAMPLES = 24  # of an operator and dtype, spread over all there are
DTYPES = ("float32", "float64", "int64", "complex64", "bool", "bfloat16", "uint8", "float16", "int32")


@functools.cache
def database():
    from torch.testing._internal.common_methods_invocations import op_db

    named = collections.defaultdict(list)
    for op in op_db:
        named[op.name].append(op)
    return named


class Translator:
    """PyTorch's values as Rushlight's; tensors keep strides, offset, conjugation and need of gradients."""

    def __init__(self, rl, oracle):
        self.rl, self.oracle = rl, oracle
        names = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float32 float64 complex64 complex128"
        self.known = {getattr(oracle, name) for name in names.split()}

    def plain(self, t):
        if t.dtype in (self.oracle.bfloat16, self.oracle.float16):
            return self.rl.from_numpy(t.float().numpy().copy()).to(getattr(self.rl, str(t.dtype)[6:]))
        if t.dtype == self.oracle.complex32:
            return self.rl.from_numpy(t.to(self.oracle.complex64).numpy().copy()).to(self.rl.complex32)
        if t.dtype not in self.known:
            raise LookupError(f"samples of {t.dtype} are not translated")
        return self.rl.from_numpy(t.numpy().copy())

    def tensor(self, t):
        needs, base = t.requires_grad, t.detach()
        if base.layout != self.oracle.strided:
            raise LookupError(f"samples of layout {base.layout} are not translated")
        conj, neg = base.is_conj(), base.is_neg()
        base = base.resolve_conj().resolve_neg()
        if base.is_contiguous() or base.numel() == 0:
            result = self.plain(base.contiguous())
        else:
            extent = 1 + sum((n - 1) * s for n, s in zip(base.shape, base.stride()))
            flat = base.as_strided((extent,), (1,)).clone()
            result = self.plain(flat).as_strided(tuple(base.shape), base.stride())
        result = result.neg()._neg_view() if neg and hasattr(result, "_neg_view") else result
        result = result.conj().resolve_conj().conj() if conj else result
        return result.detach().requires_grad_() if needs else result

    def value(self, v):
        oracle, rl = self.oracle, self.rl
        if isinstance(v, oracle.Tensor):
            return self.tensor(v)
        if isinstance(v, oracle.Size):
            return rl.Size(v)
        if type(v) in (list, tuple):
            return type(v)(self.value(e) for e in v)
        if isinstance(v, dict):
            return {k: self.value(e) for k, e in v.items()}
        if isinstance(v, slice):
            return slice(*map(self.value, (v.start, v.stop, v.step)))
        if isinstance(v, (oracle.dtype, oracle.layout, oracle.memory_format)):
            return getattr(rl, str(v)[6:])
        if isinstance(v, oracle.device):
            return rl.device(str(v))
        if isinstance(v, oracle.Generator):
            return rl.Generator()
        if getattr(type(v), "__module__", "").startswith("torch"):
            raise LookupError(f"samples with a {type(v).__name__} are not translated")
        return v


def functions(rl, name):
    """What Rushlight has under the operator's name: (text, function)."""
    found, at = [], rl
    for part in name.split("."):
        at = getattr(at, part, None)
    if callable(at):
        found.append((name, at))
    short = name.rsplit(".", 1)[-1]
    for method in dict.fromkeys((short, short + "_")):
        if callable(getattr(rl.Tensor, method, None)) and not name.startswith("nn."):
            found.append((f"Tensor.{method}", getattr(rl.Tensor, method)))
    return found


def samples_of(name, dtype, most):
    """The oracle's samples, spread over those it makes first; no dtype that an operator lacks."""
    import torch

    found = []
    for op in database()[name]:
        kind = getattr(torch, dtype)
        if kind not in op.dtypes:
            continue
        torch.manual_seed(0)
        needs = kind.is_floating_point or kind.is_complex
        try:
            made = op.sample_inputs("cpu", kind, requires_grad=needs and op.supports_autograd)
            all_samples = list(itertools.islice(made, most))
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, AssertionError, KeyError):
            continue  # the generators of some operators know a few dtypes only
        found += [s for s in all_samples if sum(t.numel() for t in tensors_in(s, torch)) < 1 << 14]
    step = max(1, len(found) // SAMPLES)
    return found[::step][:SAMPLES]


def tensors_in(sample, torch):
    return [v for v in (sample.input, *sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]
