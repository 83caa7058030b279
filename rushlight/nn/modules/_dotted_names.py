"""What a path such as "encoder.layers.3.weight" names in a tree of modules."""

from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.nn.parameter import Parameter

from ._module_base import ModuleBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .module import Module


class DottedNameMixin:
    """Methods that find, and put, what has a dotted name."""

    if TYPE_CHECKING:  # what the module has that they are mixed into
        _get_name: Any

    def _resolve(self, path):
        module = self
        for name in path.split(".") if path else ():
            if not hasattr(module, name):
                raise advised(AttributeError(f"{module._get_name()} has no attribute `{name}`"))
            module = getattr(module, name)
            if not isinstance(module, ModuleBase):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def _owner(self, path):
        """The module that has what a path names, and its name there."""
        path, _, name = path.rpartition(".")
        module = self._resolve(path)
        if not hasattr(module, name):
            raise advised(AttributeError(f"{module._get_name()} has no attribute `{name}`"))
        return module, name

    def get_submodule(self, target: str) -> "Module":
        """The descendant with the dotted name target.

        Args:
            target (str): a path such as "encoder.layers.3"; "" is the module itself.

        Raises: AttributeError where the path leads nowhere, or not to a module.

        Example:
            >>> torch.nn.Sequential(torch.nn.ReLU()).get_submodule("0")
            ReLU()
        """
        return self._resolve(target)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with the dotted name target."""
        module, name = self._owner(target)
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with the dotted name target."""
        module, name = self._owner(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Put module in the place named target; with strict, only where there already is one."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, ModuleBase):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self._resolve(path)
        if strict and not hasattr(parent, name):
            raise advised(AttributeError(f"{parent._get_name()} has no attribute `{name}`"))
        if hasattr(parent, name) and not isinstance(getattr(parent, name), ModuleBase):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)
