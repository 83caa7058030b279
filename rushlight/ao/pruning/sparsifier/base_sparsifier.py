"""What all sparsifiers share: their tensors and masks, and how masks become part of weights."""

import abc
import copy
from collections import defaultdict

import rushlight
from rushlight import nn
from rushlight.nn.utils import parametrize
from rushlight.nn.utils.parametrize import type_before_parametrizations

from .utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_contains_param,
    module_to_fqn,
    swap_module,
)

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES = {nn.Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


def _checked_group(model, entry, defaults):
    """An entry of the configuration with the defaults and with what its tensor's name says."""
    if not isinstance(entry, dict):
        raise AssertionError(
            "config elements should be dicts not modules i.e.:"
            "[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"
        )
    if not isinstance(defaults, dict):
        raise AssertionError("defaults must be a dict")
    group = {**copy.deepcopy(defaults), **entry}
    name = group.get("tensor_fqn")
    if name is None:
        raise AssertionError(
            "tensor_fqn is a required argument in the sparsity config which "
            "replaces previous `module` and [module]`fqn` arguments"
        )
    facts = get_arg_info_from_tensor_fqn(model, name)
    for key, fact in facts.items():
        given = group.get(key, fact)
        if not (fact == given or (key == "tensor_fqn" and f".{fact}" == given)):
            raise AssertionError(
                f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!"
            )
    group.update(facts)
    return group


class BaseSparsifier(abc.ABC):
    """Base of sparsifiers: ``prepare`` puts masks on weights, ``step`` chooses, ``squash_mask`` applies them.

    A subclass says in ``update_mask`` what a mask is.

    Args:
        defaults: settings for entries of the configuration that have none of their own.

    Example::

        >>> class Halve(torch.ao.pruning.BaseSparsifier):
        ...     def update_mask(self, module, tensor_name, **settings):
        ...         mask = getattr(module.parametrizations, tensor_name)[0].mask
        ...         mask[: len(mask) // 2] = 0
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4))
        >>> sparsifier = Halve()
        >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
        >>> sparsifier.step()
        >>> sparsifier.squash_mask()
        >>> int(model[0].weight.count_nonzero())
        6
    """

    def __init__(self, defaults=None):
        super().__init__()
        self.defaults = defaults or {}
        self.state = defaultdict(dict)
        self.groups = []
        self.enable_mask_update = True

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.groups):
            lines += [f"\tGroup {number}", f"\t    module: {group['module']}"]
            lines += [*(f"\t    {key}: {group[key]}" for key in sorted(group) if key != "module"), ""]
        return "\n".join(lines) + ")"

    def state_dict(self):
        """The masks by the names of their tensors, and the settings of each."""
        groups = [
            {key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT}
            for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict, strict=True):
        """Take masks and settings; tensors of the prepared model that have no mask get one.

        Args:
            state_dict: what ``state_dict()`` returned.
            strict: whether a module that the model lacks is an error.
        """
        groups = copy.deepcopy(state_dict["groups"])
        states = state_dict["state"]
        for name, state in states.items():
            facts = get_arg_info_from_tensor_fqn(self.model, name)
            module, tensor_name = facts["module"], facts["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {name} into the model")
            steps = (
                module.parametrizations[tensor_name]
                if parametrize.is_parametrized(module, tensor_name)
                else ()
            )
            step = next((step for step in steps if isinstance(step, FakeSparsity)), None)
            if step is None:
                step = FakeSparsity(rushlight.ones(getattr(module, tensor_name).shape))
                parametrize.register_parametrization(module, tensor_name, step)
            if state.get("mask") is not None:
                step.mask = state.pop("mask")
            for group in groups:
                if group["tensor_fqn"] == name:
                    group.update(facts)
        self.__setstate__({"state": states, "groups": groups})

    def make_config_from_model(self, model, SUPPORTED_MODULES=SUPPORTED_MODULES):
        """A configuration that has the weights of all layers of these classes."""
        self.config = []
        waiting = [model]
        while waiting:
            for child in waiting.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    waiting.append(child)

    def prepare(self, model, config):
        """Put masks of ones on the tensors of a model, in place.

        Args:
            model: whose weights become sparse.
            config: a dict for each tensor, with its name as ``tensor_fqn`` and settings; None for all linear
                layers.
        """
        self.model = model
        self.config = config
        if config is None:
            self.make_config_from_model(model)
        for entry in self.config:
            self.groups.append(_checked_group(model, entry, self.defaults))
        self._prepare()

    def _prepare(self, *args, **kwargs):
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask", rushlight.ones_like(getattr(module, name)))
            self.state[group["tensor_fqn"]]["mask"] = mask
            step = group.get("parametrization", FakeSparsity)(mask)
            parametrize.register_parametrization(module, name, step)

    def squash_mask(self, params_to_keep=None, params_to_keep_per_layer=None, *args, **kwargs):
        """Make the masks part of the weights and remove them.

        Args:
            params_to_keep: names of settings that each layer keeps in its ``sparse_params``.
            params_to_keep_per_layer: such names by the names of layers.
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            kept = [
                *(params_to_keep or ()),
                *((params_to_keep_per_layer or {}).get(group["module_fqn"]) or ()),
            ]
            if kept:
                module.sparse_params = {key: group[key] for key in kept}

    def convert(self, module, mapping=None, inplace=False, parameterization=FakeSparsity):
        """Replace layers that have masks by what a mapping of classes has for them.

        Args:
            module: the prepared model.
            mapping: classes of layers to classes that have ``from_dense``.
            inplace: whether to change the model itself.
            parameterization: the class of parametrizations by which a layer is known.

        Returns:
            The converted model.
        """
        if mapping is None:
            raise NotImplementedError(
                "Need to auto generate mapping: give `mapping`, from classes of layers to their replacements"
            )
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in list(module.named_children()):
            if (
                module_contains_param(child, parameterization)
                and type_before_parametrizations(child) in mapping
            ):
                module._modules[name] = swap_module(child, mapping)
            else:
                module._modules[name] = self.convert(
                    child, mapping=mapping, inplace=True, parameterization=parameterization
                )
        return module

    def step(self, use_path=True):
        """Choose all masks again."""
        if not self.enable_mask_update:
            return
        with rushlight.no_grad():
            for group in self.groups:
                self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module, tensor_name, **kwargs):
        """Choose the mask of a tensor: the parametrization's ``mask``, written in place.

        Args:
            module: the layer.
            tensor_name: which of its tensors.
            kwargs: the settings of the group.
        """
