"""Tensors whose last element lies at the end of a page, beside one that nobody may touch.

Reading past the end of such a tensor ends the process, in any build; elsewhere it gives what lies there.
"""

import ctypes
import mmap
from collections import deque

PROT_NONE = 0
REGIONS = 512  # as many stay mapped; the tensors of a call are gone long before
PAGE = mmap.PAGESIZE

libc = ctypes.CDLL(None, use_errno=True)
regions = deque()


def in_fences(rl, value):
    """Tensors and lists of them copied to such memory; other values as they are."""
    if type(value) in (list, tuple):
        return type(value)(in_fences(rl, item) for item in value)
    return fenced(rl, value)


def fenced(rl, t):
    """A copy of `t` in such memory, where it is a dense one on the CPU."""
    if type(t) is not rl.Tensor or t.layout != rl.strided or t.device.type != "cpu" or t.is_quantized:
        return t
    if not t.numel() or not t.is_contiguous() or t.is_conj() or t.is_neg() or t.nbytes > 1 << 20:
        return t
    pages = (t.nbytes + PAGE - 1) // PAGE
    region = mmap.mmap(-1, (pages + 1) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(region))
    if libc.mprotect(ctypes.c_void_p(start + pages * PAGE), ctypes.c_size_t(PAGE), PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    memory = (ctypes.c_ubyte * t.nbytes).from_buffer(region, pages * PAGE - t.nbytes)
    result = rl.frombuffer(memory, dtype=rl.uint8).view(t.dtype).view(t.shape)
    result.copy_(t.detach())
    regions.append((region, memory))
    if len(regions) > REGIONS:
        regions.popleft()
    return result.requires_grad_(t.requires_grad)
