"""Custom ``autograd.Function`` classes inside function transforms.

Each level takes its part: a grad or jvp level records the function as the user wrote it and computes it one
level further out; a vmap level calls the user's ``vmap``, or maps forward and backward themselves.
"""

from typing import NamedTuple

import rushlight
from rushlight import _C
from rushlight._C import _functorch
from rushlight._functorch.vmap import restore_vmap, unwrap_batched, wrap_batched
from rushlight.autograd.function import Function, _has_setup_context
from rushlight.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map_only

__all__ = ["VmapInfo", "custom_function_call"]


class VmapInfo(NamedTuple):
    """What a Function's ``vmap`` is told about the transform."""

    batch_size: int
    randomness: str


class _Outside:
    """One level further out, with gradients recorded there if the caller and that level record."""

    def __init__(self, records):
        self.records = records

    def __enter__(self):
        outer = _functorch._innermost_transform()[4]
        _functorch._step_out()
        _C._set_grad_enabled(self.records and outer)

    def __exit__(self, *error):
        _functorch._step_in()


def _belongs_to_a_transform(arg):
    return isinstance(arg, rushlight.Tensor) and _functorch.is_functorch_wrapped_tensor(arg)


def custom_function_call(cls, args):
    innermost = _functorch._innermost_transform()
    if innermost is None or not (_has_setup_context(cls) or any(map(_belongs_to_a_transform, args))):
        return cls._apply_here(*args)
    if not _has_setup_context(cls):
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), "
            "it must override the setup_context staticmethod. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    kind, level, size, randomness, _ = innermost
    if kind == "Vmap":
        return _call_at_vmap_level(cls, args, level, VmapInfo(size, randomness))
    return _call_at_grad_level(cls, args, level)


# --- grad and jvp levels


def _call_at_grad_level(cls, args, level):
    records = rushlight.is_grad_enabled()

    def lift(t):
        return _functorch._wrap_for_grad(t, level)

    def forward(*operands):
        inner = tree_map_only(rushlight.Tensor, lambda t: _functorch._unwrap_for_grad(t, level), operands)
        with _Outside(records):
            output = custom_function_call(cls, inner)
        return _same_objects(output, inner, operands, lift)

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(cls.setup_context),
        "jvp": staticmethod(cls.jvp),
        "backward": staticmethod(_backward_of(cls)),
    }
    single = type(f"{cls.__name__}Generated", (Function,), members)
    return single._apply_here(*tree_map_only(rushlight.Tensor, lift, args))


def _backward_of(cls):
    return cls.backward if cls.vjp is Function.vjp else cls.vjp


def _same_objects(outputs, inner, operands, lift):
    """Outputs that are inputs, as those written in place are, stay so."""
    known = {
        id(i): o
        for i, o in zip(tree_flatten(inner)[0], tree_flatten(operands)[0])
        if isinstance(i, rushlight.Tensor)
    }
    return tree_map_only(rushlight.Tensor, lambda t: known[id(t)] if id(t) in known else lift(t), outputs)


# --- vmap levels


def _call_at_vmap_level(cls, args, level, info):
    overridden = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap "
            "staticmethod to avoid ambiguity. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if not cls.generate_vmap_rule and not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
            "implement the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    inner, in_dims = unwrap_batched(args, level)
    if all(d is None for d in tree_flatten(in_dims, is_leaf=lambda d: d is None)[0]):
        with _Outside(rushlight.is_grad_enabled()):
            return custom_function_call(cls, args)
    with _Outside(rushlight.is_grad_enabled()):
        if cls.generate_vmap_rule:
            mapped, out_dims = _mapped(cls, in_dims, info)
            outputs = custom_function_call(mapped, inner)
            out_dims = out_dims()
        else:
            result = cls.vmap(info, in_dims, *inner)
            _check_pair(result)
            outputs, out_dims = result
    return _wrap_outputs(outputs, out_dims, level)


def _check_pair(result):
    if not isinstance(result, tuple) or len(result) != 2:
        shape = f"a tuple with {len(result)} elements" if isinstance(result, tuple) else type(result)
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
            f"structure compatible with the output. Got {shape} instead"
        )


def _wrap_outputs(outputs, out_dims, level):
    flat, spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. "
            f"Expected out_dims={out_dims} to be compatible with the structure of `output`. out_dims has "
            f"structure {tree_flatten(out_dims)[1]} but output has structure {spec}. For more details, "
            "please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    return wrap_batched(tuple(flat), tuple(dims), level)[0] if spec.is_leaf() else spec.unflatten(
        wrap_batched(tuple(flat), tuple(dims), level)
    )  # fmt: skip


class WrappedCtx:
    """Stands for a ctx: it keeps a few attributes of its own, all others are those of the ctx."""

    _pt_reserved_attrs: tuple = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx):
        taken = [] if isinstance(ctx, WrappedCtx) else [n for n in self._pt_reserved_attrs if hasattr(ctx, n)]
        if taken:
            raise RuntimeError(
                f"function transforms keep their own {taken[0]} on ctx: give your attribute another name to "
                "avoid a name collision"
            )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name):
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name, value):
        if name in type(self)._pt_reserved_attrs:
            self.__dict__[name] = value
        else:
            setattr(self._pt_inner_ctx, name, value)


