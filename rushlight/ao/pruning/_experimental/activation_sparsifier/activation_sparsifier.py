"""Masks on what enters layers, chosen from what entered them."""

import copy
import warnings
from collections import defaultdict

import rushlight
from rushlight.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn

__all__ = ["ActivationSparsifier"]

_FUNCTIONS = ("aggregate_fn", "reduce_fn", "mask_fn")


def _check(settings):
    if settings["features"] is not None and settings["feature_dim"] is None:
        raise AssertionError("need feature dim to select features")
    for key in _FUNCTIONS:
        if not callable(settings[key]):
            raise AssertionError(f"{settings[key]} must be callable")


def _feature(data, dim, feature):
    """Part of data along a dimension, with the index of that part."""
    index = rushlight.tensor([feature], dtype=rushlight.int64, device=data.device)
    return index, data.index_select(dim, index)


class ActivationSparsifier:
    """Collects what enters layers; then masks it by ``mask_fn(reduce_fn(all that entered))``.

    Args:
        model: whose layers are registered with ``register_layer``.
        aggregate_fn: adds an operand to what was collected before: a function of the two.
        reduce_fn: makes of what was collected what the mask is chosen from.
        mask_fn: chooses the mask; its other arguments are ``sparse_config``.
        features: indices for each of which all this is done apart; None for the operand as a whole.
        feature_dim: the dimension of these indices.
        sparse_config: arguments for ``mask_fn``.

    Example::

        >>> from torch.ao.pruning._experimental.activation_sparsifier import activation_sparsifier
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2))
        >>> sparsifier = activation_sparsifier.ActivationSparsifier(
        ...     model, torch.add, lambda x: x.mean(0), lambda x, least: (x >= least).float(), least=1.0)
        >>> sparsifier.register_layer(model[0])
        >>> output = model(torch.tensor([[0.0, 1.0, 2.0, 3.0]]))
        >>> sparsifier.step()
        >>> sparsifier.get_mask(name="0")
        tensor([0., 1., 1., 1.])
    """

    def __init__(
        self,
        model,
        aggregate_fn=None,
        reduce_fn=None,
        mask_fn=None,
        features=None,
        feature_dim=None,
        **sparse_config,
    ):
        self.model = model
        self.defaults = defaultdict(None)
        self.defaults.update(
            sparse_config=sparse_config,
            aggregate_fn=aggregate_fn,
            reduce_fn=reduce_fn,
            mask_fn=mask_fn,
            features=features,
            feature_dim=feature_dim,
        )
        self.data_groups = defaultdict(dict)
        self.state = defaultdict(dict)

    def _aggregate_hook(self, name):
        group = self.data_groups[name]
        features, dim, add = group["features"], group["feature_dim"], group["aggregate_fn"]

        def added(before, data):
            return add(rushlight.zeros_like(data) if before is None else before, data)

        def hook(module, input):
            before, data = self.data_groups[name].get("data"), input[0]
            if features is None:
                if before is None:
                    self.state[name]["mask"] = rushlight.ones_like(data)
                self.data_groups[name]["data"] = added(before, data)
                return
            parts = [_feature(data, dim, feature)[1] for feature in features]
            if before is None:
                before = [None] * len(parts)
                self.state[name]["mask"] = [rushlight.ones_like(part) for part in parts]
            self.data_groups[name]["data"] = [added(*pair) for pair in zip(before, parts, strict=True)]

        return hook

    def register_layer(
        self,
        layer,
        aggregate_fn=None,
        reduce_fn=None,
        mask_fn=None,
        features=None,
        feature_dim=None,
        **sparse_config,
    ):
        """Collect from now on what enters a layer.

        Args:
            layer: a module of the model.
            aggregate_fn, reduce_fn, mask_fn: in place of the sparsifier's own; so are
            features, feature_dim, sparse_config.
        """
        name = module_to_fqn(self.model, layer)
        if name is None:
            raise AssertionError("layer not found in the model")
        if name in self.data_groups:
            warnings.warn(
                "layer already attached to the sparsifier, "
                "deregistering the layer and registering with new config",
                stacklevel=2,
            )
            self.unregister_layer(name=name)
        given = {
            "aggregate_fn": aggregate_fn,
            "reduce_fn": reduce_fn,
            "mask_fn": mask_fn,
            "features": features,
            "feature_dim": feature_dim,
            "layer": layer,
        }
        settings = copy.deepcopy(self.defaults)
        settings.update((key, value) for key, value in given.items() if value is not None)
        settings["sparse_config"].update(sparse_config)
        _check(settings)
        self.data_groups[name] = settings
        self.state[name]["mask"] = None
        settings["hook"] = layer.register_forward_pre_hook(self._aggregate_hook(name))
        settings["hook_state"] = "aggregate"

    def get_mask(self, name=None, layer=None):
        """The mask of a layer, or a list of masks where features have their own.

        Args:
            name: the layer's name, or
            layer: the layer.
        """
        if name is None and layer is None:
            raise AssertionError("Need at least name or layer obj to retrieve mask")
        if name is None:
            name = module_to_fqn(self.model, layer)
            if name is None:
                raise AssertionError("layer not found in the specified model")
        if name not in self.state:
            raise ValueError("Error: layer with the given name not found")
        mask = self.state[name].get("mask")
        if mask is None:
            raise ValueError("Error: shape unknown, call layer() routine at least once to infer mask")
        return mask

    def unregister_layer(self, name):
        """Leave a layer alone."""
        self.data_groups[name]["hook"].remove()
        self.state.pop(name)
        self.data_groups.pop(name)

    def step(self):
        """Choose all masks from what was collected, and begin to collect again."""
        with rushlight.no_grad():
            for name, group in self.data_groups.items():
                self.update_mask(name, group["data"], group)
                group.pop("data")

    def update_mask(self, name, data, configs):
        """Choose the mask of a layer from what it collected."""
        mask = self.get_mask(name)
        alone = configs["features"] is None
        for one, part in zip([mask] if alone else mask, [data] if alone else data, strict=True):
            one.data = configs["mask_fn"](configs["reduce_fn"](part), **configs["sparse_config"])

    def _sparsify_hook(self, name):
        mask = self.get_mask(name)
        features = self.data_groups[name]["features"]
        dim = self.data_groups[name]["feature_dim"]

        def hook(module, input):
            data = input[0]
            if features is None:
                return data * mask
            for feature, one in zip(features, mask, strict=True):
                index, part = _feature(data, dim, feature)
                data.index_copy_(dim, index, part * one)
            return data

        return hook

    def squash_mask(self, attach_sparsify_hook=True, **kwargs):
        """Stop collecting.

        Args:
            attach_sparsify_hook: whether masks are applied from now on.
        """
        for name, group in self.data_groups.items():
            group.pop("hook").remove()
            if attach_sparsify_hook:
                group["hook"] = group["layer"].register_forward_pre_hook(self._sparsify_hook(name))
            group["hook_state"] = "sparsify"

    def _get_serializable_data_groups(self):
        groups = defaultdict(None)
        for name, group in self.data_groups.items():
            groups[name] = {key: value for key, value in group.items() if key not in ("hook", "layer")}
        return groups

    def _convert_mask(self, states_dict, sparse_coo=True):
        def turned(mask):
            if isinstance(mask, list):
                return [turned(one) for one in mask]
            return mask if mask is None else mask.to_sparse_coo() if sparse_coo else mask.to_dense()

        states = copy.deepcopy(states_dict)
        for state in states.values():
            state["mask"] = turned(state["mask"])
        return states

    def state_dict(self):
        """The masks, sparse, by the names of layers; the settings of layers; the defaults."""
        return {
            "state": self._convert_mask(self.state),
            "data_groups": self._get_serializable_data_groups(),
            "defaults": self.defaults,
        }

    def load_state_dict(self, state_dict):
        """Take what ``state_dict()`` returned, and collect or mask as its sparsifier did."""
        self.__set_state__({key: state_dict[key] for key in ("state", "data_groups", "defaults")})

    def __get_state__(self):
        return self.state_dict()

    def __set_state__(self, state):
        state["state"] = self._convert_mask(state["state"], sparse_coo=False)
        self.__dict__.update(state)
        hooks = {"aggregate": self._aggregate_hook, "sparsify": self._sparsify_hook}
        for name, group in self.data_groups.items():
            layer = fqn_to_module(self.model, name)
            if layer is None:
                raise AssertionError(f"layer {name} not found in the model")
            group["layer"] = layer
            group["hook"] = layer.register_forward_pre_hook(hooks[group["hook_state"]](name))

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for name, group in self.data_groups.items():
            shown = sorted(key for key in group if key not in ("data", "hook", *_FUNCTIONS))
            lines += [
                "\tData Group",
                f"\t    name: {name}",
                *(f"\t    {key}: {group[key]}" for key in shown),
                "",
            ]
        return "\n".join(lines) + ")"
