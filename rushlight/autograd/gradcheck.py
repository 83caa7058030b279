"""Compares derivatives from backward passes with finite differences."""

import sys
import types
import warnings

import rushlight

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",  # noqa: F822 (found by __getattr__)
    "get_numerical_jacobian",  # noqa: F822
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """A derivative is wrong."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Check the gradients of ``func(*inputs)`` with respect to the inputs that require grad, best in float64.

    Args:
        eps: step of the finite differences.
        atol, rtol: tolerance for the comparison of Jacobians.
        raise_exception: raise GradcheckError, or return False.
        nondet_tol: how far two backward passes may differ.
        check_undefined_grad: also run backward with gradients missing for some outputs.
        check_grad_dtypes: gradients must have the dtype of their inputs.
        check_batched_grad: also run backward for a batch of gradients.
        check_forward_ad: also compare with forward mode; check_backward_ad=False compares only with it.
        check_batched_forward_grad: also run forward mode for a batch of tangents.
        fast_mode: compare along one random direction instead of whole Jacobians.
        masked: of sparse inputs only the elements that are specified vary.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True is currently only supported with check_backward_ad=True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tuple(inputs)
    if any(isinstance(x, rushlight.Tensor) and x.layout != rushlight.strided for x in inputs):
        from rushlight.autograd._gradcheck_sparse import over_dense_tensors

        func, inputs = over_dense_tensors(func, inputs, masked)
    check = _Check(func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    try:
        check.check_inputs()
        if check_backward_ad:
            check.run(check_undefined_grad, check_batched_grad)
        if check_forward_ad:
            check.run_forward(check_undefined_grad, check_batched_forward_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Check second derivatives: gradcheck of the function that gives the gradients of ``func``."""
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(_tuple(func(*inputs)))
        grad_outputs = tuple(_random_like(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        grad_outputs = _tuple(grad_outputs)

    def gradients(*args):
        given, grads = args[: len(inputs)], args[len(inputs) :]
        given = tuple(x.requires_grad_() if _wants_grad(was) else x for x, was in zip(given, inputs))
        outputs = _differentiable(_tuple(func(*given)))
        wanted = tuple(x for x in given if _wants_grad(x))
        found = rushlight.autograd.grad(outputs, wanted, grads, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _wants_grad(value):
    return isinstance(value, rushlight.Tensor) and value.requires_grad


def _differentiable(values):
    return tuple(v for v in values if _wants_grad(v))


def _random_like(output, noncontiguous):
    grad = rushlight.rand_like(output, memory_format=rushlight.contiguous_format)
    grad = grad + (0.1 if output.dtype in (rushlight.float64, rushlight.complex128) else 0)
    if noncontiguous and grad.dim() > 0:
        grad = rushlight.stack([grad, grad], dim=-1)[..., 0]
    return grad.detach().requires_grad_()


class _Check:
    """One run of gradcheck: the function, its inputs and the tolerances."""

    def __init__(self, func, inputs, eps, atol, rtol, nondet_tol, check_dtypes, fast):
        self.function, self.inputs = func, _tuple(inputs)
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.check_dtypes, self.fast = check_dtypes, fast
        self._geometry = {}  # of each output: shape and dtype, which must not depend on values
        self.wanted = [
            (i, x) for i, x in enumerate(self.inputs) if isinstance(x, rushlight.Tensor) and x.requires_grad
        ]

    def run(self, check_undefined, check_batched):
        outputs = self._call()
        numbered = [
            (i, o) for i, o in enumerate(outputs) if isinstance(o, rushlight.Tensor) and o.requires_grad
        ]
        self._check_constant_outputs(outputs)
        for i, output in numbered:
            self._check_output(i, output)
        if not numbered:
            return
        if check_batched:
            self._check_batched(numbered)
        self._check_zero_grads([o for _, o in numbered])
        if check_undefined:
            self._check_undefined()

    def check_inputs(self):
        if not self.wanted:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have "
                "requires_grad=True."
            )
        for i, x in self.wanted:
            if x.dtype not in (rushlight.float64, rushlight.complex128):
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or "
                    "complex. This check will likely fail if all the inputs are not of double precision "
                    "floating point "
                    "or complex. ",
                    stacklevel=4,
                )
            if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.size())):
                raise RuntimeError(
                    f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that "
                    "are non-overlapping to be able to compute the numerical gradients correctly. You "
                    "should call .contiguous on the input before passing it to gradcheck."
                )

    def _call(self):
        # Outputs are copied: some functions return their input, or a view of it, which is about to be moved.
        outputs = _tuple(self.function(*self.inputs))
        if any(isinstance(o, rushlight.Tensor) and o.layout != rushlight.strided for o in outputs):
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on "
                "the output of fn for gradcheck."
            )
        return tuple(o.clone() if isinstance(o, rushlight.Tensor) else o for o in outputs)

    def _values(self, number):
        """Output ``number`` as a flat vector, as the inputs are now."""
        output = self._call()[number].detach()
        known = self._geometry.setdefault(number, (output.shape, output.dtype))
        for what, before, now in zip(("shape", "dtype"), known, (output.shape, output.dtype)):
            if before != now:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                    f"within eps, but got {what}s {before} and {now}."
                )
        return output.reshape(-1)

    # Finite differences

    def numerical_jacobian(self, number, x, part):
        """Rows for the elements of ``x``, columns for those of the output; complex where ``x`` is."""
        columns = part(self._values(number)).numel()
        jacobian = rushlight.zeros(x.numel(), columns, dtype=x.dtype, device=x.device)
        for row, index in enumerate(_indices(x)):
            jacobian[row] = self._slope(number, x, index, part, self.eps)
            if x.is_complex():
                jacobian[row] += 1j * self._slope(number, x, index, part, 1j * self.eps)
        return jacobian

    def _slope(self, number, x, index, part, step):
        data = x.data  # outside autograd: no version is counted
        before = data[index].item()
        try:
            data[index] = before - step
            low = part(self._values(number))
            data[index] = before + step
            high = part(self._values(number))
        finally:
            data[index] = before
        return (high - low) / (2 * self.eps)

    # Backward passes

    def _vjp(self, output, grad):
        wanted = [x for _, x in self.wanted]
        found = rushlight.autograd.grad(output, wanted, grad, retain_graph=True, allow_unused=True)
        return [rushlight.zeros_like(x) if g is None else g for x, g in zip(wanted, found)]

    def analytical_jacobians(self, output, unit):
        """One Jacobian per wanted input, a column per element of the output. ``unit`` is 1, or 1j for
        imaginary parts."""
        jacobians = [
            rushlight.zeros(x.numel(), output.numel(), dtype=x.dtype, device=x.device) for _, x in self.wanted
        ]
        grad = rushlight.zeros_like(output, memory_format=rushlight.contiguous_format)
        flat = grad.view(-1)
        for column in range(output.numel()):
            flat[column] = unit
            for (i, x), jacobian, g in zip(self.wanted, jacobians, self._vjp(output, grad)):
                self._check_grad(i, x, g)
                jacobian[:, column] = g.detach().reshape(-1).to(jacobian.dtype)
            flat[column] = 0
        return jacobians

    def _check_grad(self, i, x, grad):
        if grad.size() != x.size():
            raise GradcheckError("Analytical gradient has incorrect size")
        if self.check_dtypes and grad.dtype != x.dtype:
            raise GradcheckError("Analytical gradient has incorrect dtype")

    # Forward mode

    def run_forward(self, check_undefined, check_batched):
        outputs = self._call()
        numbers = [n for n, o in enumerate(outputs) if isinstance(o, rushlight.Tensor) and _is_inexact(o)]
        for position, (i, x) in enumerate(self.wanted) if numbers else ():
            self._check_forward(numbers, position, i, x)
        if check_undefined:
            self._check_missing_tangents()
        if check_batched:
            self._check_batched_forward()

    def _jvps(self, tangents):
        """The tangents of all outputs for those of the wanted inputs, None where an input has none."""
        from rushlight.autograd import forward_ad

        with forward_ad.dual_level():
            given = list(self.inputs)
            for (i, x), tangent in zip(self.wanted, tangents, strict=True):
                given[i] = x.detach() if tangent is None else forward_ad.make_dual(x.detach(), tangent)
            duals = _tuple(self.function(*given))
            found = [forward_ad.unpack_dual(o) if isinstance(o, rushlight.Tensor) else None for o in duals]
        return [
            None if pair is None else rushlight.zeros_like(pair[0]) if pair[1] is None else pair[1]
            for pair in found
        ]

    def _check_forward(self, numbers, position, i, x):
        """Columns of the Jacobians by forward mode against finite differences; along both axes of a complex
        input."""
        for unit, note in ((1, ""), (1j, "imaginary directions, ")) if x.is_complex() else ((1, ""),):
            for index in _indices(x):
                tangent = rushlight.zeros_like(x, memory_format=rushlight.contiguous_format).detach()
                tangent[index] = unit
                zeros = [rushlight.zeros_like(x) for _, x in self.wanted]
                found = self._jvps([*zeros[:position], tangent, *zeros[position + 1 :]])
                for number in numbers:
                    forward = found[number].detach().reshape(-1)
                    numerical = self._slope(number, x, index, _whole, unit * self.eps).to(forward.dtype)
                    if not rushlight.allclose(forward, numerical, self.rtol, self.atol):
                        raise GradcheckError(
                            f"{note}Jacobian computed with forward mode mismatch for output {number} with "
                            f"respect to input {i},\nnumerical:{numerical}\nanalytical:{forward}\n"
                        )

    def _check_missing_tangents(self):
        """No tangent of an input and one of zeros are the same."""
        tangents = [rushlight.rand_like(x.detach()) for _, x in self.wanted]
        for position, (_, x) in enumerate(self.wanted):
            without = (
                self._jvps([*tangents[:position], zero, *tangents[position + 1 :]])
                for zero in (rushlight.zeros_like(x), None)
            )
            for number, (zeros, none) in enumerate(zip(*without, strict=True)):
                if zeros is not None and not rushlight.allclose(zeros, none):
                    raise GradcheckError(f"Mismatch in tangent values for output with index: {number}")

    def _check_batched_forward(self):
        from rushlight.func import vmap

        for i, x in self.wanted:
            tangents = rushlight.stack([rushlight.randn_like(x).detach() for _ in range(2)])

            def along(tangent, i=i):
                alone = [tangent if j == i else None for j, _ in self.wanted]
                return tuple(t for t in self._jvps(alone) if t is not None)

            batch = vmap(along)(tangents)
            single = [along(t) for t in tangents]
            for number, found in enumerate(batch):
                expected = rushlight.stack([row[number] for row in single])
                if not rushlight.allclose(found, expected, self.rtol, self.atol):
                    raise GradcheckError(
                        f"While computing batched forward gradients, got: {found}\n\nExpected: {expected}"
                    )

    # Comparison

    def _check_constant_outputs(self, outputs):
        for number, output in enumerate(outputs):
            if not isinstance(output, rushlight.Tensor) or output.requires_grad:
                continue
            if not (output.is_floating_point() or output.is_complex()):
                continue
            for _, x in self.wanted:
                for part, _, _ in _parts(output):
                    if bool((self.numerical_jacobian(number, x, part) != 0).any()):
                        raise GradcheckError("Numerical gradient for function expected to be zero")

    def _check_output(self, number, output):
        for part, unit, note in _parts(output):
            if self.fast and not output.is_complex() and not any(x.is_complex() for _, x in self.wanted):
                self._check_direction(number, output)
            else:
                self._check_jacobians(number, output, part, unit, note)

    def _check_jacobians(self, number, output, part, unit, note):
        analytical = self.analytical_jacobians(output, unit)
        again = self.analytical_jacobians(output, unit)
        for (i, x), a, b in zip(self.wanted, analytical, again):
            n = self.numerical_jacobian(number, x, part)
            if not rushlight.allclose(a, n, self.rtol, self.atol):
                raise GradcheckError(
                    f"{note}Jacobian mismatch for output {number} with respect to input {i},\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )
            if not rushlight.allclose(a, b, 0.0, self.nondet_tol):
                raise GradcheckError(_NOT_REENTRANT.format(self.nondet_tol))

    def _check_direction(self, number, output):
        """Along a random direction u of each input and v of the output: numerical v'Ju against the vjp of
        v times u."""
        generator = rushlight.Generator()  # of its own: a function may draw numbers and put the state back
        v = _unit_like(output, generator)
        grads, again = self._vjp(output, v), self._vjp(output, v)
        for (i, x), grad, second in zip(self.wanted, grads, again):
            self._check_grad(i, x, grad)
            u, data = _unit_like(x, generator), x.data
            before = data.clone()
            try:
                data.copy_(before - self.eps * u)
                low = self._values(number)
                data.copy_(before + self.eps * u)
                high = self._values(number)
            finally:
                data.copy_(before)
            n = float(((high - low) / (2 * self.eps) * v.reshape(-1)).sum())
            a = float((grad.detach() * u).sum())
            if abs(a - n) > self.atol + self.rtol * abs(n):
                raise GradcheckError(self._fast_text(number, output, i, x, n, a))
            if not rushlight.allclose(grad, second, 0.0, self.nondet_tol):
                raise GradcheckError(_NOT_REENTRANT.format(self.nondet_tol))

    def _fast_text(self, number, output, i, x, n, a):
        position = [j for j, _ in self.wanted].index(i)
        slow_n = self.numerical_jacobian(number, x, _whole)
        slow_a = self.analytical_jacobians(output, 1)[position]
        return (
            f"Jacobian mismatch for output {number} with respect to input "
            f"{i},\nnumerical:{n}\nanalytical:{a}\n\n"
            "The above quantities relating the numerical and analytical jacobians are computed \nin fast "
            "mode. Below, "
            "we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {slow_n}\nAnalytical:\n{slow_a}\n\n"
            f"The max per-element difference (slow mode) is: {float((slow_n - slow_a).abs().max())}.\n"
        )

    # Other properties of a backward pass

    def _check_zero_grads(self, outputs):
        zeros = [rushlight.zeros_like(o, memory_format=rushlight.contiguous_format) for o in outputs]
        wanted = [x for _, x in self.wanted]
        for grad in rushlight.autograd.grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True):
            if grad is not None and not bool((grad == 0).all()):
                raise GradcheckError("backward not multiplied by grad_output")

    def _check_undefined(self):
        """With no gradient for any output, then for one output after the other."""
        try:
            self._check_without_gradients()
        except GradcheckError:
            warnings.warn(
                "Backwards compatibility: New undefined gradient support checking feature is enabled by "
                "default, but it may break existing callers of this function. If this is true for you, you "
                "can "
                'call this function with "check_undefined_grad=False" to disable the feature',
                stacklevel=4,
            )
            raise

    def _check_without_gradients(self):
        count = len(_differentiable(self._call()))
        for missing in [range(count), *([i] for i in range(count if count > 1 else 0))]:
            try:
                found = self._grads_without(missing)
            except RuntimeError as e:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads. Please look at 'Notes "
                    "about undefined output gradients' in 'tools/autograd/derivatives.yaml'"
                ) from e
            if any(g is not None and not bool((g == 0).all()) for g in found):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined "
                    "or zero."
                )

    def _grads_without(self, missing):
        outputs = _differentiable(_tuple(self.function(*self.inputs)))
        cut = [_without_gradient(o) if i in missing else o for i, o in enumerate(outputs)]
        zeros = [rushlight.zeros_like(o) for o in outputs]
        return rushlight.autograd.grad(cut, [x for _, x in self.wanted], zeros, allow_unused=True)

    def _check_batched(self, numbered):
        wanted = [x for _, x in self.wanted]
        for number, output in numbered:
            grads = rushlight.stack([rushlight.randn_like(output) for _ in range(2)])
            try:
                batch = rushlight.autograd.grad(
                    output, wanted, grads, retain_graph=True, allow_unused=True, is_grads_batched=True
                )
            except RuntimeError as error:
                raise GradcheckError(f"{_NOT_BATCHED}\n\nGot:\n{error}") from error
            single = [self._vjp(output, g) for g in grads]
            for k, found in enumerate(batch):
                expected = rushlight.stack([row[k] for row in single])
                if found is not None and not rushlight.allclose(found, expected, self.rtol, self.atol):
                    raise GradcheckError(
                        f"{_NOT_BATCHED}\n\nFor output {number} and input {k}: batched gradients differ from "
                        "single ones"
                    )


