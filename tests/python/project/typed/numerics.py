"""Linear algebra, Fourier transforms, reductions, indexing: what has named or several results."""

from typing import TYPE_CHECKING

import rushlight as torch

if TYPE_CHECKING:
    from typing_extensions import assert_type


def main() -> None:
    a = torch.randn(4, 3, dtype=torch.float64)
    svd = torch.linalg.svd(a, full_matrices=False)
    assert torch.allclose(svd.U @ svd.S.diag() @ svd.Vh, a)
    q, r = torch.linalg.qr(a)
    values, indices = a.max(dim=0)
    top = torch.topk(a.flatten(), 2)
    spectrum = torch.fft.rfft(a, dim=0)
    assert spectrum.is_complex() and spectrum.abs().shape == (3, 3)
    mask = a > 0
    chosen = a[mask]
    row, rest = a[0], a[1:, ..., None]
    a[0, :2] = 1.0
    parts = torch.split(a, 2)
    joined = torch.cat(parts, dim=0).reshape(-1, 2).permute(1, 0).contiguous()
    solved = torch.linalg.solve(torch.eye(3), torch.ones(3))
    shape: tuple[int, ...] = a.shape
    n: int = a.size(0) * a.stride(-1) + len(shape)
    where = torch.where(mask, a, torch.zeros_like(a))
    assert n == 6 and rest.shape == (3, 3, 1) and chosen.numel() <= 12 and row.dim() == 1
    assert torch.equal(indices, indices.to(torch.int64)) and q.shape == (4, 3) and r.shape == (3, 3)
    if TYPE_CHECKING:
        assert_type(top.values, torch.Tensor)
        assert_type(values, torch.Tensor)
        assert_type(chosen, torch.Tensor)
        assert_type(joined, torch.Tensor)
        assert_type(solved, torch.Tensor)
        assert_type(where, torch.Tensor)
        assert_type(-a + 1 / a @ a.mT, torch.Tensor)
        torch.linalg.svd("a")  # type: ignore
        a.reshap(2)  # type: ignore


if __name__ == "__main__":
    main()
