"""Whether a program that is captured records gradients where it calls an operator."""

import rushlight as torch
from rushlight._extension.dispatch_keys import PRE_DISPATCH
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["GradState"]

__capture__ = "skip"  # Note [Capture marks]


class GradState(TorchDispatchMode):
    """Sees operators before autograd does, which handlers then find switched off, and notes its state."""

    def __init__(self, recorder):
        super().__init__(PRE_DISPATCH)
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.recorder.program_records = torch.is_grad_enabled()
        return NotImplemented if types else func(*args, **(kwargs or {}))
