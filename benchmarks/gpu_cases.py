"""What `benchmarks.first_gpu` times beside models: large kernels, gradients, optimizers, small calls.

Each function takes the library and the number of elements of its large operands, and gives calls by name.
"""


def _numbers(torch, n):
    side = max(16, int(n**0.5) // 16 * 16)
    return side, lambda *shape, dtype=torch.float32: torch.randn(*shape, device="cuda", dtype=dtype)


def pointwise(torch, n):
    side, normal = _numbers(torch, n)
    F, half = torch.nn.functional, torch.bfloat16
    a, b, m, h, row = normal(n), normal(n), normal(side, side), normal(side, side, dtype=half), normal(side)
    integers, mask = torch.randint(0, 1000, (n,), device="cuda"), m > 0
    return {
        "add": lambda: a + b,
        "multiplied by a number": lambda: a * 2.5,
        "exp": lambda: a.exp(),
        "erf": lambda: a.erf(),
        "pow": lambda: b.abs().pow(1.7),
        "gelu": lambda: F.gelu(a),
        "gelu bf16": lambda: F.gelu(h),
        "add bf16": lambda: h + h,
        "add int64": lambda: integers + integers,
        "add a row": lambda: m + row,
        "add a column": lambda: m + row[:, None],
        "where": lambda: torch.where(mask, m, 0.0),
        "masked_fill": lambda: m.masked_fill(mask, 0.0),
        "to bf16": lambda: a.to(half),
        "outer": lambda: torch.outer(row, row),
        "mse_loss": lambda: F.mse_loss(m, m),
        "bce with logits": lambda: F.binary_cross_entropy_with_logits(m, m),
    }


def layout(torch, n):
    side, normal = _numbers(torch, n)
    m, h = normal(side, side), normal(side, side, dtype=torch.bfloat16)
    images = normal(max(1, n // (64 * 56 * 56)), 64, 56, 56)
    F = torch.nn.functional
    return {
        "clone": lambda: m.clone(),
        "fill": lambda: m.fill_(1.0),
        "zeros": lambda: torch.zeros(n, device="cuda"),
        "transposed copy": lambda: m.t().contiguous(),
        "transposed copy bf16": lambda: h.t().contiguous(),
        "channels last": lambda: images.contiguous(memory_format=torch.channels_last),
        "every other column": lambda: m[:, ::2].contiguous(),
        "cat": lambda: torch.cat([m, m]),
        "stack last": lambda: torch.stack([m, m], -1),
        "repeat": lambda: m.repeat(2, 1),
        "flip": lambda: m.flip(1),
        "roll": lambda: m.roll(1, 1),
        "tril": lambda: m.tril(),
        "pad": lambda: F.pad(images, (1, 1, 1, 1)),
        "unfold": lambda: F.unfold(images, 3),
    }


def reductions(torch, n):
    side, normal = _numbers(torch, n)
    m, h, a = normal(side, side), normal(side, side, dtype=torch.bfloat16), normal(n)
    mask, images = m > 0, normal(max(1, n // (64 * 56 * 56)), 64, 56, 56)
    return {
        "sum": lambda: a.sum(),
        "sum of rows": lambda: m.sum(1),
        "sum of columns": lambda: m.sum(0),
        "sum of rows bf16": lambda: h.sum(1),
        "sum by channel": lambda: images.sum((0, 2, 3)),
        "max": lambda: a.max(),
        "max of rows": lambda: m.max(1),
        "argmax of columns": lambda: m.argmax(0),
        "var of rows": lambda: m.var(1),
        "norm": lambda: a.norm(),
        "any": lambda: mask.any(),
        "prod of rows": lambda: m.prod(1),
        "logsumexp": lambda: m.logsumexp(1),
        "cumsum of rows": lambda: m.cumsum(1),
        "cumsum of columns": lambda: m.cumsum(0),
        "cumsum": lambda: a.cumsum(0),
        "cumprod of rows": lambda: m.cumprod(1),
    }


def layers(torch, n):
    side, normal = _numbers(torch, n)
    F, half = torch.nn.functional, torch.bfloat16
    m, h, weight = normal(side, side), normal(side, side, dtype=half), normal(side)
    labels = torch.randint(0, side, (side,), device="cuda")
    images = normal(max(1, n // (64 * 56 * 56)), 64, 56, 56)
    last, kernel = images.contiguous(memory_format=torch.channels_last), normal(64, 64, 3, 3)
    depthwise, grid = normal(64, 1, 3, 3), torch.zeros(len(images), 56, 56, 2, device="cuda")
    return {
        "softmax": lambda: m.softmax(1),
        "softmax bf16": lambda: h.softmax(1),
        "softmax of columns": lambda: m.softmax(0),
        "log_softmax": lambda: m.log_softmax(1),
        "cross_entropy": lambda: F.cross_entropy(m, labels),
        "layer_norm": lambda: F.layer_norm(m, (side,), weight, weight),
        "layer_norm bf16": lambda: F.layer_norm(h, (side,)),
        "rms_norm": lambda: F.rms_norm(m, (side,), weight),
        "group_norm": lambda: F.group_norm(images, 8),
        "batch_norm": lambda: F.batch_norm(images, None, None, training=True),
        "batch_norm, channels last": lambda: F.batch_norm(last, None, None, training=True),
        "convolution": lambda: F.conv2d(images, kernel, padding=1),
        "convolution, channels last": lambda: F.conv2d(last, kernel, padding=1),
        "convolution bf16": lambda: F.conv2d(images.to(half), kernel.to(half), padding=1),
        "convolution bf16, channels last": lambda: F.conv2d(last.to(half), kernel.to(half), padding=1),
        "convolution by channel": lambda: F.conv2d(images, depthwise, padding=1, groups=64),
        "transposed convolution": lambda: F.conv_transpose2d(images, kernel, stride=2),
        "max_pool2d": lambda: F.max_pool2d(images, 2),
        "avg_pool2d": lambda: F.avg_pool2d(images, 2),
        "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(images, 1),
        "bilinear": lambda: F.interpolate(images, scale_factor=2, mode="bilinear"),
        "nearest": lambda: F.interpolate(images, scale_factor=2),
        "grid_sample": lambda: F.grid_sample(images, grid, align_corners=False),
    }


def positions(torch, n):
    side, normal = _numbers(torch, n)
    F, m, a = torch.nn.functional, normal(side, side), normal(n)
    at = torch.randint(0, side, (side,), device="cuda")
    anywhere = torch.randint(0, n, (n // 4,), device="cuda")
    table, words = normal(50000, 512), torch.randint(0, 50000, (n // 1024,), device="cuda")
    mask, numbers, edges = m > 0, torch.randint(0, 1000, (n,), device="cuda"), normal(side).sort()[0]
    columns, square = at[None].expand(side, -1), lambda: torch.zeros(side, side, device="cuda")
    return {
        "rows by index": lambda: m[at],
        "columns by index": lambda: m.index_select(1, at),
        "elements by index": lambda: a[anywhere],
        "gather": lambda: m.gather(1, columns),
        "scatter_add": lambda: square().scatter_add_(0, columns, m),
        "index_add": lambda: square().index_add_(0, at, m),
        "embedding": lambda: F.embedding(words, table),
        "one_hot": lambda: F.one_hot(at, side),
        "masked_select": lambda: m[mask],
        "nonzero": lambda: mask.nonzero(),
        "sort of rows": lambda: m.sort(1),
        "sort": lambda: a.sort(),
        "argsort int64": lambda: numbers.argsort(),
        "topk": lambda: m.topk(10, 1),
        "median": lambda: m.median(1),
        "kthvalue": lambda: m.kthvalue(5, 1),
        "unique": lambda: numbers.unique(),
        "searchsorted": lambda: torch.searchsorted(edges, a),
        "bincount": lambda: numbers.bincount(minlength=1000),
        "histc": lambda: a.histc(100),
    }


def products(torch, n):
    side, normal = _numbers(torch, n)
    F, m, h = torch.nn.functional, normal(side, side), normal(side, side, dtype=torch.bfloat16)
    length = max(16, side // 4)
    q, narrow = normal(8, 16, length, 64, dtype=torch.bfloat16), normal(4, 8, length, 64)
    wide = normal(4, 16, side, 128, dtype=torch.bfloat16)
    attention, block = F.scaled_dot_product_attention, m[: side // 4, : side // 4].contiguous()
    return {
        "product": lambda: m @ m,
        "product bf16": lambda: h @ h,
        "linear bf16": lambda: F.linear(h, h, h[0]),
        "batch of products bf16": lambda: q @ q.transpose(-1, -2),
        "matrix by vector": lambda: m @ m[0],
        "addmm": lambda: torch.addmm(m, m, m),
        "einsum": lambda: torch.einsum("bhid,bhjd->bhij", narrow, narrow),
        "attention": lambda: attention(narrow, narrow, narrow),
        "attention bf16": lambda: attention(q, q, q),
        "causal attention bf16": lambda: attention(q, q, q, is_causal=True),
        "long causal attention bf16": lambda: attention(wide, wide, wide, is_causal=True),
        "rfft": lambda: torch.fft.rfft(m),
        "cholesky": lambda: torch.linalg.cholesky(torch.eye(side // 4, device="cuda")),
        "solve": lambda: torch.linalg.solve(block, block[:, :8]),
        "eigvalsh": lambda: torch.linalg.eigvalsh(block + block.t()),
    }


def random(torch, n):
    side, normal = _numbers(torch, n)
    a, probabilities = normal(n), normal(side, side).softmax(1)
    return {
        "rand": lambda: torch.rand(n, device="cuda"),
        "randn": lambda: torch.randn(n, device="cuda"),
        "randperm": lambda: torch.randperm(n // 16, device="cuda"),
        "dropout": lambda: torch.nn.functional.dropout(a, 0.3),
        "bernoulli": lambda: torch.bernoulli(probabilities),
        "multinomial": lambda: probabilities.multinomial(1),
    }


def gradients(torch, n):
    side, normal = _numbers(torch, n)
    F, half = torch.nn.functional, torch.bfloat16
    m, h, weight, a = normal(side, side), normal(side, side, dtype=half), normal(side), normal(n)
    images, kernel = normal(max(1, n // (64 * 56 * 56)), 64, 56, 56), normal(64, 64, 3, 3)
    length = max(16, side // 4)
    q, narrow = normal(8, 16, length, 64, dtype=half), normal(4, 8, length, 64)
    labels, table = torch.randint(0, side, (side,), device="cuda"), normal(50000, 512)
    words = torch.randint(0, 50000, (n // 1024,), device="cuda")
    attention = F.scaled_dot_product_attention

    def of(f, *operands):
        leaves = [t.detach().clone().requires_grad_() for t in operands]
        out = f(*leaves)
        flow = torch.ones_like(out)
        return lambda: torch.autograd.grad(out, leaves, flow, retain_graph=True)

    return {
        "gradient of attention": of(attention, narrow, narrow, narrow),
        "gradient of attention bf16": of(lambda *qkv: attention(*qkv, is_causal=True), q, q, q),
        "gradient of layer_norm": of(lambda x, w: F.layer_norm(x, (side,), w, w), m, weight),
        "gradient of rms_norm": of(lambda x, w: F.rms_norm(x, (side,), w), m, weight),
        "gradient of group_norm": of(lambda x: F.group_norm(x, 8), images),
        "gradient of batch_norm": of(lambda x: F.batch_norm(x, None, None, training=True), images),
        "gradient of softmax": of(lambda x: x.softmax(1), m),
        "gradient of gelu": of(F.gelu, a),
        "gradient of cumsum": of(lambda x: x.cumsum(1), m),
        "gradient of cross_entropy": of(lambda x: F.cross_entropy(x, labels), m),
        "gradient of embedding": of(lambda t: F.embedding(words, t), table),
        "gradient of rows by index": of(lambda x: x[labels], m),
        "gradient of a product bf16": of(lambda x, y: x @ y, h, h),
        "gradient of convolution": of(lambda x, w: F.conv2d(x, w, padding=1), images, kernel),
        "gradient of convolution bf16": of(
            lambda x, w: F.conv2d(x, w, padding=1), images.to(half), kernel.to(half)
        ),
        "gradient of max_pool2d": of(lambda x: F.max_pool2d(x, 2), images),
        "gradient of avg_pool2d": of(lambda x: F.avg_pool2d(x, 2), images),
        "gradient of bilinear": of(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), images),
    }


def optimizers(torch, n):
    def parameters(count, size):
        made = [torch.nn.Parameter(torch.randn(size, device="cuda")) for _ in range(count)]
        for p in made:
            p.grad = torch.ones_like(p)
        return made

    many, large, found = parameters(200, 1000), parameters(4, n), {}
    for kind in ("AdamW", "SGD"):
        of = getattr(torch.optim, kind)
        found[f"{kind}, 200 parameters"] = of(many, lr=1e-3).step
        found[f"{kind}, 200 parameters, fused"] = of(many, lr=1e-3, fused=True).step
        found[f"{kind}, 4 large parameters"] = of(large, lr=1e-3).step
    found["clip_grad_norm_ of 200"] = lambda: torch.nn.utils.clip_grad_norm_(many, 1.0)
    return found


def small(torch, n):
    x, m, linear = torch.ones(8, device="cuda"), torch.ones(4, 8, device="cuda"), torch.nn.Linear(8, 8).cuda()
    return {
        "small add": lambda: x + 1,
        "small view and add": lambda: m.t()[1:] + 1,
        "small sum": lambda: x.sum(),
        "small softmax": lambda: m.softmax(1),
        "small cat": lambda: torch.cat([m, m]),
        "small product": lambda: m @ m.t(),
        "small linear": lambda: linear(m),
        "item": lambda: x[0].item(),
    }


GROUPS = (pointwise, layout, reductions, layers, positions, products, random, gradients, optimizers, small)
