"""More statements for program_parts.py: complex numbers, integers, truth values, layers with weights, `out=`,
lists of tensors, indexing by several tensors.

`{c}` names a complex tensor, `{w}` one of integers, `{q}` one of truth values; `{c2}`, `{w2}` and `{q2}`
another, of the same shape where there is one. `V(...)` are a layer's weights of the dtype of `{x}`.
"""

COMPLEX = """
torch.complex({x}, {y})
torch.complex({x}, {x}.flip(0))
torch.polar({x}.abs(), {y})
{x} + {n}j
{c} * {c2}
{c} + {c2}
{c} - {c2}.conj()
{c} + {x}
{x} * {c}
{c} * {f}
{c} * ({f} + {p}j)
{c} / ({x}.abs() + {p})
{c} / ({c2} + 8)
{c}.conj()
{c}.conj() @ {c2}.mT
{c} @ {c2}
{c}.mH
{c}.adjoint()
{c}.real
{c}.imag
{c}.abs()
{c}.angle()
{c}.sgn()
{c}.resolve_conj()
{c}.clone()
-{c}
torch.view_as_real({c})
torch.view_as_real({c}.resolve_conj())
torch.view_as_complex(torch.view_as_real({c}.resolve_conj()))
({c} * 0.3).exp()
{c}.sin()
({c} * 0.3).cosh()
({c} * 0.2).tanh()
({c} + 9).sqrt()
({c} + 9).log()
({c} + 9).reciprocal()
torch.sigmoid({c} * 0.1)
{c} ** 2
{c}.square()
({c} + 9) ** {p}
{c}.sum({d})
{c}.sum()
{c}.mean({d}, keepdim=True)
({c} * 0.5).prod({d})
{c}.cumsum({d})
({c} * 0.5).cumprod({d})
{c}.norm()
torch.linalg.vector_norm({c}, {n}, dim={d})
{c}.var({d})
torch.vdot({c}.flatten(), {c2}.flatten())
torch.dot({c}.flatten(), {c2}.flatten())
torch.outer({c}.flatten()[:4], {c2}.flatten()[:3])
torch.einsum('...i,...i->...', {c}, {c2}.conj())
torch.fft.fft({x}, dim={d})
torch.fft.ifft({c}, dim={d})
torch.fft.rfft({x}, dim={d})
torch.fft.hfft({c}, n=5, dim={d})
torch.fft.fft2({c})
torch.fft.fftshift({c})
torch.fft.irfft({c}, n=4, dim={d})
torch.linalg.inv({c} @ {c}.mH + torch.eye({c}.shape[-2], dtype={c}.dtype) * 3)
torch.linalg.cholesky({c} @ {c}.mH + torch.eye({c}.shape[-2], dtype={c}.dtype) * 3).abs()
torch.linalg.solve({c} @ {c}.mH + torch.eye({c}.shape[-2], dtype={c}.dtype) * 5, {c})
torch.linalg.det({c}[..., :2, :2])
torch.linalg.eigvalsh({c} @ {c}.mH)
{c}.to(torch.complex64)
{c}.to(torch.complex128)
{c}.transpose({d}, {e})
{c}.flatten()
{c}.unsqueeze({d})
{c}.diagonal()
{c}[{k}]
{c}[..., {k}:]
{c}[{i}]
{c}.flip({d})
{c}.roll({n}, {d})
torch.cat([{c}, {c2}], {d})
torch.cat([{c}, {x}], {d})
torch.stack([{c}, {c2}.conj()], {d})
torch.where({m}, {c}, {f})
torch.where({c}.real > {f}, {c}, {c2})
{c}.masked_fill({c}.imag > 0, {f})
{c}.tril()
{c}.expand({n}, *{c}.shape)
{c}.index_select({d}, {i0})
{c}.gather({d}, torch.zeros_like({c}, dtype=torch.int64))
{c} == {c2}
torch.lerp({c}, {c2}, {p})
torch.addcmul({c}, {c2}, {c}, value={p})
torch.addmm({c}, {c}, {c2})
torch.diff({c}, dim={d})
torch.kron({c}[:2], {c2}[:2])
torch.isreal({c})
F.pad({c}, (1, {n}))
F.linear({c}, {c2})
{c}.repeat_interleave(2, {d})
{c}.type_as({x})
{c}.real.to({x}.dtype)
torch.rsub({c}, {c2})
torch.mean({c})
torch.count_nonzero({c}, dim={d})
torch.stft({x}.flatten(), 4, 2, window=torch.ones(4, dtype={x}.dtype), return_complex=True, center=False)
"""

