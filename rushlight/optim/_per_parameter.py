"""Optimizers that move each parameter on its own: the frame of their step, one operator for many parameters
where their rule allows it."""

from collections.abc import Callable

import rushlight
from rushlight.optim._shared import _check_capturable, _device_dtype_check_for_fused
from rushlight.optim.optimizer import Optimizer, _number, _use_grad_for_differentiable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load


class _PerParameter(Optimizer):
    """An optimizer whose step treats each parameter on its own.

    A subclass says how state starts (``_start``) and how one parameter moves (``_update``); it may take
    many parameters at once by a rule of ``_fused_update_``, or in a ``_step_fused`` of its own.
    """

    _takes_sparse = False
    _instead_for_sparse = ""  # what a refusal of sparse gradients recommends
    _fused_rule: str | None = None
    _fused_states: tuple[
        str, ...
    ] = ()  # what the rule moves besides the parameter: keys of the state, in the rule's order
    # What older files lack: options of the groups, and counters that were numbers.
    _later_options = {
        "foreach": None,
        "fused": None,
        "amsgrad": False,
        "capturable": False,
        "centered": False,
        "decoupled_weight_decay": False,
        "differentiable": False,
        "maximize": False,
        "momentum": 0,
        "nesterov": False,
    }
    _counters = "step", "eta", "mu", "mu_product"
    _captured = "params and state_steps", True  # what a captured step moves, and whether XLA captures it too

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                if name in self.defaults:
                    group.setdefault(name, value)
        for values in self.state.values():
            for name in self._counters:
                if isinstance(values, dict) and isinstance(values.get(name), (int, float)):
                    values[name] = _new_step().fill_(values[name])

    @_use_grad_for_differentiable
    def step(self, closure: "Callable[[], Any] | None" = None) -> "Any":
        """Update the parameters once; ``closure`` evaluates the model again and returns the loss."""
        loss = None
        if closure is not None:
            with rushlight.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("capturable") and not group.get("fused"):
                _check_capturable(group["params"], *self._captured)
            self._step_group(group)
        return loss

    def _step_group(self, group):
        batches = _fused_batches(group) if self._fused_rule and _wants_fused(group) else None
        if batches is not None and all(self._uniform(group, params) for params, _ in batches):
            for params, grads in batches:
                self._step_fused(group, params, grads)
        else:
            self._step_each(group)

    def _uniform(self, group, params):
        """Whether one call can serve these parameters."""
        return True

    def _step_fused(self, group, params, grads):
        states = self._states_of(group, params)
        rushlight._foreach_add_([state["step"] for state in states], 1)
        numbers, factors = self._fused_numbers(group, states)
        lists = [[s[key] for s in states] if key in states[0] else [] for key in self._fused_states]
        first, second, third = (lists + [[], [], []])[:3]
        decay, shrink = group.get("weight_decay", 0), 1.0
        if group.get("decoupled_weight_decay"):
            decay, shrink = 0.0, 1 - _number(group["lr"]) * decay
        rushlight._fused_update_(
            self._fused_rule, params, grads, first, second, third, factors,
            numbers=numbers, weight_decay=decay, shrink=shrink, maximize=group["maximize"],
        )  # fmt: skip

    def _fused_numbers(self, group, states):
        """Numbers of the rule for the group, and factors for its parameters, one after the other."""
        raise NotImplementedError

    def _states_of(self, group, params):
        states = [self.state[p] for p in params]
        for p, state in zip(params, states):
            if not state:
                self._start(group, p, state)
        return states

    def _step_each(self, group):
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if grad.is_sparse and not self._takes_sparse:
                name = type(self).__name__
                raise RuntimeError(f"{name} does not support sparse gradients{self._instead_for_sparse}")
            state = self.state[p] if self._keeps_state(group) else {}
            if not state:
                self._start(group, p, state)
            self._move(group, p, grad, state)

    def _move(self, group, p, grad, state):
        if group.get("maximize"):
            grad = -grad
        if p.is_complex():
            self._update_complex(group, p, grad, state)
        else:
            self._update(group, p, grad, state)

    def _update_complex(self, group, p, grad, state):
        """A complex parameter moves as the pair of its real and imaginary parts."""
        view = rushlight.view_as_real
        parts = {
            k: view(v) if isinstance(v, rushlight.Tensor) and v.is_complex() else v for k, v in state.items()
        }
        self._update(group, view(p), view(grad), parts)
        for key, value in parts.items():
            if key not in state or value is not None and state[key] is None:
                whole = isinstance(value, rushlight.Tensor) and value.dim() == p.dim() + 1
                state[key] = rushlight.view_as_complex(value) if whole else value

    def _keeps_state(self, group):
        return True

    def _start(self, group, p, state):
        pass

    def _update(self, group, p, grad, state):
        raise NotImplementedError


def _new_step():
    """The step counter as it is kept in the state: a 0-dim tensor on the CPU."""
    wide = rushlight.get_default_dtype() == rushlight.float64
    return rushlight.tensor(0.0, dtype=rushlight.float64 if wide else rushlight.float32)


def _zeros(p):
    return rushlight.zeros_like(p, memory_format=rushlight.preserve_format)


def _wants_fused(group):
    """One call for the whole group is the default; ``fused=False``, ``foreach=False`` and
    ``differentiable`` forbid it."""
    if group["differentiable"]:
        return False
    fused = group.get("fused")
    return group["foreach"] is not False if fused is None else fused


def _fused_batches(group):
    """The parameters that have gradients, and these, in lists of one dtype; None where the plain loop must
    do."""
    batches = {}
    for p in group["params"]:
        grad = p.grad
        if grad is None:
            continue
        if not (p.is_cpu or p.is_cuda):
            if group.get("fused"):
                _device_dtype_check_for_fused(p)
            return None
        if grad.is_sparse or not p.is_floating_point():
            return None
        key = p.dtype if p.is_cpu else (p.dtype, p.device)
        batch = batches.get(key)
        if batch is None:
            batch = batches[key] = ([], [])
        batch[0].append(p)
        batch[1].append(grad)
    return batches.values()


def _for_each_step(states, factors):
    """What `factors` returns for the steps of the states, one after the other."""
    known, found = {}, []
    for state in states:
        step = state["step"].item()
        if step not in known:
            known[step] = factors(step)
        found += known[step]
    return found
