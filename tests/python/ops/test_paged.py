"""Products and attention of tokens of many texts: as their twins compute them, and equal in any company."""

import pytest

import rushlight as torch

aten = torch.ops.aten
PAGE = 32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "m, n, k", [(1, 5, 7), (3, 64, 40), (70, 100, 33), (8, 640, 320), (2, 1, 1), (0, 4, 3)]
)
def test_rows_of_a_product_do_not_depend_on_each_other(dtype, m, n, k):
    torch.manual_seed(m + n)
    x, w, b = torch.randn(m, k), torch.randn(n, k).to(dtype), torch.randn(n)
    y = aten._row_linear(x, w, b)
    # A processor that multiplies pairs of bfloat16 rounds the rows, too; others do not.
    rows = [x, x.to(dtype).float()]
    expected = [torch.nn.functional.linear(r, w.float(), b) for r in rows]
    assert any(torch.allclose(y, e, atol=1e-4, rtol=1e-4) for e in expected)
    for i in range(m):
        assert torch.equal(aten._row_linear(x[i : i + 1], w, b)[0], y[i])
    # as the twin computes it, in double
    double = aten._row_linear(x.double(), w, b.double())
    torch.testing.assert_close(expected[0].double(), double, atol=1e-4, rtol=1e-4)
    assert aten._row_linear(torch.randn(2, 3, k), w).shape == (2, 3, n)
    assert aten._row_linear(x.to("meta"), w.to("meta"), b.to("meta")).shape == (m, n)


def test_products_that_do_not_fit_are_refused():
    for x, w, b in [
        (torch.ones(2, 3), torch.ones(4, 5), None),
        (torch.ones(2, 3), torch.ones(4), None),
        (torch.ones(2, 3), torch.ones(4, 3), torch.ones(3)),
        (torch.ones(2, 3), torch.ones(4, 3), torch.ones(4).double()),
    ]:
        with pytest.raises(RuntimeError, match="_row_linear"):
            aten._row_linear(x, w, b)


def texts_in_pages(dtype, width, heads=2, pages=30):
    torch.manual_seed(width)
    keys = torch.randn(pages, heads, width, PAGE).to(dtype)
    values = torch.randn(pages, heads, PAGE, width).to(dtype)
    table = torch.randperm(pages)[:12].reshape(3, 4)
    texts = torch.tensor([0] + [1] * 11 + [2] * 5)
    positions = torch.tensor([77, *range(60, 71), *range(5)])
    return keys, values, table, texts, positions


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [8, 12, 64, 80])
@pytest.mark.parametrize("window", [0, 5, 40])
def test_attention_over_pages_is_attention(dtype, width, window):
    keys, values, table, texts, positions = texts_in_pages(dtype, width)
    q = torch.randn(len(texts), 6, width)
    y = aten._paged_attention(q, keys, values, table, texts, positions, None, window)
    twin = aten._paged_attention(q.double(), keys, values, table, texts, positions, None, window)
    torch.testing.assert_close(y.double(), twin, atol=1e-4, rtol=1e-4)
    for i, (text, position) in enumerate(zip(texts.tolist(), positions.tolist())):
        own = table[text]
        first = max(0, position + 1 - window) if window else 0
        k = keys[own].permute(1, 0, 3, 2).reshape(2, -1, width)[:, first : position + 1].double()
        v = values[own].transpose(0, 1).reshape(2, -1, width)[:, first : position + 1].double()
        expected = torch.nn.functional.scaled_dot_product_attention(
            q[i].double()[:, None], k.repeat_interleave(3, 0), v.repeat_interleave(3, 0)
        )[:, 0]
        torch.testing.assert_close(y[i].double(), expected, atol=1e-4, rtol=1e-4)
        alone = aten._paged_attention(
            q[i : i + 1], keys, values, table[text : text + 1], texts[:1], positions[i : i + 1], None, window
        )
        assert torch.equal(alone[0], y[i])


def test_what_no_token_sees_does_not_matter():
    """Pages hold what other texts left there, numbers or not."""
    keys, values, table, texts, positions = texts_in_pages(torch.float32, 16)
    q = torch.randn(len(texts), 2, 16)
    y = aten._paged_attention(q, keys, values, table, texts, positions)
    seen = {
        int(table[t, p // PAGE]) * PAGE + p % PAGE for t, n in ((0, 78), (1, 71), (2, 5)) for p in range(n)
    }
    for place in set(range(30 * PAGE)) - seen:
        keys[place // PAGE, :, :, place % PAGE] = torch.nan
        values[place // PAGE, :, place % PAGE] = torch.inf
    assert torch.equal(aten._paged_attention(q, keys, values, table, texts, positions), y)
    # nor what a later token of the same text is
    keys[table[1, 2], :, :, 70 - 64] = torch.nan
    values[table[1, 2], :, 70 - 64] = torch.nan
    again = aten._paged_attention(q, keys, values, table, texts, positions)
    assert torch.equal(again[:11], y[:11]) and again[11].isnan().all() and torch.equal(again[12:], y[12:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_tokens_are_written_to_their_places(dtype):
    keys, values, *_ = texts_in_pages(dtype, 12)
    source, pages, places = torch.randn(9, 2, 12), torch.randperm(30)[:9], torch.arange(9) * 3
    expected = keys.clone()
    for i in range(9):
        expected[pages[i], :, :, places[i]] = source[i].to(dtype)
    turned = keys.transpose(2, 3)
    assert aten._write_pages_(turned, pages, places, source) is turned
    assert torch.equal(keys, expected)
    aten._write_pages_(values, pages, places, source[:, :, :].flip(0))
    assert torch.equal(values[pages, :, places], source.flip(0).to(dtype))


def test_places_that_are_not_there_are_refused():
    keys, values, table, texts, positions = texts_in_pages(torch.float32, 8)
    q, one = torch.randn(len(texts), 2, 8), torch.tensor([0])

    def attend(**changed):
        given = {"pages": table, "texts": texts, "positions": positions} | changed
        return aten._paged_attention(q, keys, values, *given.values())

    for changed in (
        {"pages": table + 30},
        {"pages": table - 30},
        {"texts": texts + 1},
        {"texts": texts - 1},
        {"positions": positions + 60},
        {"positions": positions - 1},
    ):
        with pytest.raises(IndexError, match="there is no"):
            attend(**changed)
    with pytest.raises(RuntimeError, match="int64"):
        attend(texts=texts[:3])
    with pytest.raises(RuntimeError, match="do not fit"):
        aten._paged_attention(q, keys, values.transpose(2, 3), table, texts, positions)
    for pages, places in ((one + 30, one), (one - 1, one), (one, one + PAGE), (one, one - 1)):
        with pytest.raises(IndexError, match="there is no place"):
            aten._write_pages_(values, pages, places, torch.randn(1, 2, 8))
    with pytest.raises(RuntimeError, match="expected pages of"):
        aten._write_pages_(values, one, one, torch.randn(1, 3, 8))
