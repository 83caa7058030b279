"""Schedulers know whether the sparsifier stepped before them."""

import warnings
import weakref
from functools import wraps


def counted(method):
    """A method that counts its calls in its object's `_step_count`; it holds that weakly, whose it is."""
    if getattr(method, "_with_counter", False):
        return method
    held = weakref.ref(method.__self__)
    function = method.__func__

    @wraps(function)
    def step(*args, **kwargs):
        owner = held()
        owner._step_count += 1
        return function(owner, *args, **kwargs)

    step._with_counter = True
    return step


def warn_of_order(owner, named):
    """What the second step of a scheduler says where its sparsifier was not asked first."""
    if not hasattr(owner.step, "_with_counter"):
        warnings.warn(
            f"Seems like `{named}.step()` has been overridden after sparsity scheduler "
            f"initialization. Please, make sure to call `{named}.step()` before `scheduler.step()`.",
            UserWarning,
            stacklevel=3,
        )
    elif owner._step_count < 1:
        warnings.warn(
            f"Detected call of `scheduler.step()` before `{named}.step()`. "
            f"You have to make sure you run the {named}.step() BEFORE any "
            "calls to the scheduler.step().",
            UserWarning,
            stacklevel=3,
        )


def warn_of_direct_call():
    """What a level says that is asked for outside of a step."""
    warnings.warn(
        "To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=3
    )
