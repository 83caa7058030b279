"""The arguments of an attention call as one value, for those that ask which kernel would take it."""


class SDPAParams:
    """What `scaled_dot_product_attention` is called with."""

    __slots__ = ("_values",)

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa, /):
        self._values = (query, key, value, attn_mask, float(dropout), bool(is_causal), bool(enable_gqa))

    query = property(lambda self: self._values[0])
    key = property(lambda self: self._values[1])
    value = property(lambda self: self._values[2])
    attn_mask = property(lambda self: self._values[3])
    dropout = property(lambda self: self._values[4])
    is_causal = property(lambda self: self._values[5])
    enable_gqa = property(lambda self: self._values[6])
