"""What engines compute with integers: the patterns and dtypes of their configurations."""

import rushlight
from rushlight.ao.quantization import backend_config, quantize_fx


def _name(pattern):
    if isinstance(pattern, tuple):
        return tuple(map(_name, pattern))
    return getattr(pattern, "__name__", pattern)


def _said(config):
    """Patterns with their dtypes, without the library's names."""
    return sorted(
        str(
            (
                _name(entry.pattern),
                entry.observation_type.name,
                [
                    (str(d.input_dtype), str(d.output_dtype), str(d.weight_dtype), bool(d.is_dynamic))
                    for d in entry.dtype_configs
                ],
                _name(entry.qat_module),
                _name(entry.fused_module),
                entry._input_type_to_index,
                {count: kind.name for count, kind in entry._num_tensor_args_to_observation_type.items()},
            )
        )
        for entry in config.configs
    )


def test_executorch_is_pytorchs(torch):
    from torch.ao.quantization import quantize_fx  # noqa: F401 (PyTorch's configurations need it)
    from torch.ao.quantization.backend_config import get_executorch_backend_config

    assert _said(backend_config.get_executorch_backend_config()) == _said(get_executorch_backend_config())


def test_a_model_is_prepared_for_executorch():
    model = rushlight.nn.Sequential(rushlight.nn.Conv2d(3, 4, 3), rushlight.nn.ReLU(), rushlight.nn.Flatten())
    x = rushlight.randn(1, 3, 5, 5)
    mapping = rushlight.ao.quantization.get_default_qconfig_mapping("qnnpack")
    engine = backend_config.get_executorch_backend_config()
    prepared = quantize_fx.prepare_fx(model.eval(), mapping, (x,), backend_config=engine)
    expected = prepared(x)
    found = quantize_fx.convert_fx(prepared, backend_config=engine)(x)
    assert (found - expected).abs().max() < 0.1
