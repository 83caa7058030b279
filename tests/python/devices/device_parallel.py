"""One process with several devices: DataParallel and its parts; test_cuda.py runs it on the emulated two."""

import sys

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parallel import parallel_apply, replicate
from rushlight.nn.parallel._functions import Broadcast, Gather, ReduceAddCoalesced, Scatter


class Net(nn.Module):
    """Shared weights, a buffer, a nested module, results of several kinds."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Sequential(self.first, nn.Tanh(), nn.BatchNorm1d(6))
        self.register_buffer("shift", torch.arange(6.0))

    def forward(self, x, *, scale=1.0):
        y = self.second(self.first(x)) + self.shift
        return {"y": y * scale, "pair": (y.sum(1), y.mean())}


def test_results_and_gradients_are_those_of_one_device():
    torch.manual_seed(0)
    alone, net = Net().cuda().eval(), Net().cuda().eval()
    net.load_state_dict(alone.state_dict())
    split = nn.DataParallel(net)
    assert split.device_ids == [0, 1] and list(split.state_dict())[0] == "module.shift"
    x = torch.randn(7, 6).cuda().requires_grad_()
    z = x.detach().clone().requires_grad_()
    expected, found = alone(x, scale=2.0), split(z, scale=2.0)
    torch.testing.assert_close(found["y"], expected["y"])
    torch.testing.assert_close(found["pair"][0], expected["pair"][0])
    assert found["pair"][1].shape == (2,) and found["y"].device.index == 0
    (expected["y"] ** 2).sum().backward()
    (found["y"] ** 2).sum().backward()
    torch.testing.assert_close(z.grad, x.grad)
    for one, two in zip(alone.parameters(), net.parameters()):
        torch.testing.assert_close(two.grad, one.grad)


def test_training_reduces_the_loss_and_keeps_running_statistics():
    torch.manual_seed(0)
    net = nn.DataParallel(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1)).cuda())
    x = torch.randn(32, 4).cuda()
    y = x.sum(1, keepdim=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(40):
        loss = ((net(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    batch_norm = net.module[0]
    assert batch_norm.num_batches_tracked.item() == 40
    torch.testing.assert_close(batch_norm.running_mean, x[:16].mean(0), atol=0.02, rtol=0.1)


def test_one_device_none_and_the_wrong_one():
    net = nn.DataParallel(nn.Linear(2, 1), device_ids=["cuda:1"])
    assert net.module.weight.device.index == 1 and net(torch.ones(3, 2)).device.index == 1
    with pytest.raises(RuntimeError, match=r"on device cuda:0 \(device_ids\[0\]\) but found .* cpu"):
        nn.DataParallel(nn.Linear(2, 1))(torch.ones(3, 2))
    few = nn.DataParallel(nn.Linear(2, 1).cuda())(torch.ones(1, 2).cuda())  # one row: one device
    assert few.shape == (1, 1)


def test_an_error_names_the_replica():
    def fail(x):
        raise KeyError("no such word")

    with pytest.raises(KeyError, match="Caught KeyError in replica 1 on device cuda:1"):
        parallel_apply([torch.abs, fail], [torch.ones(1).cuda(0), torch.ones(1).cuda(1)], devices=[0, 1])
    with pytest.raises(ValueError, match="1 modules, 2 inputs"):
        parallel_apply([torch.abs], [1, 2])


def test_modes_reach_the_threads():
    def look(x):
        return torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.cuda.current_device()

    inputs = [torch.ones(1).cuda(0), torch.ones(1).cuda(1)]
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        assert parallel_apply([look, look], inputs) == [(False, True, 0), (False, True, 1)]
    assert parallel_apply([look, look], inputs) == [(True, False, 0), (True, False, 1)]


def test_replicas():
    net = Net().cuda()
    first, second = replicate(net, [0, 1])
    assert first.shift is net.shift and second.shift.device.index == 1
    assert second.first.weight is second.second[0].weight and second.first.weight.device.index == 1
    assert not list(second.parameters()) and second.first.weight.requires_grad
    assert not replicate(net, [0], detach=True)[0].first.weight.requires_grad
    with pytest.raises(RuntimeError, match="scripted or traced"):
        replicate(torch.jit.script(nn.Linear(2, 2)), [0, 1])


def test_copies_as_functions():
    x = torch.arange(6.0).cuda().requires_grad_()
    there = Scatter.apply([0, 1], None, 0, x)
    assert [t.device.index for t in there] == [0, 1]
    back = Gather.apply(0, 0, *there)
    copies = Broadcast.apply([0, 1], back, back * 2)
    assert [t.device.index for t in copies] == [0, 0, 1, 1]
    sums = ReduceAddCoalesced.apply(0, 2, *copies)
    torch.testing.assert_close(sums[1].cpu(), 4 * torch.arange(6.0))
    (sums[0].sum() + sums[1].sum()).backward()
    torch.testing.assert_close(x.grad.cpu(), torch.full((6,), 6.0))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
