"""Calls of modules so small that the call is what costs, and what else is done with modules."""

import torch
from torch import nn

from ..case import Statement

STATEMENTS = {
    "call/Identity": "identity(x)",
    "call/own module": "own(x)",
    "call/Linear": "linear(x)",
    "call/Linear, no_grad": "with torch.no_grad(): linear(x)",
    "call/ReLU": "relu(x)",
    "call/Sequential of 3": "sequential(x)",
    "call/Sequential of 20 Identity": "deep(x)",
    "call/LayerNorm": "layer_norm(x)",
    "call/BatchNorm1d, eval": "batch_norm(x)",
    "call/Embedding": "embedding(rows)",
    "call/Dropout, eval": "dropout(x)",
    "call/Conv2d": "conv(image)",
    "call/LSTMCell": "lstm_cell(x)",
    "call/GRUCell": "gru_cell(x)",
    "call/LSTM of 5 steps": "lstm(sequence)",
    "call/MultiheadAttention": "attention(sequence, sequence, sequence)",
    "call/CrossEntropyLoss": "loss(x, rows)",
    "call/forward hook": "hooked(x)",
    "state/attribute": "own.linear",
    "state/parameter": "linear.weight",
    "state/set attribute": "own.flag = True",
    "state/named_parameters": "for _ in deep_linear.named_parameters(): pass",
    "state/parameters": "list(deep_linear.parameters())",
    "state/modules": "list(deep_linear.modules())",
    "state/zero_grad": "deep_linear.zero_grad()",
    "state/train": "deep_linear.train()",
    "state/state_dict": "deep_linear.state_dict()",
    "state/load_state_dict": "deep_linear.load_state_dict(state)",
    "make/Linear": "nn.Linear(8, 8)",
    "make/Conv2d": "nn.Conv2d(3, 4, 3)",
    "make/own module": "Own()",
}


class Own(nn.Module):
    """What users write: two layers and an activation."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.activation = nn.ReLU()
        self.flag = True

    def forward(self, x):
        return self.activation(self.linear(x))


def cases(sizes):
    hooked = nn.Identity()
    hooked.register_forward_hook(lambda module, arguments, result: None)
    deep_linear = nn.Sequential(*[nn.Linear(8, 8) for _ in range(10)])
    names = dict(
        torch=torch,
        nn=nn,
        Own=Own,
        x=torch.randn(2, 8),
        rows=torch.tensor([0, 2]),
        image=torch.randn(1, 3, 8, 8),
        sequence=torch.randn(1, 5, 8),
        identity=nn.Identity(),
        own=Own(),
        linear=nn.Linear(8, 8),
        relu=nn.ReLU(),
        sequential=nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)),
        deep=nn.Sequential(*[nn.Identity() for _ in range(20)]),
        deep_linear=deep_linear,
        state=deep_linear.state_dict(),
        layer_norm=nn.LayerNorm(8),
        batch_norm=nn.BatchNorm1d(8).eval(),
        embedding=nn.Embedding(10, 8),
        dropout=nn.Dropout().eval(),
        conv=nn.Conv2d(3, 4, 3, padding=1),
        lstm_cell=nn.LSTMCell(8, 8),
        gru_cell=nn.GRUCell(8, 8),
        lstm=nn.LSTM(8, 8, batch_first=True),
        attention=nn.MultiheadAttention(8, 2, batch_first=True),
        loss=nn.CrossEntropyLoss(),
        hooked=hooked,
    )
    for name, code in STATEMENTS.items():
        yield Statement(name, code, names)
