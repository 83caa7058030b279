"""Embeddings that are both sparse and of integers."""

import rushlight
from rushlight import nn
from rushlight.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn

SUPPORTED_MODULES = {nn.Embedding, nn.EmbeddingBag}


def _fetch_all_embeddings(model):
    found, waiting = [], [model]
    while waiting:
        for child in waiting.pop().children():
            if type(child) in SUPPORTED_MODULES:
                found.append((module_to_fqn(model, child), child))
            else:
                waiting.append(child)
    return found


def _named_embeddings(model, chosen):
    if chosen is None:
        return _fetch_all_embeddings(model)
    if not isinstance(chosen, list):
        raise AssertionError("the embedding_modules must be a list of embedding modules")
    found = []
    for module in chosen:
        if type(module) not in SUPPORTED_MODULES:
            raise AssertionError("the embedding_modules list must be an embedding or embedding bags")
        name = module_to_fqn(model, module)
        if name is None:
            raise AssertionError("the embedding modules must be part of input model")
        found.append((name, module))
    return found


def _quantize(model, embeddings):
    from rushlight.ao import quantization

    for _, module in embeddings:
        module.qconfig = quantization.float_qparams_weight_only_qconfig
    quantization.prepare(model, inplace=True)
    quantization.convert(model, inplace=True)


def _sparsify(sparsifier, named):
    for name, data in named:
        sparsifier.add_data(name=name.replace(".", "_"), data=data)
    sparsifier.step()
    sparsifier.squash_mask()


def post_training_sparse_quantize(
    model, data_sparsifier_class, sparsify_first=True, select_embeddings=None, **sparse_config
):
    """Make embeddings of a model sparse and of integers, in place.

    Args:
        model: whose embeddings change.
        data_sparsifier_class: the class of the sparsifier.
        sparsify_first: whether the numbers are made sparse, or the integers, whose scales stay.
        select_embeddings: which embeddings; all by default.
        sparse_config: settings of the sparsifier.
    """
    sparsifier = data_sparsifier_class(**sparse_config)
    embeddings = _named_embeddings(model, select_embeddings)
    if sparsify_first:
        _sparsify(sparsifier, embeddings)
        _quantize(model, embeddings)
        return
    _quantize(model, embeddings)
    layers = {name: fqn_to_module(model, name) for name, _ in embeddings}
    weights = {name: layer.weight() for name, layer in layers.items()}
    numbers = {name: rushlight.dequantize(weight) for name, weight in weights.items()}
    _sparsify(sparsifier, numbers.items())
    for name, weight in weights.items():
        rounded = rushlight.quantize_per_channel(
            numbers[name],
            scales=weight.q_per_channel_scales(),
            zero_points=weight.q_per_channel_zero_points(),
            dtype=weight.dtype,
            axis=weight.q_per_channel_axis(),
        )
        layers[name].set_weight(rounded)
