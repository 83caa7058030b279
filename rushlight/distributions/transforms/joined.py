"""Different transforms for different parts of a tensor."""

import functools

import rushlight as torch
from rushlight._command.names import show_public_from
from rushlight.distributions import constraints
from rushlight.distributions.transforms.base import Transform
from rushlight.distributions.utils import _sum_rightmost


class _JoinedTransform(Transform):
    """Transforms on slices of a tensor along `dim`."""

    def __init__(self, tseq, dim=0, cache_size=0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise TypeError("tseq must contain Transforms only")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def _check_dim(self, x):
        if not -x.dim() <= self.dim < x.dim():
            raise ValueError(f"dim {self.dim} is out of range for a tensor of shape {tuple(x.shape)}")

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)


class CatTransform(_JoinedTransform):
    """Transforms of pieces of the given lengths along `dim`."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"cat: {len(self.transforms)} transforms but {len(self.lengths)} lengths")

    @functools.cached_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @functools.cached_property
    def length(self):
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x):
        self._check_dim(x)
        if x.size(self.dim) != self.length:
            raise ValueError(f"expected size {self.length} along dim {self.dim}, got shape {tuple(x.shape)}")
        start = 0
        for transform, length in zip(self.transforms, self.lengths, strict=True):
            yield transform, x.narrow(self.dim, start, length)
            start += length

    def _call(self, x):
        return torch.cat([t(piece) for t, piece in self._pieces(x)], dim=self.dim)

    def _inverse(self, y):
        return torch.cat([t.inv(piece) for t, piece in self._pieces(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for (t, xs), (_, ys) in zip(self._pieces(x), self._pieces(y), strict=True):
            term = t.log_abs_det_jacobian(xs, ys)
            terms.append(
                _sum_rightmost(term, self.event_dim - t.event_dim) if t.event_dim < self.event_dim else term
            )
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torch.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_JoinedTransform):
    """One transform for every index along `dim`."""

    def with_cache(self, cache_size=1):
        return (
            self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)
        )

    def _slices(self, x):
        self._check_dim(x)
        if x.size(self.dim) != len(self.transforms):
            raise ValueError(
                f"expected {len(self.transforms)} slices along dim {self.dim}, got {tuple(x.shape)}"
            )
        return [x.select(self.dim, i) for i in range(x.size(self.dim))]

    def _call(self, x):
        return torch.stack([t(v) for v, t in zip(self._slices(x), self.transforms, strict=True)], self.dim)

    def _inverse(self, y):
        return torch.stack(
            [t.inv(v) for v, t in zip(self._slices(y), self.transforms, strict=True)], self.dim
        )

    def log_abs_det_jacobian(self, x, y):
        slices = zip(self._slices(x), self._slices(y), self.transforms, strict=True)
        return torch.stack([t.log_abs_det_jacobian(a, b) for a, b, t in slices], dim=self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


show_public_from("distributions.transforms", globals())
