"""Programs whose archives are exchanged, written for PyTorch and Rushlight alike."""


def programs(torch):
    """name -> (module, example input)."""
    nn, F = torch.nn, torch.nn.functional

    class Applied(nn.Module):
        """A function of its modules and an input."""

        def __init__(self, function, *modules):
            super().__init__()
            self.function, self.parts = function, nn.ModuleList(modules)

        def forward(self, x):
            return self.function(self.parts, x)

    def attention(parts, x):
        whole = parts[0](x, x, x, need_weights=False)[0]
        return whole.reshape(-1, 8), F.scaled_dot_product_attention(x, x, x)

    def losses(parts, x):
        labels, flat = torch.tensor([1, 2]), x.flatten(1)
        return [
            *(
                F.cross_entropy(flat, labels),
                F.nll_loss(flat, labels),
                F.mse_loss(x, x + 1),
                F.l1_loss(x, x + 1),
            ),
            *(F.smooth_l1_loss(x, x + 2), F.huber_loss(x, x + 2), F.binary_cross_entropy_with_logits(x, x)),
            *(
                F.kl_div(x, x.exp(), reduction="batchmean"),
                F.cosine_embedding_loss(flat, flat, labels * 2 - 3),
            ),
            *(
                F.margin_ranking_loss(x, x + 1, x.sign(), 0.5),
                F.triplet_margin_loss(flat, flat + 1, flat - 2),
            ),
            F.poisson_nll_loss(x, x.abs(), reduction="sum"),
        ]

    def shapes(parts, x):
        return [
            *(
                x.sort(1)[0],
                x.topk(2, 1)[1],
                x.cumsum(1),
                x.std(1),
                x.to(torch.float64),
                x[:, 1:, None],
                x**2,
            ),
            *(
                x[torch.tensor([0, 1])],
                torch.stack([x, x]),
                x.split(2, 2)[1],
                x.unbind(1)[0],
                2**x,
                x // 2,
                x % 2,
            ),
            *(x.masked_fill(x > 0, 1.0), torch.where(x > 0, x, 0.0), x.mean((2, 3)), torch.fft.rfft(x).abs()),
            *(torch.einsum("nchw,ndhw->ncd", x, x), torch.cdist(x, x), F.fold(F.unfold(x, 3), (8, 8), 3)),
            *(F.pad(x, (1, 1, 1, 1), "reflect"), F.pad(x, (1, 1)), F.interpolate(x, size=5, mode="bilinear")),
            *(
                F.interpolate(x, scale_factor=2),
                F.adaptive_max_pool2d(x, 3),
                F.max_pool2d(x, 2),
                F.avg_pool2d(x, 2),
            ),
            *(torch.linalg.solve(x[0, 0] + 9 * torch.eye(8), x[0, 1]), F.one_hot(torch.tensor([1, 2]), 4)),
            *(F.logsigmoid(x), F.softsign(x), F.gelu(x), F.mish(x), F.hardswish(x), F.celu(x), F.glu(x, 3)),
        ]

    def norms(parts, x):
        return [part(x) for part in parts] + [F.layer_norm(x, (8, 8)), F.rms_norm(x, (8,)), F.normalize(x)]

    def without_gradients(parts, x):
        with torch.no_grad():
            y = x * 2
        return y + x

    def last(parts, x):
        return parts[0](x)[0]

    def chained(parts, x):
        for part in parts:
            x = part(x)
        return x

    image, words = torch.randn(2, 3, 8, 8), torch.randn(2, 5, 8)
    places = torch.tensor([[1, 2], [3, 4]])
    return {
        "convolutions": (Applied(chained, nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 3, 3)), image),
        "norms": (Applied(norms, nn.BatchNorm2d(3), nn.GroupNorm(3, 3), nn.InstanceNorm2d(3)), image),
        "losses": (Applied(losses), image),
        "shapes": (Applied(shapes), image),
        "attention": (Applied(attention, nn.MultiheadAttention(8, 2, batch_first=True)), words),
        "transformer": (Applied(chained, nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), words),
        "lstm": (Applied(last, nn.LSTM(8, 5, 2, batch_first=True, bidirectional=True)), words),
        "gru": (Applied(last, nn.GRU(8, 4)), words),
        "embeddings": (
            Applied(lambda p, i: [part(i) for part in p], nn.Embedding(9, 4), nn.EmbeddingBag(9, 4)),
            places,
        ),
        "without gradients": (Applied(without_gradients), image),
    }
