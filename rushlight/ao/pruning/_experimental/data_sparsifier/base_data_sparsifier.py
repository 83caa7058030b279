"""What sparsifiers of tensors without a layer share: a container that has tensors and their masks by name."""

import abc
import copy
import warnings
from collections import defaultdict

import rushlight
from rushlight import nn
from rushlight.ao.pruning.sparsifier import base_sparsifier, utils
from rushlight.nn.utils import parametrize

__all__ = ["BaseDataSparsifier"]

EMBEDDING_TYPES = {nn.Embedding, nn.EmbeddingBag}
SUPPORTED_TYPES = {rushlight.Tensor, nn.Parameter, *EMBEDDING_TYPES}


class _Container(nn.Module):
    pass


class BaseDataSparsifier(base_sparsifier.BaseSparsifier):
    """Base of sparsifiers of tensors, embeddings and bags of them.

    A subclass says in ``update_mask(name, data, **settings)`` what a mask is, and writes it into
    ``get_mask(name)``.

    Args:
        data_list: pairs of a name and a tensor or embedding.
        defaults: settings for data that has none of its own.
    """

    def __init__(self, data_list=None, **defaults):
        super().__init__(defaults=defaults)
        self._container = _Container()
        self.data_groups = defaultdict(dict)
        for name, data in data_list or ():
            self.add_data(name, data, **self.defaults)

    def prepare(self, model, config):
        """Not there: data is added one by one, by ``add_data``."""
        raise NotImplementedError("this function is undefined for this class")

    def _extract_weight(self, data):
        return data.weight if type(data) in EMBEDDING_TYPES else data

    def add_data(self, name, data, reuse_mask=True, **config):
        """Take data under a name; what had that name before is replaced, and its settings stay.

        Args:
            name: the name of the data.
            data: a tensor, an embedding or a bag of them.
            reuse_mask: whether data that is replaced leaves its mask, for which shapes must be equal.
            config: settings of this data.

        Returns:
            The data under its mask.
        """
        if type(data) not in SUPPORTED_TYPES:
            raise AssertionError(f"specified data type:{type(data)} not supported at the moment")
        settings = {**copy.deepcopy(self.defaults), **config}
        weight = self._extract_weight(data)
        mask = settings.get("mask", rushlight.ones_like(weight))
        kind = settings.get("parametrization", utils.FakeSparsity)
        if name in self.state:
            warnings.warn(
                "Replacing existing data of the same name. - Did you mean a different name?", stacklevel=2
            )
            settings = {**copy.deepcopy(self.data_groups[name]), **config}
            if reuse_mask:
                if weight.shape != self.get_data(name=name).shape:
                    raise AssertionError(
                        "to retain the old mask, "
                        "the shape of the new data must be the same as the previous one"
                    )
                mask = self.get_mask(name=name)
            self._delete_data(name=name)
        self._hold(name, weight, kind(mask))
        self.state[name]["mask"] = mask
        self.data_groups[name] = settings
        return getattr(self._container, name)

    def _hold(self, name, weight, step=None):
        # A buffer: a parameter would be another tensor than the one given.
        self._container.register_buffer(name=name, tensor=weight)
        if step is not None:
            parametrize.register_parametrization(self._container, name, step)

    def get_data(self, name, return_original=True):
        """Data by its name.

        Args:
            name: the name of the data.
            return_original: whether without the mask.
        """
        if name not in self.data_groups:
            raise ValueError("data with specified name does not exist")
        if not return_original:
            return getattr(self._container, name)
        if not parametrize.is_parametrized(self._container, name):
            raise ValueError("mask squashed - original mask value does not exist")
        return getattr(self._container.parametrizations, name).original

    def _convert_mask(self, states, sparse_coo=True):
        states = copy.deepcopy(states)
        for state in states.values():
            state["mask"] = state["mask"].to_sparse_coo() if sparse_coo else state["mask"].to_dense()
        return states

    def state_dict(self):
        """The masks, sparse, by the names of their data; the settings; the state of the container."""
        return {
            "state": self._convert_mask(self.state),
            "data_groups": self.data_groups,
            "_container": self._container.state_dict(),
        }

    def _load_container_from_state(self, states, data_groups, container_state_dict):
        for name, state in states.items():
            if data_groups.get(name) is None:
                raise RuntimeError(f"Error loading {name}")
            if name in container_state_dict:
                self._hold(name, container_state_dict[name])
                continue
            original = f"parametrizations.{name}.original"
            if original not in container_state_dict:
                raise RuntimeError(f"Error loading {name}")
            data = container_state_dict[original]
            kind = data_groups[name].get("parametrization", utils.FakeSparsity)
            mask = state["mask"] if "mask" in state else rushlight.ones_like(data)
            self._hold(name, data, kind(mask))

    def load_state_dict(self, state_dict, strict=True):
        """Take what ``state_dict()`` returned.

        Args:
            state_dict: the state.
            strict: whether data that was here before goes.
        """
        states = self._convert_mask(state_dict["state"], sparse_coo=False)
        data_groups = copy.deepcopy(state_dict["data_groups"])
        if strict:
            self._container = _Container()
        self._load_container_from_state(states, data_groups, copy.deepcopy(state_dict["_container"]))
        if not strict:
            states.update(self.state)
            data_groups.update(self.data_groups)
        self.__setstate__({"state": states, "data_groups": data_groups})

    def __setstate__(self, state):
        if "_container" in state:
            held = state.pop("_container")
            self._container = _Container()
            state["state"] = self._convert_mask(state["state"], sparse_coo=False)
            self._load_container_from_state(state["state"], state["data_groups"], held)
        self.__dict__.update(state)

    def __getstate__(self):
        return {"defaults": self.defaults, **self.state_dict()}

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for name, settings in self.data_groups.items():
            lines += ["\tData Group", f"\t    name: {name}"]
            lines += [*(f"\t    {key}: {settings[key]}" for key in sorted(settings) if key != "data"), ""]
        return "\n".join(lines) + ")"

    def get_mask(self, name):
        """The mask of data, by its name."""
        if name not in self.state:
            raise ValueError("data with specified name does not exist")
        return self.state[name]["mask"]

    def squash_mask(self, *args, leave_parametrized=True, names=None, **kwargs):
        """Remove masks.

        Args:
            leave_parametrized: whether data stays as it is under its mask, or as it was given.
            names: of which data; of all by default.
        """
        for name in list(self.data_groups) if names is None else names:
            parametrize.remove_parametrizations(self._container, name, leave_parametrized=leave_parametrized)

    def step(self):
        """Choose all masks again."""
        if not self.enable_mask_update:
            return
        with rushlight.no_grad():
            for name, settings in self.data_groups.items():
                self.update_mask(name, self.get_data(name), **settings)

    @abc.abstractmethod
    def update_mask(self, name, data, **kwargs):
        """Choose the mask of data.

        Args:
            name: the name of the data.
            data: the tensor, without its mask.
            kwargs: the settings of the data.
        """

    def _delete_data(self, name):
        self.squash_mask(names=[name], leave_parametrized=False)
        delattr(self._container, name)
        self.state.pop(name)
        self.data_groups.pop(name)
