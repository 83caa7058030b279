"""What `load` says when a file may not be loaded, or not in this way."""

import re
from pickle import UnpicklingError

from rushlight._errors.advice import attach

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
        message = (
            "Weights only load failed. The file asks for functions of the system, as attacks do: do not load "
            f"it unless you know why it does.\n\n{error}"
        )
    elif _is_no_pickle(error):
        message = f"Weights only load failed. The file is damaged, or is no pickle: {error}"
    else:
        message = (
            f"Weights only load failed. {_UNSAFE}\nPlease file an issue with the following so that we can "
            f"make `weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n{error}"
        )
    return f"{message}\n\nFile: {name}"


def _is_no_pickle(error):
    """Whether the instruction that stopped the unpickler is none that pickles have."""
    import pickletools

    stopped = re.fullmatch(r"Unsupported operand (\d+)", error)
    known = {opcode.code for opcode in pickletools.opcodes}
    return stopped is not None and chr(int(stopped[1])) not in known


# What files that no `torch.save` wrote begin with, what they are, and what to do.
_OTHERS = (
    (b"version https://git-lfs", "is a pointer of Git LFS", "git lfs pull fetches the file itself"),
    (b"<", "is a web page or XML", "see what the download really gave"),
    (b"\x1f\x8b", "is compressed by gzip", "decompress it first: torch.load(gzip.open(path))"),
    (b"\x93NUMPY", "is an array of NumPy", "read it with numpy.load"),
    (b"\x89HDF", "is an HDF5 file", "read it with h5py"),
    (b"\x89PNG", "is an image", "read it with torchvision.io or PIL"),
    (b"\xff\xd8", "is an image", "read it with torchvision.io or PIL"),
    (b"{", "is text, perhaps JSON", "read it with json.load"),
)
_PICKLED = b"\x80", b"L1195", b"I1195"  # protocols from 2 on, and the magic number in those before


def other_file(head, name):
    """The error for a file with these first bytes, or None where `torch.save` may have written it."""
    if head.startswith(_PICKLED):
        return None
    what, to_do = f"begins with {head[:16]!r}", "see what wrote it"
    if all(byte in b"\t\n\r\f" or byte >= 32 for byte in head):
        what, to_do = f"is text, and begins with {head[:16]!r}", "read it as text"
    what, to_do = next((known[1:] for known in _OTHERS if head.startswith(known[0])), (what, to_do))
    error = UnpicklingError(f"load: {name} is not a file that torch.save wrote: it {what}")
    attach(error, f"fix: {to_do}")
    return error
