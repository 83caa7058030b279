"""What `load` says when a file may not be loaded, or not in this way."""

import re

_UNSAFE = (
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)
_OPTIONS = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps "
    "only if you trust the source of the checkpoint. \n"
    f"\t(1) {_UNSAFE}\n"
    "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the "
    "following error message.\n"
    "\tWeightsUnpickler error: {error}"
)
TORCHSCRIPT_NOTICE = (
    "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' "
    "(call 'torch.jit.load' directly to silence this warning)"
)
TORCHSCRIPT_REFUSAL = (
    f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {_UNSAFE}"
)


def weights_only_refusal(error, name):
    """PyTorch's words for what the closed unpickler refused: what to do depends on the reason."""
    if re.search(r"GLOBAL \S+ was not an allowed global by default", error):
        message = _OPTIONS.format(error=error)
    elif re.search(r"\S+ must be \S+ to load", error):
        message = f"Weights only load failed. {error}\n {_UNSAFE}"
    elif "is blocked" in error:
        message = f"Weights only load failed. {_UNSAFE}\n\n{error}"
    else:
        message = (
            f"Weights only load failed. {_UNSAFE}\nPlease file an issue with the following so that we can "
            f"make `weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n{error}"
        )
    return f"{message}\n\nFile: {name}"