COMPLEX_WRITES = """
{c}.add_({c2})
{c}.mul_({x})
{c} *= {f}
{c} += 1j
{c}.real.mul_({f})
{c}.imag.zero_()
{c}.real[..., 0] = {f}
torch.view_as_real({c}.resolve_conj()).mul_({f})
{c}[{k}] = {f} + 1j
{c}[..., {k}] = {x}.sum()
{c}[{c}.real > 0] = {f}j
{c}.copy_({x})
{c}.copy_({c2}.conj())
{c}.conj_physical_()
{c}.neg_()
{c}.t_()
{c}.sin_()
{c}.div_({c2} + 8)
{c}.index_add_({d}, {i0}, {c}.detach().index_select({d}, {i0}), alpha={p})
{c}.fill_({f})
torch.mul({c}, {c2}, out={c})
"""

INTEGERS = """
({x} * 3).round().to(torch.int64)
({x} * 3).round().to(torch.int32)
({x} * 3).to(torch.int16)
({x} * 3).to(torch.int8)
({x}.abs() * 9).to(torch.uint8)
{m}.to(torch.int64)
{w} + {w2}
{w} * {w2}
{w} - 1
{w} // {n}
{w} % {n}
{w}.fmod({n})
{w} / {n}
{w} / ({w2} * {w2} + 1)
torch.div({w}, {n}, rounding_mode='floor')
torch.div({w}, -{n}, rounding_mode='trunc')
torch.div({x}, {p}, rounding_mode='floor')
{w} // ({w2} * {w2} + 1)
{w} * {x}
{x} + {w}
{w} * {f}
{w} ** 2
{w} << 1
{w} >> 1
{w} & {w2}
{w} | {n}
{w} ^ {w2}
~{w}
-{w}
{w}.abs()
{w}.sign()
{w}.clamp(-1, {n})
{w}.clamp(min={w2})
torch.maximum({w}, {w2})
torch.gcd({w}, {w2})
torch.lcm({w} % 7, {w2} % 5)
{w}.sum()
{w}.sum({d})
{w}.sum({d}, dtype=torch.int32)
({w} % 3).prod({d})
{w}.cumsum({d})
({w} % 3).cumprod({d})
{w}.max({d}).values
{w}.amin({d})
{w}.min({d}).indices
{w}.argmax({d}, keepdim=True)
{w}.sort({d}, stable=True).indices
{w}.sort({d}).values
{w}.median({d}).values
{w}.float().mean({d})
{w}.double().std({d})
{w}.flip({d})
{w}.roll(1, {d})
{w}.to({x}.dtype)
{w}.to(torch.int32)
{w}.to(torch.uint8)
{w}.to(torch.bool)
{w}.bool().to({w2}.dtype)
{w} == {w2}
{w} > 0
{w}.sin()
torch.sqrt({w}.abs())
torch.sigmoid({w})
torch.true_divide({w}, {n})
torch.where({w} > 0, {x}, {w})
torch.where({w} > 0, {w}, {w2})
torch.isin({w}, torch.tensor([0, 1, 2]))
torch.unique({w})
torch.unique({w}, return_inverse=True)[1]
torch.unique({w}, return_counts=True)[1]
torch.unique_consecutive({w})
torch.bincount({w}.flatten().abs().long())
F.one_hot({w}.abs().long() % 4, 4)
{x}[{w}.flatten().long()[:3] % {x}.shape[0]]
{x}.take({w}.long() % {x}.numel())
{x}.gather({d}, {w}.long() % {x}.shape[{d}])
torch.cat([{w}, {w2}], {d})
torch.stack([{w}, {w2}], {d})
{w}.view(torch.uint8)
{w} @ {w2}
{w}.diff(dim={d})
{w}.transpose({d}, {e})
{w}.unsqueeze({d})
{w}[..., {k}:]
{w}[{k}]
{w}.repeat_interleave({n})
{w}.tril()
torch.searchsorted({w}.flatten().sort().values, {w2}.contiguous())
torch.add({w}, {x}, alpha={n})
torch.add({w}, {w2}, alpha={n})
torch.arange({n}, {n} + 7, 2)
torch.bitwise_left_shift({w}, 1)
torch.logical_xor({w}, {w2})
torch.tensordot({w}, {w2}, 1)
torch.histc({w}.float(), 4, -2, 2)
{w}.topk(1, {d}).values
{w}.count_nonzero({d})
{w}.remainder(-{n})
torch.rsub({w}, {w2})
torch.addcmul({w}, {w2}, {w})
torch.lerp({x}, {w}.to({x}.dtype), {p})
torch.copysign({w}, {w2})
torch.full_like({w}, {n})
torch.full_like({w}, {f}, dtype={x}.dtype)
torch.zeros_like({w}) + {w2}
torch.linalg.vector_norm({w}.float(), dim={d})
torch.prod({m}, {d})
torch.nn.functional.pad({w}, (1, {n}), value={n})
torch.heaviside({w}, {w2})
torch.hypot({x}, {w}.to({x}.dtype))
torch.atan2({w}, {w2} * {w2} + 1)
torch.floor({x}).to(torch.int32)
torch.ldexp({x}, {w} % 4)
torch.frexp({x}).exponent
torch.signbit({w})
torch.trunc({x}).to({w}.dtype)
"""

