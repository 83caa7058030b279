"""Spectral normalization in its older form, with a hook before forward."""

import rushlight as torch
from rushlight.nn import functional as F

__all__ = ["spectral_norm", "remove_spectral_norm", "SpectralNorm"]

__capture__ = "through"  # Note [Capture marks]


class SpectralNorm:
    """Divides the weight by its largest singular value before each forward."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with torch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
                # Cloned, as the next step changes the buffers in place.
                u, v = u.clone(), v.clone()
        return weight / torch.dot(u, torch.mv(matrix, v))

    def remove(self, module):
        with torch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for part in ("_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, torch.nn.Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if torch.nn.parameter.is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run "
                "the "
                "dummy forward before applying spectral normalization"
            )
        with torch.no_grad():
            h, w = fn.reshape_weight_to_matrix(weight).size()
            u = F.normalize(weight.new_empty(h).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(w).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute until the first forward, so that code which reads it goes on working.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(fn._note_version)
        module._register_load_state_dict_pre_hook(fn._complete_older)
        return fn

    def _note_version(self, module, state_dict, prefix, local_metadata):
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = self._version

    def _complete_older(self, state_dict, prefix, local_metadata, strict, missing_keys, *_):
        """Files without a version hold the normalized weight, and no right singular vector."""
        version = local_metadata.get("spectral_norm", {}).get(self.name + ".version")
        key = prefix + self.name
        whole = all(key + part in state_dict for part in ("_orig", "_u", "_v"))
        if version is not None or (whole and key not in state_dict):
            return
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with torch.no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            matrix, u = self.reshape_weight_to_matrix(original), state_dict[key + "_u"]
            v = torch.linalg.multi_dot([matrix.t().mm(matrix).pinverse(), matrix.t(), u.unsqueeze(1)])[:, 0]
            sigma = (original / weight).mean()
            state_dict[key + "_v"] = v.mul_(sigma / torch.dot(u, torch.mv(matrix, v)))


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Keep a weight's largest singular value at 1; `parametrizations.spectral_norm` is the newer form."""
    if dim is None:
        nn = torch.nn
        transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Make the weight an ordinary parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
