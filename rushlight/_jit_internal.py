"""Decorations of TorchScript under the name that packages import them from."""

import functools
import inspect
import types
import typing
import weakref

from rushlight.jit import annotations as _annotations
from rushlight.jit._decorations import (
    Final,
    _overload,
    _overload_method,
    check_empty_containers,
    export,
    ignore,
    is_scripting,
    unused,
)

__capture__ = "through"  # Note [Capture marks]

BroadcastingList1, BroadcastingList2, BroadcastingList3 = (
    _annotations.BroadcastingList1,
    _annotations.BroadcastingList2,
    _annotations.BroadcastingList3,
)

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "boolean_dispatch",
    "boolean_dispatched",
    "check_empty_containers",
    "export",
    "get_callable_argument_names",
    "ignore",
    "is_optional",
    "is_scripting",
    "unused",
]


def _copy_to_script_wrapper(fn):
    """Marks a method that scripted modules keep as it is in Python."""
    fn._torchscript_modifier = "copy_to_script_wrapper"
    return fn


def get_callable_argument_names(fn):
    """The arguments of a function that may be given by place and by name; none without a signature."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def is_optional(ann):
    """Whether an annotation says that a value may be None."""
    return typing.get_origin(ann) in (typing.Union, types.UnionType) and type(None) in typing.get_args(ann)


# What such functions are made of, which packages that bind arguments look up.
boolean_dispatched: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that is one of two, by an argument: ``max_pool2d`` with and without indices."""

    @functools.wraps(if_false)
    def chosen(*args, **kwargs):
        wanted = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return if_true(*args, **kwargs) if wanted else if_false(*args, **kwargs)

    chosen.__module__, chosen.__name__ = module_name, func_name
    boolean_dispatched[chosen] = {
        "if_true": if_true,
        "if_false": if_false,
        "index": arg_index,
        "default": default,
        "arg_name": arg_name,
    }
    return chosen
