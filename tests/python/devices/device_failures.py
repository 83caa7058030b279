"""What torch.cuda says when a kernel fails; each case has a process, for the device is lost then."""

import sys

from device_helpers import emulated  # a real device is not: only `target` runs there

import rushlight as torch


def late():
    a = torch.ones(3, device="cuda")
    b = a * 2
    torch.cuda.synchronize()
    emulated.emulated_fail_next_kernel()
    c = (b + 1).exp().sin()
    try:
        c.cpu()
    except torch.AcceleratorError as error:
        text = str(error)
        assert error.error_code == 710 and "CUDA error: device-side assert triggered" in text, text
        assert "newest first: sin, exp, add" in text and "RUSHLIGHT_CUDA_BLOCKING=1" in text, text
    try:
        torch.ones(1, device="cuda")
    except RuntimeError as error:
        text = str(error)
        assert "device-side assert triggered" in text and "newest first: ones, sin, exp, add" in text, text
    else:
        raise SystemExit("a lost device went on")
    assert torch.ones(2).sum().item() == 2  # the CPU does


def target():
    scores, classes = torch.randn(2, 3, device="cuda"), torch.tensor([1, 3], device="cuda")
    try:
        torch.nn.functional.cross_entropy(scores, classes).item()
    except torch.AcceleratorError as error:
        assert "device-side assert triggered" in str(error) and "nll_loss" in str(error), error
    else:
        raise SystemExit("a target that is no class")


def at_once():
    a = torch.ones(3, device="cuda")
    emulated.emulated_fail_next_kernel()
    try:
        a.exp()
    except torch.AcceleratorError as error:
        assert "It failed in the operator 'exp'." in str(error), error
    else:
        raise SystemExit("no error")


globals()[sys.argv[1]]()
print("done")
