"""torch.summary: shapes, parameters, arithmetic and memory of models."""

import pytest

import rushlight as torch
from rushlight import nn


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(6, 6)
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 2))
        self.unused = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, factor=1.0):
        return self.head(self.shared(self.shared(x))) * self.scale * factor


def test_sums_and_rows():
    model = Twice()
    model.head[1].bias.requires_grad_(False)
    result = torch.summary(model, (5, 6))
    assert result.total_params == sum(p.numel() for p in model.parameters())
    assert result.total_params - result.trainable_params == 2
    assert result.total_mult_adds == 2 * 5 * 6 * 6 + 5 * 6 * 2
    assert result.input_bytes == 5 * 6 * 4 and result.param_bytes == 4 * result.total_params
    assert result.forward_bytes == 4 * (3 * 5 * 6 + 5 * 2)
    rows = {row.path: row for row in result.rows}
    assert [row.path for row in result.rows] == ["(model)", "shared", "shared", "head", "head.0", "head.1"]
    assert rows["(model)"].parameters == 1 and rows["head"].parameters == 0
    assert rows["head"].multiply_adds == rows["head.1"].multiply_adds == 60
    assert rows["head.1"].inputs == [(5, 6)] and rows["head.1"].outputs == [(5, 2)]
    assert rows["shared"].is_again and rows["shared"].parameters == 0


def test_the_table():
    result = torch.summary(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Sequential(nn.Flatten())), (2, 3, 8, 8)
    )
    text = str(result)
    assert text == repr(result)
    lines = text.splitlines()
    conv = next(line for line in lines if "Conv2d" in line)
    assert "[2, 8, 6, 6]" in conv and "224" in conv and f"{2 * 8 * 36 * 27:,}" in conv
    assert any("0 (Flatten)" in line for line in lines)
    assert "Parameters: 224 (224 trainable, 0 frozen)" in lines
    result.depth = 1
    assert "Flatten" not in str(result)


def test_the_model_stays_as_it_was():
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Sequential(nn.Dropout(0.5)))
    model[1].eval()
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    torch.summary(model, (8, 4))
    assert torch.equal(torch.rand(3), expected)
    assert model.training and model[0].training and not model[1].training
    assert not model[0].running_mean.any()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    with pytest.raises(RuntimeError):
        torch.summary(model, (8, 5))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert model.training


def test_kinds_of_input():
    assert torch.summary(Twice(), input_data=torch.ones(2, 6)).rows[0].outputs == [(2, 2)]
    assert torch.summary(Twice(), torch.ones(2, 6)).rows[0].outputs == [(2, 2)]
    assert torch.summary(Twice(), input_data={"x": torch.ones(2, 6), "factor": 2.0}).rows[0].outputs == [
        (2, 2)
    ]
    assert torch.summary(Twice(), input_data=(torch.ones(3, 6), 2.0)).rows[0].inputs == [(3, 6)]
    embed = nn.Embedding(10, 4)
    assert torch.summary(embed, (2, 3), dtypes=torch.int64).rows[0].outputs == [(2, 3, 4)]
    two = torch.summary(nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)])
    assert two.rows[0].inputs == [(5, 2), (5, 3)] and two.rows[0].outputs == [(5, 4)]
    lstm = torch.summary(nn.LSTM(3, 4), (5, 2, 3))
    assert lstm.rows[0].outputs == [(5, 2, 4), (1, 2, 4), (1, 2, 4)]
    with pytest.raises(ValueError, match="not both"):
        torch.summary(embed, (1,), input_data=torch.ones(1))
    with pytest.raises(ValueError, match="dtypes"):
        torch.summary(embed, [(1,), (2,)], dtypes=[torch.int64])


def test_without_input_only_parameters_are_listed():
    result = torch.summary(Twice())
    assert result.total_params == 42 + 14 + 12 + 1 and result.total_mult_adds == 0
    assert {row.path for row in result.rows} >= {"unused", "head.1"}
    assert "unused (Linear)" in str(result)
