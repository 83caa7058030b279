"""A configuration's tables by pattern and by class."""

__all__ = [
    "entry_to_pretty_str",
    "get_fused_module_classes",
    "get_fuser_method_mapping",
    "get_fusion_pattern_to_extra_inputs_getter",
    "get_fusion_pattern_to_root_node_getter",
    "get_module_to_qat_module",
    "get_pattern_to_dtype_configs",
    "get_pattern_to_input_type_to_index",
    "get_qat_module_classes",
    "get_root_module_to_quantized_reference_module",
    "pattern_to_human_readable",
    "remove_boolean_dispatch_from_name",
]


def _get_pattern_in_reversed_nested_tuple_format(config):
    """The pattern as nested pairs from its last operator on: (c, (b, a)) for calls a, b, c."""
    if config._pattern_complex_format is not None:
        return config._pattern_complex_format
    pattern = config.pattern
    if pattern is None:
        raise ValueError("Either 'pattern' or 'pattern_complex_format' must be specified")
    if not isinstance(pattern, tuple):
        return pattern
    if len(pattern) == 2:
        return (pattern[1], pattern[0])
    if len(pattern) == 3:
        a, b, c = pattern
        return (c, (b, a))
    raise ValueError("Expected a tuple with 2 or 3 elements, got: ", pattern)


def _items(backend_config):
    return backend_config._pattern_complex_format_to_config.items()


def get_pattern_to_dtype_configs(backend_config):
    return {pattern: config.dtype_configs for pattern, config in _items(backend_config)}


def get_qat_module_classes(backend_config):
    return tuple({config.qat_module for config in backend_config.configs if config.qat_module is not None})


def get_fused_module_classes(backend_config):
    return tuple(
        {config.fused_module for config in backend_config.configs if config.fused_module is not None}
    )


def get_pattern_to_input_type_to_index(backend_config):
    return {pattern: config._input_type_to_index for pattern, config in _items(backend_config)}


def get_root_module_to_quantized_reference_module(backend_config):
    return {
        config.root_module: config.reference_quantized_module
        for config in backend_config.configs
        if config.root_module is not None and config.reference_quantized_module is not None
    }


def get_fuser_method_mapping(backend_config):
    return {pattern: config.fuser_method for pattern, config in _items(backend_config) if config.fuser_method}


def get_module_to_qat_module(backend_config):
    return {pattern: config.qat_module for pattern, config in _items(backend_config) if config.qat_module}


def get_fusion_pattern_to_root_node_getter(backend_config):
    return {
        pattern: config._root_node_getter
        for pattern, config in _items(backend_config)
        if config._root_node_getter
    }


def get_fusion_pattern_to_extra_inputs_getter(backend_config):
    return {
        pattern: config._extra_inputs_getter
        for pattern, config in _items(backend_config)
        if config._extra_inputs_getter
    }


def remove_boolean_dispatch_from_name(p):
    """The name of a function that stands for two, as programs write it."""
    name = getattr(p, "__name__", None)
    if name == "fn" and getattr(p, "__qualname__", "").startswith("boolean_dispatch"):
        return f"torch.nn.functional.{p.__doc__}"
    return p


def pattern_to_human_readable(p):
    if isinstance(p, tuple):
        return tuple(pattern_to_human_readable(part) for part in p)
    return p if isinstance(p, str) else remove_boolean_dispatch_from_name(p)


def entry_to_pretty_str(entry):
    """A pattern's entry of a dictionary as lines."""
    lines = ["{"]
    for key, value in entry.items():
        shown = pattern_to_human_readable(value) if "pattern" in key else value
        lines.append(f"  {key!r}: {shown!r},")
    return "\n".join([*lines, "}"])
