"""Observers that compute nothing: they mark a place, keep what passes, or know their scale ahead."""

import rushlight
from rushlight.jit._decorations import export

from ._base import ObserverBase


def _no_qparams(self):
    raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")


class FixedQParamsObserver(ObserverBase):
    """Of functions whose range is known: the scale and the zero point are given."""

    scale: rushlight.Tensor
    zero_point: rushlight.Tensor

    def __init__(
        self,
        scale,
        zero_point,
        dtype=None,
        qscheme=None,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **kwargs,
    ):
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=rushlight.quint8 if dtype is None else dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", rushlight.tensor([scale], dtype=rushlight.float))
        self.register_buffer("zero_point", rushlight.tensor([zero_point], dtype=rushlight.int))
        self.qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme

    def forward(self, X):
        return X

    @export
    def calculate_qparams(self):
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Only carries a configuration: of numbers that are cast, or whose scale is found at each call."""

    def __init__(
        self,
        dtype=rushlight.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = rushlight.finfo(rushlight.float32).eps if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            # The older way to say that scales are found at each call.
            import warnings

            is_dynamic = True
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`. \
                    `compute_dtype` will be deprecated in a future release \
                    of PyTorch.",
                stacklevel=2,
            )

    def forward(self, x):
        return x

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    calculate_qparams = _no_qparams


class RecordingObserver(ObserverBase):
    """Keeps a copy of everything that passes, to be looked at."""

    tensor_val: list[rushlight.Tensor]

    def __init__(self, dtype=None):
        super().__init__(dtype=rushlight.quint8 if dtype is None else dtype)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    calculate_qparams = _no_qparams

    @export
    def get_tensor_value(self):
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Watches nothing; tells only the dtype."""

    def __init__(self, dtype=rushlight.float16, custom_op_name=""):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.dtype = dtype
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    calculate_qparams = _no_qparams


class ReuseInputObserver(ObserverBase):
    """Marks a result that has its operand's scale, like that of a reshape."""

    def __init__(self):
        super().__init__(rushlight.quint8, is_dynamic=False)

    def forward(self, x):
        return x

    calculate_qparams = _no_qparams
