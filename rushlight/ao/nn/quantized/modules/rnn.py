"""LSTM of integers, step by step."""

from rushlight.ao.nn import quantizable

__all__ = ["LSTM"]


class LSTM(quantizable.LSTM):
    """An LSTM whose linear layers and products are of integers."""

    _FLOAT_MODULE = quantizable.LSTM

    def _get_name(self):
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args, **kwargs):
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. "
            "Please, see the examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other):
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"other must be an instance of {cls._FLOAT_MODULE}, got {type(other)}")
        from rushlight.ao import quantization

        made = quantization.convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        return made