INTEGER_WRITES = """
{w} += {w2}
{w} *= 2
{w} -= {m}
{w} //= {n}
{w} &= {w2}
{w} ^= 1
{w} <<= 1
{w}.add_({w2}, alpha={n})
{w}.clamp_(-3, 3)
{w}.neg_()
{w}.remainder_({n})
{w}.fill_({n})
{w}.zero_()
{w}[{k}] = {n}
{w}[..., {k}] += 1
{w}[{w} > 0] = {n}
{w}[{m}] = 2
{w}.copy_({x})
{x}.copy_({w})
{x}.add_({w})
{x} *= {w}
{x}.masked_fill_({w} > 0, {f})
{x}.index_add_(0, {w}.flatten().long()[:1] % {x}.shape[0], {x}.detach()[:1])
{w}.masked_fill_({q}, {n})
{w}.cumsum_({d})
{w}.t_()
{w}.scatter_({d}, torch.zeros_like({w}, dtype=torch.int64), {w2})
{w}.div_({n}, rounding_mode='floor')
{w}.bitwise_or_({n})
{w}.logical_not_()
torch.add({w}, {w2}, out={w})
torch.sum({w}, {d}, out=torch.empty(0, dtype=torch.int64))
"""

TRUTH = """
{x} > {y}
{x} <= {f}
{x} == {x}.round()
{x} != {y}
{x}.isnan()
{x}.isfinite()
torch.isclose({x}, {y})
torch.eq({x}, {f})
{q} & {q2}
{q} | {q2}
{q} ^ {q2}
~{q}
torch.logical_and({q}, {x})
torch.logical_not({x})
{q}.any({d})
{q}.all({d}, keepdim=True)
{q}.all()
{q}.sum()
{q}.sum({d})
{q}.cumsum({d})
{q}.to({x}.dtype)
{q} * {x}
{x} + {q}
{q} + {q2}
{q} * {q2}
{q} * {f}
{q}.float().mean({d})
{q}.double().cumsum({d})
torch.where({q}, {x}, {y})
torch.where({q}, 1.0, {x})
torch.where({q}, {n}, {f})
torch.where({q}, {x}, {w})
{x}.masked_fill({q}, {f})
{x}.masked_select({q})
{x}[{q}]
{x}[..., {q}]
{x}[:, {q}]
{q}.nonzero()
torch.nonzero({q}, as_tuple=True)[0]
torch.argwhere({q})
{q}.argmax({d})
{q}.max({d}).values
{q}.sort({d}, stable=True).indices
{q}.flip({d})
{q}.unsqueeze({d})
{q}.transpose({d}, {e})
{q}[{k}]
{q}.tril()
{q} == {q2}
{q} < {q2}
torch.cat([{q}, {q2}], {d})
torch.cat([{q}, {x}], {d})
torch.stack([{q}, {q2}])
{q}.logical_xor({w})
{q}.repeat(2, *[1] * {q}.dim())
{q}.view(torch.uint8)
{q}.int() - 1
torch.maximum({q}, {q2})
torch.bitwise_and({q}, {q2})
torch.equal({q}, {q2}) or {q}
{q}.prod({d})
{q} << 1
torch.signbit({x})
"""