class _RecordingCtx(WrappedCtx):
    """While setup_context runs on examples: notes what is saved instead of saving it."""

    _pt_reserved_attrs = (*WrappedCtx._pt_reserved_attrs, "_pt_saved")

    def __init__(self, ctx):
        super().__init__(ctx)
        self._pt_saved = {}

    def save_for_backward(self, *tensors):
        self._pt_saved["save_for_backward"] = tensors

    def save_for_forward(self, *tensors):
        self._pt_saved["save_for_forward"] = tensors


class CtxWithSavedTensors(WrappedCtx):
    """In backward and jvp on examples: the saved tensors are examples too."""

    _pt_reserved_attrs = (*WrappedCtx._pt_reserved_attrs, "_pt_new_saved_tensors")

    def __init__(self, ctx, new_saved_tensors):
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self):
        return self._pt_new_saved_tensors


def _mapped(cls, in_dims, info):
    """``cls`` for batches: its methods run under a vmap level of their own."""
    size, randomness = info
    found = {}

    def forward(*operands):
        found["shapes"] = tuple(_shape_without(x, d) for x, d in zip(operands, in_dims))
        outputs, found["out"] = restore_vmap(cls.forward, in_dims, size, randomness)(*operands)
        return outputs

    def setup_context(ctx, inputs, outputs):
        recorder = _RecordingCtx(ctx)

        def setup(inputs, outputs):
            cls.setup_context(recorder, inputs, outputs)
            return dict(recorder._pt_saved)

        saved, dims = restore_vmap(setup, (in_dims, found["out"]), size, randomness)(inputs, outputs)
        for how, tensors in saved.items():
            getattr(ctx, how)(*tensors)
        ctx._saved_dims = dims

    def on_examples(ctx, method, how, values, dims):
        saved_dims = ctx._saved_dims.get(how, ())

        def call(saved, values):
            return method(CtxWithSavedTensors(ctx, saved), *values)

        run = restore_vmap(call, (tuple(saved_dims), dims), size, randomness)
        return run(tuple(ctx.saved_tensors), tuple(values))

    def backward(ctx, *grads):
        results, dims = on_examples(
            ctx, _backward_of(cls), "save_for_backward", grads, _per_value(found["out"], grads)
        )
        results = results if isinstance(results, tuple) else (results,)
        dims = dims if isinstance(dims, tuple) else (dims,)
        return tuple(
            reductify_leaf(g, d, w, size, shape)
            for g, d, w, shape in zip(results, dims, in_dims, found["shapes"])
        )

    def jvp(ctx, *tangents):
        dims = tuple(None if t is None else d for t, d in zip(tangents, in_dims))
        results, result_dims = on_examples(ctx, cls.jvp, "save_for_forward", tangents, dims)
        single = not isinstance(results, tuple)
        if single:
            results, result_dims = (results,), (result_dims,)
        wanted = _per_value(found["out"], results)
        fitted = tuple(
            t if t is None else _move(t, d, w, size) for t, d, w in zip(results, result_dims, wanted)
        )
        return fitted[0] if single else fitted

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "jvp": staticmethod(jvp),
        "generate_vmap_rule": True,
    }
    return type(f"Vmapped{cls.__name__}", (Function,), members), lambda: found["out"]


def _per_value(dims, values):
    dims = dims if isinstance(dims, tuple) else (dims,) * len(values)
    return tuple(None if v is None else d for v, d in zip(values, dims))


def _move(t, have, want, size):
    """Examples at ``want``: moved from where they are, or repeated."""
    if want is None:
        return t if have is None else t.select(have, 0)
    if have is None:
        return t.unsqueeze(want).expand(*t.shape[:want], size, *t.shape[want:])
    return t.movedim(have, want)


def _shape_without(x, dim):
    """Of one example of an operand; None of what is no tensor."""
    if not isinstance(x, rushlight.Tensor):
        return None
    return tuple(x.shape) if dim is None else (*x.shape[:dim], *x.shape[dim + 1 :])


def reductify_leaf(
    grad_input, grad_input_bdim, input_bdim, batch_size, target_shape_without_bdim_to_reduce_to=None
):
    """The gradient of an input: of one that all examples share, the sum; of one that was broadcast, the sum
    over the dimensions that its examples lack, which the engine could not tell from the examples."""
    if grad_input is None or not isinstance(grad_input, rushlight.Tensor):
        return grad_input
    if input_bdim is None:
        return grad_input if grad_input_bdim is None else grad_input.sum(grad_input_bdim)
    target = target_shape_without_bdim_to_reduce_to
    if target is None:
        return _move(grad_input, grad_input_bdim, input_bdim, batch_size)
    examples = _move(grad_input, grad_input_bdim, 0, batch_size)
    lacking = examples.dim() - 1 - len(target)
    if examples.shape[1:] != tuple(target) and lacking >= 0:
        whole = (batch_size, *[1] * lacking, *target)
        examples = examples.sum_to_size(whole).reshape(batch_size, *target)
    return examples.movedim(0, input_bdim)
