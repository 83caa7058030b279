"""Modules that learn the sizes of their parameters from the first input."""

from rushlight.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Put before a module class: initializes the parameters at the first input, then is `cls_to_become`."""

    cls_to_become: type | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # A tensor without shape has nothing to detach: it is saved as it is.
        for tables, skip in ((self._parameters, ()), (self._buffers, self._non_persistent_buffers_set)):
            for name, tensor in tables.items():
                if tensor is not None and name not in skip:
                    keep = keep_vars or is_lazy(tensor)
                    destination[prefix + name] = tensor if keep else tensor.detach()

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Give uninitialized tensors the shape that they have in the state_dict."""
        import rushlight as torch

        for name, tensor in [*self._parameters.items(), *self._buffers.items()]:
            value = state_dict.get(prefix + name)
            if value is not None and tensor is not None and is_lazy(tensor) and not is_lazy(value):
                with torch.no_grad():
                    tensor.materialize(value.shape)

    def initialize_parameters(self, *args, **kwargs):
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self):
        tensors = (*self._parameters.values(), *self._buffers.values())
        return any(isinstance(t, (UninitializedParameter, UninitializedBuffer)) for t in tensors)

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward "
            "pass to "
            "correctly initialize the modules"
        )
