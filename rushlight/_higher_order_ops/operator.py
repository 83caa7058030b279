"""Operators that take functions, as programs define them: a name and implementations by key."""

import threading

import rushlight
from rushlight._extension.dispatch_keys import DispatchKey
from rushlight._extension.functorch_names import TransformType
from rushlight._ops import OperatorBase

__capture__ = "through"  # Note [Capture marks]


def _innermost_transform():
    from rushlight._functorch.pyfunctorch import retrieve_current_functorch_interpreter

    return retrieve_current_functorch_interpreter()


_BELOW_AUTOGRAD = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")


class HigherOrderOperator(OperatorBase):
    """An operator of a program that takes functions besides tensors. A call runs the implementation of the
    innermost function transform, else of the innermost dispatch mode, else of an operand's class, else of the
    autograd key, else of the device. An implementation that calls its operator again reaches the next one."""

    def __init__(self, name, *, cacheable=False, supports_training_input_mutation=False):
        super().__init__()
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "Direct instantiation of HigherOrderOperator is not allowed. Please subclass it."
            )
        if type(self).__call__ is HigherOrderOperator.__call__:
            raise TypeError(
                f"Can't instantiate abstract class {type(self).__name__} without an implementation for "
                "abstract method '__call__': it says what the operator takes"
            )
        self._name = self.__name__ = name
        self._ns = "higher_order"
        self.__module__ = "torch.ops.higher_order"
        self._cacheable = cacheable
        self._supports_training_input_mutation = supports_training_input_mutation
        self._running = threading.local()
        self._implementations: dict = {}
        self._skipped: set = set()

    def name(self):
        return self._name

    @property
    def namespace(self):
        return self._ns

    def cacheable(self):
        return self._cacheable

    def __str__(self):
        return self._name

    def py_impl(self, key):
        """Decorates the implementation for a dispatch key, a class of modes or of tensors, or a transform."""

        def register(fn):
            table = self.functorch_table if isinstance(key, TransformType) else self._implementations
            if key in table:
                raise AssertionError(f"{self._name} already has an implementation for {key}")
            table[key] = fn
            return fn

        return register

    def py_autograd_impl(self, fn):
        """Decorates what runs where gradients are recorded of an operand."""

        def recorded(*args, **kwargs):
            wanted = any(t.requires_grad for t in _tensors(args, kwargs))
            return (fn if wanted and rushlight.is_grad_enabled() else self)(*args, **kwargs)

        self.py_impl(_key("Autograd"))(recorded)
        return fn

    def py_functionalize_impl(self, fn):
        """Decorates what runs within a mode that turns writes to pure operators; `fn` gets the mode's
        `BaseFunctionalizeAPI` before the operands."""
        from rushlight._functorch.functional_tensors import PythonFunctionalizeAPI
        from rushlight._functorch.functionalization import FunctionalizeMode

        def pure(mode, *args, **kwargs):
            return fn(PythonFunctionalizeAPI(mode), *args, **kwargs)

        self.py_impl(FunctionalizeMode)(pure)
        return fn

    def fallthrough(self, key):
        """Pass over a key."""
        self._skipped.add(key)

    def _find(self, key):
        return None if key in self._skipped else self._implementations.get(key)

    def _keys(self, tensors):
        types = {t.device.type for t in tensors} or {"cpu"}
        devices = [
            name for type_, name in (("cuda", "CUDA"), ("meta", "Meta"), ("cpu", "CPU")) if type_ in types
        ]
        if not getattr(self._running, "autograd", False):
            yield from ((name, True) for name in [f"Autograd{devices[0]}", "Autograd"])
        yield from ((name, False) for name in (devices[0], *_BELOW_AUTOGRAD))

    def __call__(self, /, *args, **kwargs):
        from rushlight.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode, _push_mode

        if self.functorch_table and (transform := _innermost_transform()):
            if transform.key() in self.functorch_table:
                return transform.process(self, args, kwargs)
        mode = _get_current_dispatch_mode()
        if mode is not None:
            rule = self._find(getattr(mode, "rules_of", type(mode)))
            if rule is None and not getattr(mode, "supports_higher_order_operators", False):
                raise NotImplementedError(
                    f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}. "
                    f"Hint: set {mode}'s supports_higher_order_operators to True."
                )
            _pop_mode()
            try:
                answer = (
                    rule(mode, *args, **kwargs) if rule else mode.__torch_dispatch__(self, (), args, kwargs)
                )
            finally:
                _push_mode(mode)
            if answer is not NotImplemented:
                return answer
        tensors = list(_tensors(args, kwargs))
        for t in tensors:
            rule = self._find(type(t)) if type(t) not in (rushlight.Tensor, rushlight.nn.Parameter) else None
            if rule and (answer := rule(*args, **kwargs)) is not NotImplemented:
                return answer
        if rushlight._C._functorch.maybe_current_level() is not None:
            raise NotImplementedError(
                f"{self._name} has no implementation for the function transform that is active: register one "
                "with py_impl(torch._C._functorch.TransformType...), or call the function that implements it"
            )
        for name, autograd in self._keys(tensors):
            rule = self._find(_key(name))
            if rule is not None:
                return self._run(rule, autograd, args, kwargs)
        raise NotImplementedError(
            f"could not find kernel for HigherOrderOperator {self._name} on "
            f"{[str(t.device) for t in tensors]}"
        )

    def _run(self, rule, autograd, args, kwargs):
        if not autograd:
            return rule(*args, **kwargs)
        self._running.autograd = True
        try:
            return rule(*args, **kwargs)
        finally:
            self._running.autograd = False


def _key(name):
    return getattr(DispatchKey, name)


def _tensors(args, kwargs):
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, rushlight.Tensor):
                yield item
