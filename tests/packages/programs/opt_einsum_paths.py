"""opt_einsum: contraction paths on tensors, with gradients, against one plain torch.einsum."""

import numpy as np
import opt_einsum
import torch

torch.manual_seed(0)
equation = "ab,bc,cd,de,a->e"
shapes = (4, 5), (5, 6), (6, 3), (3, 2), (4,)
operands = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
expected = torch.einsum(equation, *operands)

path, info = opt_einsum.contract_path(equation, *operands, optimize="optimal")
assert len(path) == 4 and info.opt_cost < info.naive_cost
result = opt_einsum.contract(equation, *operands)
assert isinstance(result, torch.Tensor) and torch.allclose(result, expected)
wanted = torch.autograd.grad(expected.pow(2).sum(), operands)
for gradient, other in zip(torch.autograd.grad(result.pow(2).sum(), operands), wanted):
    assert torch.allclose(gradient, other)

arrays = [operand.detach().numpy() for operand in operands]
expression = opt_einsum.contract_expression(equation, *(array.shape for array in arrays))
assert np.allclose(expression(*arrays, backend="torch"), expected.detach().numpy())

expression = opt_einsum.contract_expression(
    "ab,bc,cd->ad", (4, 5), operands[1].detach(), (6, 3), constants=[1]
)
assert torch.allclose(expression(operands[0], operands[2]), operands[0] @ operands[1] @ operands[2])
with opt_einsum.shared_intermediates() as cache:
    opt_einsum.contract("ab,bc,cd->ad", *operands[:3])
    opt_einsum.contract("ab,bc,cd->da", *operands[:3])
assert len(cache) > 0