TRUTH_WRITES = """
{q} &= {q2}
{q} |= {x} > 0
{q}.logical_not_()
{q}[{k}] = True
{q}.fill_(False)
{q}[{q2}] = False
{q}.masked_fill_({q2}, True)
{x}[{q}] = {f}
{x}[{q}] *= {f}
{x}.masked_scatter_({q}, {y}.detach() * 1)
{x}.mul_({q})
{x} += {q}
{q}.copy_({x})
torch.logical_and({q}, {q2}, out={q})
torch.gt({x}, {y}, out={q})
"""

STEPS = """
{x}.sum({d}, dtype=torch.float64)
{x}.cumsum({d}, dtype=torch.float32)
{x}.mean({d}, dtype=torch.float32)
{x}.softmax({d}, dtype=torch.float32)
{x}.cummin({d})[0]
{x}.cummax({d})[1]
{x}.mode({d}).values
{x}.nanmedian({d}).values
{x}.nansum({d})
{x}.nanquantile(0.5, dim={d}) if {x}.dtype in (torch.float32, torch.float64) else {x} * 1
{x}.sort({d})[1]
{x}.sort({d}, stable=True).values
torch.msort({x})
{x}.topk(1, {d}, largest=False).indices
torch.std_mean({x}, {d})[0]
{x}.var(correction=0)
{x}.argmin()
torch.cov({x})
torch.cumulative_trapezoid({x}, dim={d})
torch.gradient({x}, dim={d})[0]
torch.logaddexp2({x}, {y})
torch.frac({x})
torch.fmod({x}, {p})
torch.remainder({x}, -{p})
torch.floor_divide({x}, {p})
torch.round({x}, decimals=1)
torch.float_power({x}.abs() + {p}, {p})
torch.pow({f}, {x}) if {f} > 0 else torch.pow({p}, {x})
torch.nextafter({x}, {y})
torch.ldexp({x}, torch.tensor({n}))
torch.special.entr({x}.abs() + {p})
torch.special.log_ndtr({x})
torch.special.bessel_j0({x}.detach())
torch.special.multigammaln({x}.abs() + 3, 2)
torch.polygamma(1, {x}.abs() + {p})
torch.mvlgamma({x}.abs() + 3, 2)
torch.where({x} > {y}, {x}, {y}.double())
torch.cat([{x}, {y}.double()], {d})
torch.cat([{x}, {x}.half()], {d})
torch.stack([{x}, {y}.float()], -1)
torch.clamp({x}, {y} - 1, {y} + 1)
torch.clamp({x}, max={f})
torch.clip({x}, torch.tensor({f}), None)
torch.einsum('i...,j...->ij', {x}, {y})
torch.einsum('...i->...', {x})
torch.einsum('ii->i', {x})
torch.einsum('ij->ji', {x})
torch.einsum('ij,jk,kl->il', {x}, {x}.mT, {x})
torch.einsum('bij,bjk->bik', {x}, {x}.mT)
torch.einsum('...ab,...cb->...ac', {x}, {y})
torch.einsum('ij,ij', {x}, {y})
torch.inner({x}, {y})
torch.mv({x}, {y})
torch.bmm({x}, {x}.mT)
torch.addmv({z}, {x}, {y})
torch.addr({x}, {y}, {z})
torch.addbmm({z}, {x}, {y})
torch.linalg.multi_dot([{x}, {x}.mT, {x}])
torch.linalg.matrix_norm({x})
torch.linalg.matrix_norm({x}, 1)
torch.linalg.matrix_power({x}, {n})
torch.linalg.matrix_exp({x} * 0.2)
torch.linalg.slogdet({x} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype))[1]
torch.linalg.eigvalsh({x} @ {x}.mT + torch.diag(torch.arange(1.0, 1 + {x}.shape[-2], dtype={x}.dtype)))
torch.linalg.svdvals({x} + {y}.cos())
torch.linalg.qr({x})[1].abs()
torch.linalg.pinv({x} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype))
torch.linalg.lu_factor({x} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype) * 3)[0]
torch.linalg.solve_triangular({x}.tril() + torch.eye({x}.shape[-1], dtype={x}.dtype) * 4, {x}, upper=False)
torch.linalg.vander({x}.flatten()[:3])
torch.linalg.cross({x}[..., :3], {x}[..., :3].flip(0))
torch.cholesky_inverse(torch.eye(3, dtype={x}.dtype) * (1 + {x}.abs().sum()))
torch.trace({x})
torch.diag({x})
torch.diagflat({x}.flatten()[:3])
torch.tril_indices({n}, 3)
torch.fliplr({x})
torch.column_stack([{x}, {x} * 2])
torch.dstack([{x}, {x}])
torch.narrow_copy({x}, {d}, 0, 1)
torch.take_along_dim({x}, {x}.argsort({d}, stable=True), {d})
torch.index_reduce({x}, {d}, {i0}, {x}.index_select({d}, {i0}) * {p}, 'amax')
{x}.scatter_reduce({d}, torch.zeros_like({x}, dtype=torch.int64), {x} * {p}, 'mean', include_self=False)
{x}.scatter_reduce({d}, torch.zeros_like({x}, dtype=torch.int64), {x} * {p}, 'sum')
{x}.scatter_reduce({d}, torch.zeros_like({x}, dtype=torch.int64), {x} * {p}, 'prod')
{x}.scatter({d}, torch.zeros_like({x}, dtype=torch.int64).narrow({d}, 0, 1), {x}.narrow({d}, 0, 1) * 2)
{x}.index_put(({i},), {x}[{i}] * 2)
{x}.index_copy({d}, {i0}, {x}.index_select({d}, {i0}) * {f})
{x}.masked_scatter({m}, {y} + 1)
{x}.put(torch.tensor([0, -1]), torch.tensor([{f}, {p}], dtype={x}.dtype))
{x}[{i}, {i}]
{x}[{i}[:, None], {i}]
{x}[:, {i}]
{x}[{i}, :, {i}]
{x}[{k}, ..., {j}]
{x}[None, {j}]
{x}[{j}, ..., {k}:]
{x}[..., {j}, {j}]
{x}[[0, -1]]
{x}[[0], {k}]
{x}[..., True]
{x}[torch.tensor(True)]
{x}[{m}, None]
{x}[{i}, ::2]
{x}[..., {m}.any()]
{x}[{i}].t()
{x}.unfold({d}, 2, 1)
{x}.unfold({d}, {n}, 2).sum(-1)
{x}.clone().as_strided((2, 2), (2, 1))
{x}.clone().as_strided((2,), (2,), 1)
{x}.expand(2, *{x}.shape).contiguous()
{x}.expand(2, *{x}.shape).reshape(-1)
{x}.view({x}.dtype)
{x}.float().view(torch.int32)
{x}.double().view(torch.float32).isnan()
{x}.to(torch.float16)
{x}.to({y})
{x}.to(dtype={y}.dtype, copy=True)
{x}.to(memory_format=torch.preserve_format)
{x}.sum_to_size({y}.shape)
{x}.new_zeros({n}) + {x}.sum()
{x}.numel() * {x}
{x}.size({d}) + {x}
{x}.shape[0] * {y}
{x}.dsplit(1)[0]
{x}.hsplit(1)[0]
{x}.movedim((0, -1), (-1, 0))
{x}.squeeze((0, -1))
{x}.ravel()
{x}.unflatten(-1, (-1, 1))
{x}.tensor_split((1,), {d})[0]
torch.split({x}, [1, {x}.shape[{d}] - 1], {d})[1]
torch.vsplit({x}, 2)[0]
torch.permute_copy({x}, ({perm},))
torch.atleast_3d({x})
torch.ravel({x}).view(-1, 1)
torch.block_diag({x}, {x} * 2)
torch.broadcast_tensors({x}, {y})[0]
torch.cdist({x}, {x}.flip(0) + {p}, p=1.0)
torch.renorm({x}, 1, {d}, {p})
torch.bucketize({x}.detach(), torch.tensor([-1.0, 0.0, 1.0], dtype={x}.dtype), right=True)
torch.nn.functional.normalize({x}, p=1.0, dim={d})
torch._foreach_add([{x}, {y}], {f})[1]
torch._foreach_mul([{x}, {y}], [{f}, {p}])[0]
torch._foreach_norm([{x}, {y}])[0]
torch._foreach_sqrt([{x}.abs() + {p}])[0]
torch._foreach_addcmul([{x}], [{y}], [{z}], {p})[0]
torch._foreach_lerp([{x}], [{y}], {p})[0]
"""

