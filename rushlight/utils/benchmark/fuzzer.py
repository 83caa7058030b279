"""Random sizes, layouts and tensors to measure statements on."""

import math
import random

import rushlight

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]


class ParameterAlias:
    """A parameter that takes another one's value."""

    def __init__(self, alias_to):
        self.alias_to = alias_to

    def __repr__(self):
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number between two bounds, or a value out of several.

    Args:
        distribution: ``"uniform"``, ``"loguniform"``, or a dict from values to their probabilities.
        strict: whether a value may be replaced by one that other parameters ask for.
    """

    def __init__(self, name, minval=None, maxval=None, distribution=None, strict=False):
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if distribution is None:
            raise AssertionError("FuzzedParameter: a distribution is needed")
        if isinstance(distribution, dict):
            if abs(sum(distribution.values()) - 1) > 1e-3 or any(p < 0 for p in distribution.values()):
                raise AssertionError("Distribution is not normalized")
        elif distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        self._distribution = distribution

    @property
    def name(self):
        return self._name

    def sample(self, state):
        if isinstance(self._distribution, dict):
            values, weights = zip(*self._distribution.items())
            return state.choices(values, weights)[0]
        low, high = self._minval, self._maxval
        if self._distribution == "loguniform":
            value = math.exp(state.uniform(math.log(low), math.log(high)))
            return int(min(max(round(value), low), high))
        integral = isinstance(low, int) and isinstance(high, int)
        return state.randint(low, high) if integral else state.uniform(low, high)


class FuzzedTensor:
    """A tensor whose size names parameters.

    Args:
        size, steps: for each dimension a number or the name of a parameter.
        probability_contiguous: how often the dimensions lie in their own order in memory.
        dim_parameter: the parameter that says how many of the dimensions there are.
        tensor_constructor: a function of size, dtype and the parameters.
    """

    def __init__(
        self,
        name,
        size,
        steps=None,
        probability_contiguous=0.5,
        min_elements=None,
        max_elements=None,
        max_allocation_bytes=None,
        dim_parameter=None,
        roll_parameter=None,
        dtype=rushlight.float32,
        cuda=False,
        tensor_constructor=None,
    ):
        if cuda:
            raise RuntimeError("FuzzedTensor: this build has no CUDA")
        self._name, self._size, self._steps = name, size, steps
        self._contiguous = probability_contiguous
        self._least, self._most, self._most_bytes = min_elements, max_elements, max_allocation_bytes
        self._dim_parameter, self._dtype = dim_parameter, dtype
        self._make = tensor_constructor or self.default_tensor_constructor

    @property
    def name(self):
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        if dtype.is_floating_point or dtype.is_complex:
            return rushlight.rand(size=size, dtype=dtype)
        return rushlight.randint(0, 2 if dtype == rushlight.bool else 127, size=size).to(dtype)

    def _size_and_steps(self, params):
        dim = params[self._dim_parameter] if self._dim_parameter else len(self._size)

        def resolve(values):
            values = tuple(values or ())[:dim]
            found = [params[v] if isinstance(v, str) else v for v in values]
            return tuple(found + [1] * (dim - len(found)))

        return resolve(self._size), resolve(self._steps)

    def satisfies_constraints(self, params):
        size, steps = self._size_and_steps(params)
        allocated = math.prod(n * step for n, step in zip(size, steps))
        count = math.prod(size)
        too_few = self._least is not None and count < self._least
        too_many = self._most is not None and count > self._most
        too_large = self._most_bytes is not None and allocated * self._dtype.itemsize > self._most_bytes
        return not (too_few or too_many or too_large)

    def _make_tensor(self, params, state):
        size, steps = self._size_and_steps(params)
        order = list(range(len(size)))
        if len(size) > 1 and state.random() > self._contiguous:
            state.shuffle(order)
        raw = self._make(size=[size[d] * steps[d] for d in order], dtype=self._dtype, **params)
        tensor = raw.permute(*sorted(order, key=order.__getitem__)) if size else raw
        tensor = tensor[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        return tensor, {
            "numel": tensor.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters, and tensors made from them, until all constraints hold.

    >>> for tensors, tensor_params, params in Fuzzer(parameters, tensors, seed=0).take(10):
    ...     measure(**tensors)
    """

    def __init__(self, parameters, tensors, constraints=None, seed=None):
        self._parameters = self._unpack(parameters, FuzzedParameter)
        self._tensors = self._unpack(tensors, FuzzedTensor)
        self._constraints = tuple(constraints or ())
        self._seed = random.SystemRandom().randrange(2**32) if seed is None else seed
        names = [p.name for p in self._parameters]
        repeated = {name for name in names if names.count(name) > 1} | set(names) & {
            t.name for t in self._tensors
        }
        if repeated:
            raise ValueError(f"Duplicate names: {sorted(repeated)}")
        self._drawn = self._rejected = 0

    @staticmethod
    def _unpack(values, kinds):
        """The values, of which some may be lists."""
        flat = []
        for value in values:
            flat.extend(value if isinstance(value, (list, tuple)) else [value])
        if not all(isinstance(value, kinds) for value in flat):
            raise TypeError(f"Fuzzer: unexpected {next(v for v in flat if not isinstance(v, kinds))!r}")
        return flat

    def take(self, n):
        """n triples: tensors by name, what is known of each, and the parameters."""
        state = random.Random(self._seed)
        for _ in range(n):
            params = self._draw(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield (
                {name: tensor for name, (tensor, _) in made.items()},
                {name: facts for name, (_, facts) in made.items()},
                params,
            )

    @property
    def rejection_rate(self):
        """The part of the draws that did not meet the constraints."""
        return self._rejected / self._drawn if self._drawn else 0.0

    def _draw(self, state, most=1000):
        for _ in range(most):
            params = {p.name: p.sample(state) for p in self._parameters}
            for name, value in params.items():
                if isinstance(value, ParameterAlias):
                    params[name] = params[value.alias_to]
            self._drawn += 1
            if all(t.satisfies_constraints(params) for t in self._tensors) and all(
                constraint(**params) for constraint in self._constraints
            ):
                return params
            self._rejected += 1
        raise ValueError("Fuzzer: no draw met the constraints")
