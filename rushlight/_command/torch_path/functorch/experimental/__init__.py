"""Function transforms that were tried out here first."""

from rushlight._functorch.apis import chunk_vmap
from rushlight._functorch.batch_norm_replacement import replace_all_batch_norm_modules_
from rushlight.func import functionalize, hessian, jacfwd, jvp

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