WEIGHTED = """
F.conv1d({x}.reshape(1, 2, -1), V((4, 1, 2)), V((4,)), groups=2, padding='same')
F.conv2d({x}.reshape(1, 2, -1, {x}.shape[-1]), V((4, 2, 1, 1)), V((4,)))
F.conv2d({x}.reshape(1, 2, -1, {x}.shape[-1]), V((2, 1, 3, 3)), padding=1, groups=2)
F.conv2d({x}.reshape(1, 1, -1, {x}.shape[-1]), V((2, 1, 2, 2)), padding=2, dilation=2, stride=2)
F.conv2d({x}.reshape(1, 2, -1, {x}.shape[-1]).to(memory_format=torch.channels_last), V((3, 2, 1, 3)))
F.conv2d({x}.reshape(2, 1, 1, -1).expand(2, 3, 2, -1), V((2, 3, 2, 2)), padding=(0, 1))
F.conv3d({x}.reshape(1, 1, 1, -1, {x}.shape[-1]), V((2, 1, 1, 2, 2)), padding=1)
F.conv_transpose2d({x}.reshape(1, 2, -1, {x}.shape[-1]), V((2, 2, 2, 2)), stride=2, output_padding=1)
F.conv_transpose2d({x}.reshape(1, 2, -1, {x}.shape[-1]), V((2, 1, 2, 2)), groups=2, padding=1)
F.linear({x}, V((3, {x}.shape[-1])), V((3,)))
F.linear({x}.unsqueeze(0), V((2, {x}.shape[-1])))
F.bilinear({x}, {x} * 2, V((2, {x}.shape[-1], {x}.shape[-1])))
F.layer_norm({x}, {x}.shape[-1:], V(({x}.shape[-1],)), V(({x}.shape[-1],)))
F.layer_norm({x}, {x}.shape[-2:], eps=1e-3)
F.rms_norm({x}, {x}.shape[-1:], V(({x}.shape[-1],)))
F.group_norm({x}.reshape(1, 4, -1), 2, V((4,)), V((4,)))
F.batch_norm({x}.reshape(-1, {x}.shape[-1]), V(({x}.shape[-1],)), V(({x}.shape[-1],)).abs() + 1)
F.batch_norm({x}.reshape(2, 2, -1), V((2,)), V((2,)).abs(), V((2,)), V((2,)), training=True)
F.instance_norm({x}.reshape(1, 2, -1))
F.local_response_norm({x}.reshape(1, 2, -1), 2)
F.max_pool1d({x}.reshape(1, 1, -1), 3, stride=2, padding=1, return_indices=True)[1]
F.max_pool2d({x}.reshape(1, 1, -1, {x}.shape[-1]), 2, stride=1, dilation=1, ceil_mode=True)
F.max_pool2d({x}.reshape(1, 1, -1, {x}.shape[-1]).contiguous(memory_format=torch.channels_last), 2)
F.avg_pool2d({x}.reshape(1, 1, -1, {x}.shape[-1]), 2, padding=1, count_include_pad=False)
F.lp_pool1d({x}.abs().reshape(1, 1, -1) + {p}, 2, 2)
F.adaptive_max_pool1d({x}.reshape(1, 1, -1), 2)
F.adaptive_avg_pool1d({x}.reshape(1, 1, -1), 3)
F.fold(F.unfold({x}.reshape(1, 1, 4, -1), (2, 1)), (4, {x}.numel() // 4), (2, 1))
F.interpolate({x}.reshape(1, 1, -1, {x}.shape[-1]), scale_factor=1.5, mode='bicubic', align_corners=True)
F.interpolate({x}.reshape(1, 1, -1, {x}.shape[-1]), size=2, mode='area')
F.interpolate({x}.reshape(1, 1, -1, {x}.shape[-1]), size=(2, 3), mode='bilinear', antialias=True)
F.interpolate({x}.reshape(1, 1, -1), size=5, mode='nearest-exact')
F.grid_sample({x}.reshape(1, 1, -1, {x}.shape[-1]), V((1, 2, 3, 2)).tanh(), align_corners=False)
F.affine_grid(V((1, 2, 3)), (1, 1, 2, {n}), align_corners=True)
F.scaled_dot_product_attention({x}[None], {x}[None], {x}[None] * 2, is_causal=True)
F.scaled_dot_product_attention({x}, {x}, {x} * 2, attn_mask=V(({x}.shape[-2], {x}.shape[-2])))
F.scaled_dot_product_attention({x}, {x}, {x}, attn_mask=V(({x}.shape[-2], {x}.shape[-2])) > -9, scale={p})
F.embedding_bag({i}[None], {x}, mode='sum')
F.embedding({i}, {x}, padding_idx=0)
F.multi_margin_loss({x}, {i}) if {x}.dim() == 2 and {x}.shape[0] == 3 else {x} * 1
F.cross_entropy({x}, {x}.detach().argmax(1), label_smoothing=0.1)
F.cross_entropy({x}, {x}.softmax(1).detach(), reduction='sum')
F.cross_entropy({x}, {x}.detach().argmax(1), ignore_index=0, reduction='none')
F.nll_loss(F.log_softmax({x}, 1), {x}.detach().argmax(1), weight=V(({x}.shape[1],)).abs())
F.l1_loss({x}, {y}, reduction='none')
F.mse_loss({x}, {y}, reduction='sum')
F.binary_cross_entropy(torch.sigmoid({x}), torch.sigmoid({y}).detach())
F.gaussian_nll_loss({x}, {y}, {z}.abs() + {p})
F.poisson_nll_loss({x}, {y}.abs())
F.soft_margin_loss({x}, {y}.detach().sign())
F.triplet_margin_loss({x}, {y} + 1, {z} - 1)
F.cosine_embedding_loss({x}, {y} + 1, torch.ones({x}.shape[0], dtype={x}.dtype))
F.margin_ranking_loss({x}, {y}, {z}.detach().sign())
F.hinge_embedding_loss({x}, {y}.detach().sign())
F.prelu({x}, V((1,)).abs())
F.celu({x}, {p})
F.selu({x})
F.mish({x})
F.softsign({x})
F.tanhshrink({x})
F.softshrink({x}, {p})
F.hardshrink({x}, {p})
F.hardsigmoid({x})
F.relu6({x})
F.rrelu({x})
F.pixel_unshuffle({x}.reshape(1, 1, 2, -1), 2)
F.channel_shuffle({x}.reshape(1, 4, -1, 1), 2)
F.pad({x}.reshape(1, 1, -1, {x}.shape[-1]), (1, 0, 1, 1), mode='replicate')
F.pad({x}, (0, 0, 1, {n}), value={f}) if {x}.dim() > 1 else F.pad({x}, (2, 1))
F.pdist({x}.reshape(-1, {x}.shape[-1]) + V(({x}.shape[-1],)))
torch.gru_cell({x}, {x}[:, :2], V((6, {x}.shape[1])), V((6, 2)), V((6,)), V((6,)))
torch.lstm_cell({x}, ({x}[:, :2], {x}[:, :2]), V((8, {x}.shape[1])), V((8, 2)), V((8,)), V((8,)))[1]
torch.rnn_tanh_cell({x}, {x}[:, :2], V((2, {x}.shape[1])), V((2, 2)))
torch.nn.functional.glu({x}.repeat(2, *[1] * ({x}.dim() - 1)), 0)
torch.addmm(V((2,)), {x}, V(({x}.shape[-1], 2)))
torch.func.functional_call(torch.nn.Linear(2, 2), dict(weight=V((2, 2)), bias=V((2,))), ({x}.reshape(-1, 2),))
torch.cosine_similarity({x}, V(({x}.shape[-1],)), dim=-1)
torch.conv_tbc({x}.reshape(-1, 1, 2), V((2, 2, 3)), V((3,)))
"""

