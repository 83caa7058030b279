"""Ready-made parametrizations: weight norm, spectral norm, orthogonality."""

import rushlight as torch
from rushlight.nn import Module
from rushlight.nn import functional as F

from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

__capture__ = "through"  # Note [Capture marks]


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / torch.norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight):
        return torch.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Weight normalization (Salimans and Kingma 2016): a tensor by its length and its direction.

    Args:
        module (Module): whose tensor it is.
        name (str): its name.
        dim (int): along which each slice has a length; None: one for all.

    Returns: the module.

    Formula: w = g * v / |v|

    Raises: ValueError where there is no such tensor.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old_keys(state_dict, prefix, *_):
        old = [f"{prefix}{name}_{part}" for part in ("g", "v")]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


class _SpectralNorm(Module):
    """Divides by the largest singular value, which the power method follows from step to step."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            h, w = matrix.size()
            u = matrix.new_empty(h).normal_(0, 1)
            v = matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix, steps):
        with torch.no_grad():
            for _ in range(steps):
                self._u.copy_(F.normalize(torch.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(torch.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Cloned, as the next step changes the buffers in place.
        u, v = self._u.clone(), self._v.clone()
        return weight / torch.vdot(u, torch.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Keeps the largest singular value of a tensor at 1 (Miyato and others 2018), by power iterations in
    training.

    Args:
        module (Module): whose tensor it is.
        name (str): its name.
        n_power_iterations (int): iterations for a forward pass.
        eps (float): least norm.
        dim (int, optional): the dimension of outputs; None: 0, of transposed convolutions 1.

    Returns: the module.

    Formula: w / sigma(w)

    Raises: ValueError where there is no such tensor.

    Example:
        >>> layer = torch.nn.Linear(3, 3)
        >>> _ = torch.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=50)
        >>> torch.linalg.matrix_norm(layer.weight, 2).round(decimals=2)
        tensor(1., grad_fn=<RoundBackward0>)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        nn = torch.nn
        transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns (or rows, if it is wide)."""

    def __init__(self, weight, orthogonal_map, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map == "householder":
            X = X.tril()
            tau = 2.0 / (1.0 + (X.tril(-1) * X.tril(-1)).sum(dim=-2))
            Q = torch.linalg.householder_product(X.tril(-1) + torch.eye(n, k, dtype=X.dtype), tau)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2).to(Q.dtype)
        else:
            X = X.tril()
            if n != k:
                X = torch.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
            A = X - X.mH
            if self.orthogonal_map == "matrix_exp":
                Q = torch.matrix_exp(A)
            else:
                identity = torch.eye(n, dtype=A.dtype, device=A.device)
                Q = torch.linalg.solve(torch.add(identity, A, alpha=-0.5), torch.add(identity, A, alpha=0.5))
            if n != k:
                Q = Q[..., :k]
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                f"{Q.shape}."
            )
        transposed = Q.size(-2) < Q.size(-1)
        if transposed:
            Q = Q.mT
        n, k = Q.size(-2), Q.size(-1)
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations "
                    "when "
                    "use_trivialization=False."
                )
            A, tau = torch.geqrf(Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if transposed else A
        if n == k:
            Q = _orthogonal_columns(Q)
        else:
            # Completed to a square matrix by random columns.
            rest = torch.randn(*Q.size()[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _orthogonal_columns(torch.cat([Q, rest], dim=-1))
        self.base = Q
        # The map at minus the identity's lower part gives the base itself back.
        neg_id = torch.zeros_like(Q if n == k else Q[..., :k])
        neg_id.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return neg_id.mT if transposed else neg_id


def _orthogonal_columns(A):
    Q, R = torch.linalg.qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keeps the columns (or rows) of a matrix orthonormal.

    Args:
        module (Module): whose tensor it is.
        name (str): its name.
        orthogonal_map (str, optional): 'matrix_exp', 'cayley' or 'householder'; None chooses.
        use_trivialization (bool): whether it starts from the tensor's value.

    Returns: the module.

    Raises: ValueError where there is no such tensor, it has fewer than two dimensions, or the map is another.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2))
        >>> (layer.weight @ layer.weight.T).round(decimals=3).abs()
        tensor([[1., 0.],
                [0., 1.]], grad_fn=<AbsBackward0>)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    orth = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, orth, unsafe=True)
    return module
