"""What layers with rounded weights share: the module that rounds, and the layer that they are made from."""

__all__ = ["check_source", "round_weights"]


def round_weights(layer, qconfig, device=None, dtype=None):
    """Give a layer the module that its qconfig rounds weights with."""
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    layer.qconfig = qconfig
    made = {} if device is None and dtype is None else {"factory_kwargs": {"device": device, "dtype": dtype}}
    layer.weight_fake_quant = qconfig.weight(**made)


def check_source(cls, mod, kind=None):
    """Raise unless `mod`, of class `kind`, is a float layer for `cls` that has a qconfig."""
    if (kind or type(mod)) is not cls._FLOAT_MODULE:
        raise AssertionError(
            f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got "
            f"{type(mod).__name__}"
        )
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