def _is_inexact(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def _detached(value):
    return value.detach() if isinstance(value, rushlight.Tensor) else value


def _whole(values):
    return values


def _parts(output):
    """The real functions to compare: a complex output counts as two."""
    if not output.is_complex():
        return [(_whole, 1, "")]
    note = "While considering the {} part of complex outputs only, "
    return [(rushlight.imag, 1j, note.format("imaginary")), (rushlight.real, 1, note.format("real"))]


def _indices(x):
    from itertools import product

    return product(*(range(n) for n in x.size()))


def _unit_like(x, generator):
    v = rushlight.rand(x.shape, dtype=x.dtype, generator=generator).to(x.device)
    return v / (v * v).sum().sqrt().clamp(min=1e-12)


_NOT_BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation: the backward pass does "
    "not run under vmap, or gives other values there. If that is expected, pass check_batched_grad=False."
)

_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
    "gives different "
    "values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was "
    "{}.\n\n"
    "If the operation is meant to be nondeterministic, call gradcheck/gradgradcheck with `nondet_tol=<tol>`."
)


def _without_gradient(output):
    """`output`, into which no gradient flows."""

    class Undefined(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return None

    return Undefined.apply(output)


def __getattr__(name):
    if name in (
        "get_analytical_jacobian",
        "get_numerical_jacobian",
        "_get_numerical_jacobian",
        "_iter_tensors",
    ):
        from rushlight.autograd import _jacobians

        return getattr(_jacobians, name)
    raise AttributeError(f"module 'torch.autograd.gradcheck' has no attribute {name!r}")


class _CallableModule(types.ModuleType):
    """`import torch.autograd.gradcheck` binds the module to the name where programs expect the function."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__spec__.name].__class__ = _CallableModule
