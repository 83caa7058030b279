"""What a program switches around its operators, as nodes of a graph of calls as the program made them.

A change of grad mode, or of a region of autocast, becomes a node before the next operator."""

import rushlight as torch
from rushlight.amp.autocast_mode import (
    _enter_autocast,
    _exit_autocast,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from rushlight.fx.node import has_side_effect

_set_grad_enabled = has_side_effect(torch._C._set_grad_enabled)
has_side_effect(_enter_autocast)
has_side_effect(_exit_autocast)

_DEVICES = ("cpu", "cuda")


def _region(device):
    """The arguments of `autocast` that make the region that the thread is in."""
    return device, get_autocast_dtype(device), is_autocast_enabled(device), is_autocast_cache_enabled()


class Switches:
    """Follows the thread's switches into the graph of a tracer."""

    def __init__(self, tracer):
        self._tracer = tracer
        self._grad = self._first_grad = torch.is_grad_enabled()
        self._first_regions = {device: _region(device) for device in _DEVICES}
        self._entered = []  # (device, region, its node) that the graph is in, innermost last

    def follow(self):
        """Brings the graph to where the program is."""
        self._turn_grad(torch.is_grad_enabled())
        for device in _DEVICES:
            self._turn_region(device, _region(device))

    def finish(self):
        """Brings the graph to where it began."""
        self._turn_grad(self._first_grad)
        self._leave(0)

    def _turn_grad(self, enabled):
        if enabled != self._grad:
            self._grad = enabled
            self._call(_set_grad_enabled, (enabled,))

    def _turn_region(self, device, region):
        mine = [i for i, (of, _, _) in enumerate(self._entered) if of == device]
        now = self._entered[mine[-1]][1] if mine else self._first_regions[device]
        if region == now:
            return
        known = [i for i in mine if self._entered[i][1] == region]
        if known or region == self._first_regions[device]:
            self._leave(known[-1] + 1 if known else mine[0])
        else:
            self._entered.append((device, region, self._call(_enter_autocast, region)))

    def _leave(self, count):
        while len(self._entered) > count:
            self._call(_exit_autocast, (self._entered.pop()[2],))

    def _call(self, function, args):
        return self._tracer.create_proxy("call_function", function, args, {}, name=function.__name__)
