"""Programs end cleanly, whatever is still alive when the interpreter finalizes."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAMS = {
    # The function holds its globals in a cycle: they go in the interpreter's last collections, and the
    # parameters with the graph that is their only owner by then.
    "graph in a cycle": """
        import gc, rushlight as torch
        gc.disable()
        exec('\\n'.join([
            "def f(): return layers",
            "layers = [torch.nn.Linear(4, 4) for _ in range(200)]",
            "x = torch.ones(2, 4)",
            "for layer in layers: x = torch.relu(layer(x))",
            "loss = x.sum()",
            "loss.backward(retain_graph=True)",
        ]), {"torch": torch})
    """,
    "parameters behind weak references": """
        import weakref, rushlight as torch
        layers = [torch.nn.Linear(4, 4) for _ in range(50)]
        seen = [weakref.ref(p) for layer in layers for p in layer.parameters()]
        loss = torch.nn.Sequential(*layers)(torch.ones(1, 4)).sum()
        def program(): return layers, seen, loss
    """,
    "finalizer that computes": """
        import rushlight as torch
        class Last:
            def __init__(self): self.w = torch.nn.Parameter(torch.ones(3)); self.y = self.w * 2
            def __del__(self): assert (self.y + self.w).tolist() == [3.0] * 3
        last = Last()
        last.itself = last
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_exit(name):
    # Freed memory is overwritten, so that what reads it afterwards is seen.
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAMS[name])],
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (result.returncode, result.stderr) == (0, "")
