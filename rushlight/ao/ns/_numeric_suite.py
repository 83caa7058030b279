"""Comparing a model of integers with the model of numbers that it was made from: weights, results, layers."""

import rushlight
from rushlight import nn

__all__ = [
    "Logger",
    "OutputLogger",
    "Shadow",
    "ShadowLogger",
    "compare_model_outputs",
    "compare_model_stub",
    "compare_weights",
    "get_logger_dict",
    "get_matching_activations",
    "prepare_model_outputs",
    "prepare_model_with_stubs",
]


def _find_match(names, key, postfix):
    """The name of `names` that stands where `key` does, if that ends so; wrappers may add one part."""
    parts = key.split(".")
    if parts[-1] != postfix:
        return None
    wanted = ["".join(parts[:-1])]
    if postfix == "_packed_params" and parts[:-2]:
        wanted.append("".join(parts[:-2]))
    for place in wanted:
        for name in names:
            found = name.split(".")
            if place in ("".join(found[:-1]), "".join(found[:-2])):
                return name
    return None


def compare_weights(float_dict, quantized_dict):
    """For each weight of integers, that and the one of numbers, by the former's name.

    Args:
        float_dict: the state of the model of numbers.
        quantized_dict: the state of the model of integers.
    """
    found: dict = {}
    for key, value in quantized_dict.items():
        name = _find_match(float_dict, key, "weight")
        if name is not None:
            found[key] = {"float": float_dict[name], "quantized": value}
            continue
        name = _find_match(float_dict, key, "_packed_params")
        if name is not None:
            found[key] = {"float": float_dict[name], "quantized": value[0]}
        parts = key.split(".")
        if parts[-1] == "param" and len(parts) > 2 and parts[-3] == "_all_weight_values":
            # As in PyTorch, the weight of the state stands for both.
            name = ".".join([*parts[:-3], f"weight_hh_l{parts[-2]}"])
            if name in float_dict:
                packed = value.__getstate__()[0][4][1]
                found[key] = {"float": float_dict[name], "quantized": packed.__getstate__()[0][0]}
    return found


class Logger(nn.Module):
    """Base of modules that note what passes, in ``stats``."""

    def __init__(self):
        super().__init__()
        self.stats = {}
        self.dtype = rushlight.quint8

    def forward(self, x):
        """Note a value."""


class ShadowLogger(Logger):
    """Notes the results of a layer of integers and of its shadow."""

    def __init__(self):
        super().__init__()
        self.stats = {"float": [], "quantized": []}

    def forward(self, x, y):
        for kind, value in (("quantized", x), ("float", y)):
            self.stats[kind].append((value[0] if len(value) > 1 else value).detach())


class OutputLogger(Logger):
    """Notes results."""

    def __init__(self):
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x):
        self.stats["tensor_val"].append(x)
        return x


def _as_lists(value):
    return [_as_lists(part) for part in value] if type(value) is tuple else value


def _numbers(value):
    if type(value) is list:
        return [_numbers(part) for part in value]
    return value.dequantize() if getattr(value, "is_quantized", False) else value


class Shadow(nn.Module):
    """A layer of integers, beside which the layer of numbers runs on the same operands."""

    def __init__(self, q_module, float_module, logger_cls):
        from rushlight.ao.nn.quantized import DeQuantize

        super().__init__()
        self.orig_module, self.shadow_module = q_module, float_module
        self.dequant, self.logger = DeQuantize(), logger_cls()

    def _both(self, name, *operands):
        result = getattr(self.orig_module, name)(*operands)
        self.logger(result, getattr(self.shadow_module, name)(*map(_numbers, operands)))
        return result

    def forward(self, *x):
        return self._both("__call__", *map(_as_lists, x))

    def add(self, x, y):
        return self._both("add", x, y)

    def add_scalar(self, x, y):
        return self._both("add_scalar", x, y)

    def mul(self, x, y):
        return self._both("mul", x, y)

    def mul_scalar(self, x, y):
        return self._both("mul_scalar", x, y)

    def cat(self, x, dim=0):
        return self._both("cat", list(x), dim)

    def add_relu(self, x, y):
        return self._both("add_relu", x, y)


def get_logger_dict(mod, prefix=""):
    """What loggers of a model noted, by the path of the module that they are in."""
    found = {}
    for path, module in mod.named_modules(prefix=prefix):
        for child in module.children():
            if isinstance(child, Logger):
                found[f"{path}.stats" if path else "stats"] = child.stats
                break
    return found


def prepare_model_with_stubs(float_module, q_module, module_swap_list, logger_cls):
    """Put the layers of numbers of these classes beside those of integers, which is done in place."""
    floats = dict(float_module.named_children())
    for name, mod in list(q_module.named_children()):
        plain = floats.get(name)
        if plain is None:
            continue
        if type(plain) not in module_swap_list:
            prepare_model_with_stubs(plain, mod, module_swap_list, logger_cls)
        elif [type(m) for m in mod.modules()] != [type(m) for m in plain.modules()]:
            q_module._modules[name] = Shadow(mod, plain, logger_cls)


def compare_model_stub(float_model, q_model, module_swap_list, *data, logger_cls=ShadowLogger):
    """The results of layers of integers and of numbers on equal operands.

    Args:
        float_model: the model of numbers.
        q_model: the model of integers, which gets the layers of the other beside its own.
        module_swap_list: classes of layers of numbers to compare.
        data: operands of a call.
        logger_cls: what notes results.
    """
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


def get_matching_activations(float_module, q_module):
    """What loggers of two models noted at the same places."""
    floats, found = get_logger_dict(float_module), {}
    for key, stats in get_logger_dict(q_module).items():
        if not stats["tensor_val"]:
            continue
        name = _find_match(sorted(floats, reverse=True), key, "stats")
        if name is not None:
            found[key] = {"float": floats[name]["tensor_val"], "quantized": stats["tensor_val"]}
    return found


def prepare_model_outputs(float_module, q_module, logger_cls=OutputLogger, allow_list=None):
    """Put loggers behind the layers of both models, in place."""
    from rushlight.ao.nn import quantized as nnq
    from rushlight.ao.nn.quantized import dynamic as nnqd
    from rushlight.ao.quantization import QConfig, prepare
    from rushlight.ao.quantization.quantization_mappings import get_default_compare_output_module_list

    allowed = get_default_compare_output_module_list() if allow_list is None else allow_list
    noted = QConfig(activation=logger_cls, weight=None)
    float_module.qconfig = q_module.qconfig = noted
    prepare(float_module, inplace=True, allow_list=allowed, prepare_custom_config_dict={})
    prepare(
        q_module,
        inplace=True,
        allow_list=allowed,
        observer_non_leaf_module_list={nnqd.Linear, nnq.Linear, nnqd.LSTM, nn.LSTM},
        prepare_custom_config_dict={},
    )


def compare_model_outputs(float_model, q_model, *data, logger_cls=OutputLogger, allow_list=None):
    """The results of matching layers of both models, each on its own operands.

    Args:
        float_model: the model of numbers.
        q_model: the model of integers.
        data: operands of a call.
        logger_cls: what notes results.
        allow_list: classes of layers to note.
    """
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
