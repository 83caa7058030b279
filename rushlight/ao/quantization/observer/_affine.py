"""Words for which numbers share a scale, and the base of observers that are told so."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto

from rushlight.nn import Module

from .. import _late


class MappingType(Enum):
    """Where zero lies among the integers."""

    SYMMETRIC = auto()
    SYMMETRIC_NO_CLIPPING_ERR = auto()
    ASYMMETRIC = auto()


class ZeroPointDomain(Enum):
    """What a zero point is: an integer, a number, or absent."""

    INT = auto()
    FLOAT = auto()
    NONE = auto()


class TorchAODType(Enum):
    """Integers of fewer than eight bits, from the time before they were dtypes."""

    INT1 = auto()
    INT2 = auto()
    INT3 = auto()
    INT4 = auto()
    INT5 = auto()
    INT6 = auto()
    INT7 = auto()


@dataclass(frozen=True)
class Granularity:
    """Which numbers share a scale."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """Those of a block of this size."""

    block_size: tuple


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """Those with the same index on an axis."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """Groups of so many neighbours on the last axis."""

    group_size: int


class PerRow(Granularity):
    """Those of a row."""


class PerToken(Granularity):
    """Those of the last axis: of one token."""


def get_block_size(input_shape, granularity):
    """The size of the blocks of a tensor that share a scale."""
    if not isinstance(granularity, Granularity):
        raise AssertionError("Please provide an instance of Granularity, not subclass of it")
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerAxis):
        size = list(input_shape)
        size[granularity.axis] = 1
        return tuple(size)
    ahead = (1,) * (len(input_shape) - 1)
    if isinstance(granularity, (PerRow, PerToken)):
        return (*ahead, input_shape[-1])
    if isinstance(granularity, PerGroup):
        if input_shape[-1] % granularity.group_size:
            raise AssertionError(
                f"{input_shape[-1]} numbers on the last axis do not divide into groups of "
                f"{granularity.group_size}"
            )
        return (*ahead, granularity.group_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(ABC, Module):
    """Base of observers that programs write for a dtype, a mapping and a granularity."""

    with_args = classmethod(_late._with_args)

    def __init__(
        self,
        mapping_type,
        target_dtype,
        granularity,
        quant_min=None,
        quant_max=None,
        eps=None,
        scale_dtype=None,
        zero_point_dtype=None,
        preserve_zero=True,
        zero_point_domain=ZeroPointDomain.INT,
        **kwargs,
    ):
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type, self.target_dtype, self.granularity = mapping_type, target_dtype, granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        # Known once numbers were seen.
        self.block_size = None
        self.original_dtype = None

    @abstractmethod
    def forward(self, input):
        """Look at numbers and pass them on."""

    @abstractmethod
    def calculate_qparams(self):
        """The scale and the zero point that the numbers seen so far ask for."""
