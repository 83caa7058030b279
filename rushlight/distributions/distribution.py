"""The base of all distributions."""

import warnings
from collections.abc import Sequence
from typing import ClassVar

import rushlight as torch
from rushlight._errors.advice import advised
from rushlight.distributions import constraints
from rushlight.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions: shape of a sample = ``sample_shape + batch_shape + event_shape``.

    A subclass names its parameters in `arg_constraints` and its values in `support`. Where parameters are
    checked
    (`validate_args`; on by default, off under ``python -O``), a bad one raises ``ValueError`` that names it.

    Args:
        batch_shape (Size): the shape of parameters, one distribution for each element.
        event_shape (Size): the shape of one draw.
        validate_args (bool or None): whether parameters and values are checked.

    Example:
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # Tensors that `expand` broadcasts, with the number of event dimensions each has on its right.
    _expanded: ClassVar[dict[str, int]] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switches argument checks on or off for all distributions made from now on."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expects True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=torch.Size(), event_shape=torch.Size(), validate_args=None):
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. "
                "Please set `arg_constraints = {}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # checking it would compute it
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise advised(
                    ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                        f"of distribution {self!r} to satisfy the constraint {constraint!r}, but found "
                        f"invalid values:\n{value}"
                    )
                )

    def expand(self, batch_shape, _instance=None):
        """The same distributions with `batch_shape` broadcast; parameters become views, nothing is copied."""
        new = self._new_for_expand(_instance)
        batch_shape = torch.Size(batch_shape)
        for name, event_dims in self._expanded.items():
            if name not in self.__dict__:
                continue
            value = self.__dict__[name]
            new.__dict__[name] = value.expand(batch_shape + value.shape[value.dim() - event_dims :])
        self._copy_expanded(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _copy_expanded(self, new, batch_shape):
        """What `expand` copies beyond `_expanded`: inner distributions and plain attributes."""

    @property
    def batch_shape(self):
        """The shape over which parameters are batched.

        Example:
            >>> torch.distributions.Normal(torch.zeros(3), 1.0).batch_shape
            torch.Size([3])
        """
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Constraints on the parameters, by name."""
        raise NotImplementedError(f"{type(self).__name__} does not define arg_constraints")

    @property
    def support(self):
        """The constraint that every sample satisfies."""
        raise NotImplementedError(f"{type(self).__name__} does not define support")

    @property
    def mean(self):
        """The mean, of shape ``batch_shape + event_shape``.

        Example:
            >>> torch.distributions.Normal(2.0, 1.0).mean
            tensor(2.)
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement mean")

    @property
    def mode(self):
        """The most probable value, of shape ``batch_shape + event_shape``.

        Example:
            >>> torch.distributions.Normal(2.0, 1.0).mode
            tensor(2.)
        """
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance, of shape ``batch_shape + event_shape``.

        Example:
            >>> torch.distributions.Normal(0.0, 2.0).variance
            tensor(4.)
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement variance")

    @property
    def stddev(self):
        """The standard deviation, of shape ``batch_shape + event_shape``."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = torch.Size()):
        """Draws without a gradient: a tensor of shape ``sample_shape + batch_shape + event_shape``.

        Args:
            sample_shape (sequence of int): how many draws.

        Shape: (*sample_shape, *batch_shape, *event_shape).

        Example:
            >>> torch.distributions.Normal(0.0, 1.0).sample((4,)).shape
            torch.Size([4])
        """
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = torch.Size()):
        """Draws so that gradients flow to the parameters (the reparameterisation trick)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement rsample")

    def sample_n(self, n: int):
        """Deprecated: ``sample((n,))``."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(torch.Size((n,)))

    def log_prob(self, value):
        """The log of the density or mass at `value`; shape ``broadcast(value's batch, batch_shape)``.

        Args:
            value (Tensor): what was drawn.

        Example:
            >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
            tensor(-0.9189)
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement log_prob")

    def cdf(self, value):
        """The probability of at most `value`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement cdf")

    def icdf(self, value):
        """The quantile: inverse of `cdf`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement icdf")

    def enumerate_support(self, expand: bool = True):
        """All values of a discrete distribution along dimension 0; batch dimensions are 1 unless `expand`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_support")

    def entropy(self):
        """The entropy in nats, of shape ``batch_shape``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement entropy")

    def perplexity(self):
        """``exp(entropy())``."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int] = torch.Size()):
        return torch.Size(sample_shape) + torch.Size(self._batch_shape) + torch.Size(self._event_shape)

    def _validate_sample(self, value):
        """Raises ``ValueError`` unless `value` is a tensor that fits the shapes and lies in the support."""
        if not torch.is_tensor(value):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first_event = value.dim() - len(self._event_shape)
        if value.size()[first_event:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.size()), reversed(expected)):  # noqa: B905 - broadcasting
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}."
                )
        self._check_support(value)

    def _check_support(self, value):
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable "
                "sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                "Expected value argument "
                f"({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) "
                f"of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _new_for_expand(self, _instance=None):
        # Who declares `_expanded` knows how it expands; a subclass with an __init__ of its own may not.
        owner = next(c for c in type(self).__mro__ if "_expanded" in c.__dict__)
        return self._get_checked_instance(owner, _instance)

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} "
                "that defines a custom __init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self):
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__[name]) for name in names)
        )
        return f"{self.__class__.__name__}({', '.join(shown)})"
