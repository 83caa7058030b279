"""Composable function transforms: derivatives and vectorisation of functions."""

from rushlight._functorch.apis import grad, grad_and_value, vmap
from rushlight._functorch.batch_norm_replacement import replace_all_batch_norm_modules_
from rushlight._functorch.eager_transforms import (
    debug_unwrap,
    functionalize,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from rushlight._functorch.functional_call import functional_call, stack_module_state
from rushlight._functorch.rearrange import rearrange

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
