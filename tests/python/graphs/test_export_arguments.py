"""How the arguments and the state of an exported program are named."""

import rushlight as torch
from rushlight.export import Dim, export


def test_shapes_in_the_order_of_the_signature_reach_keywords_given_in_another():
    class Program(torch.nn.Module):
        def forward(self, a, b, *, first, second):
            return a.sum() + b.sum() + 2 * first.sum() - second.sum()

    args, kwargs = (torch.ones(4), torch.ones(4)), {"second": torch.ones(4), "first": torch.ones(4)}
    shapes = (None, {0: Dim("n")}, {0: Dim("m")}, None)
    exported = export(Program(), args, kwargs, dynamic_shapes=shapes)
    args, kwargs = (torch.ones(4), torch.ones(7)), {"second": torch.ones(4), "first": torch.ones(9)}
    assert exported.module()(*args, **kwargs) == Program()(*args, **kwargs)


def test_state_has_its_own_names_whatever_hooks_call_it():
    class Renamed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)
            self.register_buffer("scale", torch.tensor(3.0))
            self.register_buffer("hidden", torch.tensor(5.0), persistent=False)
            self._register_state_dict_hook(self._rename)

        @staticmethod
        def _rename(module, state, prefix, metadata):
            for name in list(state):
                state[f"renamed.{name}"] = state.pop(name)

        def forward(self, x):
            return self.layer(x) * self.scale + self.hidden

    module, x = Renamed(), torch.ones(1, 2)
    exported = export(module, (x,))
    assert list(exported.state_dict) == ["scale", "layer.weight", "layer.bias"]
    assert torch.equal(exported.module()(x), module(x))


def test_a_check_may_compare_data_with_a_size_that_changes():
    class Program(torch.nn.Module):
        def forward(self, count, y):
            n = count.item()
            torch._check_is_size(n)
            torch._check(n <= y.size(0))
            return y[:n]

    shapes = None, {0: Dim("t")}
    exported = export(Program(), (torch.tensor(5), torch.ones(10)), dynamic_shapes=shapes)
    for count, size in ((5, 10), (6, 13), (3, 3)):
        inputs = torch.tensor(count), torch.arange(float(size))
        assert torch.equal(exported.module()(*inputs), Program()(*inputs))
    assert "expression u0 <= t on node" in exported.graph_module.code