OUT_WRITES = """
torch.sub({y}, {z}, out={x})
torch.sin({y}, out={x})
torch.div({y}, {p}, out={x})
torch.maximum({y}, {z}, out={x})
torch.cumsum({y}, {d}, out={x})
torch.softmax({y}, {d}, out={x})
torch.cat([{y}[:1], {z}[1:]], out={x})
torch.where({y} > {z}, {y}, {z}, out={x})
torch.clamp({y}, -1, {p}, out={x})
torch.index_select({y}, 0, torch.arange({y}.shape[0]), out={x})
torch.gather({y}, {d}, torch.zeros_like({y}, dtype=torch.int64), out={x})
torch.tril({y}, out={x})
torch.lerp({y}, {z}, {p}, out={x})
torch.addcmul({y}, {z}, {y}, value={p}, out={x})
torch.add({y}, {z}, out={x}.view({x}.shape))
torch.pow({y}, 2, out={x})
torch._foreach_add_([{x}, {x}.clone()], {p})
torch._foreach_mul_([{x}, {x}.clone()], {p})
torch._foreach_add_([{x}], [{y}], alpha={p})
torch._foreach_zero_([{x}])
torch._foreach_clamp_min_([{x}], {f})
torch._foreach_copy_([{x}], [{y}])
torch._foreach_addcdiv_([{x}], [{y}], [{z}.abs() + {p}], {p})
torch._foreach_lerp_([{x}], [{y}], {p})
{x}.scatter_reduce_({d}, torch.zeros_like({x}, dtype=torch.int64), {x}.detach() * {p}, 'amin')
{x}.index_reduce_({d}, {i0}, {x}.detach().index_select({d}, {i0}) * {p}, 'mean')
{x}.put_(torch.tensor([0, -1]), torch.tensor([{f}, {p}], dtype={x}.dtype), accumulate=True)
{x}.masked_scatter_({m}, {y}.detach() + 1)
{x}.index_put_(({i}, {i}), torch.tensor({f}, dtype={x}.dtype), accumulate=True)
{x}[{i}, {i}] = {f}
{x}[{i}[:, None], {j}] = {f}
{x}[:, {j}] *= {f}
{x}[{j}] -= {y}
{x}[{k}, {j}] = {f}
{x}[..., None][{k}] = {y}.sum()
{x}[{m}] = {y}[{m}]
{x}[{i}] = {x}.detach()[{i}].flip(0)
{x}[1:] = {x}[:-1].clone()
{x}[...] = {y}
{x}[True] = {f}
{x}.data.mul_({f})
{x}.diagonal().mul_({f})
{x}.T.mul_({y}.T) if {x}.dim() == 2 else {x}.mul_({y})
{x}.unfold({d}, 1, 1).add_({f})
{x}.expand({x}.shape).mul_({f})
{x}.as_strided((2,), (1,)).mul_({f})
{x}.select({d}, {k}).copy_({y}.sum())
{x}.narrow({d}, 0, 1).zero_()
{x}.chunk(2, {d})[0].mul_({f})
{x}.select({d}, {k}).add_(1)
{x}.narrow({d}, {k}, 1).add_({f})
{x}.sigmoid_()
{x}.abs_()
{x}.pow_(2)
{x}.floor_()
{x}.round_()
{x}.sign_()
{x}.fmod_({p})
{x}.remainder_({p})
{x}.atan2_({y}.abs() + {p})
{x}.addmm_({y}, {z})
{x}.addbmm_({y}, {z})
{x}.baddbmm_({y}, {z})
{x}.renorm_(2, {d}, {p})
{x}.cumprod_({d})
{x}.clamp_(min={y})
{x}.hypot_({y})
{x}.nan_to_num_()
{x}.fill_diagonal_({f})
{x}.triu_()
{x}.squeeze_({d})
{x}.swapaxes_({d}, {e})
{x}.copy_({y}.double())
{x}.copy_({y}.sum())
{x}.add_({y}.double())
{x}.mul_({y}.half())
{x} /= {p}
{x} //= {p}
{x} %= {p}
{x} **= 2
{x} @= {y}
{x} -= {y}.double()
{x} *= {x}
{x} += {x}.sum()
{x} += {x}.T if {x}.dim() == 2 and {x}.shape[0] == {x}.shape[1] else 1
F.elu({x}, inplace=True)
F.leaky_relu({x}, 0.2, inplace=True)
F.silu({x}, inplace=True)
F.hardswish({x}, inplace=True)
F.threshold({x}, {p}, {f}, inplace=True)
F.dropout({x}, 0.0, inplace=True)
F.selu({x}, inplace=True)
"""
