"""Wrong argument types, for type checkers only: they must flag each line with `# wrong`, and no other."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

x = torch.ones(2, 3)
layer = nn.Linear(3, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

torch.cat(x, "0")  # wrong
torch.cat([x, x], dim=0)
torch.zeros(2, dtype="float32")  # wrong
torch.zeros(2, dtype=torch.float32)
torch.softmax(x, dim="rows")  # wrong
torch.softmax(x, dim=-1)
x.view("2", 3)  # wrong
x.view(3, 2)
x.sum(dim=1.5)  # wrong
x.sum(dim=1)
x.permute(0, None)  # wrong
x.permute(1, 0)
x.topk("3")  # wrong
x.topk(2)
torch.arange(0, "10")  # wrong
torch.arange(0, 10)
torch.matmul(x, [1, 2, 3])  # wrong
torch.matmul(x, x.mT)
F.relu("x")  # wrong
F.relu(x)
F.cross_entropy(x, torch.tensor([0, 1]), reduction=1)  # wrong
F.cross_entropy(x, torch.tensor([0, 1]), reduction="sum")
F.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), stride="2")  # wrong
F.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), stride=2)
optimizer.step(closure=3)  # wrong
optimizer.step()
torch.Generator().manual_seed("1")  # wrong
torch.Generator().manual_seed(1)
nn.Linear("3", 2)  # wrong
nn.Linear(3, 2, bias=False)
nn.Conv2d(3, "8", 3)  # wrong
nn.Conv2d(3, 8, (3, 1), padding="same")
nn.Dropout("0.5")  # wrong
nn.Dropout(0.5)
nn.Embedding(10, None)  # wrong
nn.Embedding(10, 4, padding_idx=0)
nn.LayerNorm("8")  # wrong
nn.LayerNorm([8])
x.requires_grad_(requires_grad="yes")  # wrong
x.requires_grad_()
torch.nn.utils.clip_grad_norm_(layer.parameters(), max_norm="1")  # wrong
torch.nn.utils.clip_grad_norm_(layer.parameters(), max_norm=1.0)
torch.optim.AdamW(layer.parameters(), lr="fast")  # wrong
torch.optim.AdamW(layer.parameters(), lr=1e-3)
torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size="2")  # wrong
torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=2)
