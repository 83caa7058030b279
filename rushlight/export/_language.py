"""Language models of folders that transformers saved, as one file that generates without Python."""

import json
import os
from collections.abc import Callable

import rushlight as torch
from rushlight import _C, nn
from rushlight.nn import functional as F

from ._lower import UnsupportedError
from ._one_file import save_file
from .dynamic_shapes import Dim

PAGE = 32  # positions whose keys and values lie together
_MOST = 1 << 16  # tokens and texts of a run

_aten = torch.ops.aten


def _refuse(what):
    raise UnsupportedError(f"rushlight.export.save_language_model: {what}")


# --- what a folder says -----------------------------------------------------------------------------


class Config:
    """The parts of a config.json that decide what is computed."""

    def __init__(self, content):
        kind = content.get("model_type")
        if kind not in ("gpt2", "llama", "qwen2", "mistral"):
            _refuse(f"the model type is {kind!r}; gpt2, llama, qwen2 and mistral are covered")
        self.kind, get = kind, content.get
        old = kind == "gpt2"
        self.width = content["n_embd" if old else "hidden_size"]
        self.layers = content["n_layer" if old else "num_hidden_layers"]
        self.heads = content["n_head" if old else "num_attention_heads"]
        self.key_heads = self.heads if old else get("num_key_value_heads") or self.heads
        self.head = get("head_dim") or self.width // self.heads
        self.inner = (get("n_inner") or 4 * self.width) if old else content["intermediate_size"]
        self.words = content["vocab_size"]
        self.length = content["n_positions" if old else "max_position_embeddings"]
        self.eps = content["layer_norm_epsilon"] if old else content["rms_norm_eps"]
        self.tied = get("tie_word_embeddings", old)
        self.activation = get("activation_function" if old else "hidden_act", "silu")
        self.attention_bias = kind == "qwen2" or bool(get("attention_bias"))
        self.output_bias = kind != "qwen2" and bool(get("attention_bias"))
        self.mlp_bias = bool(get("mlp_bias"))
        self.windows = self._windows(content)
        self.rope = {"rope_type": "default", "rope_theta": get("rope_theta", 10000.0)}
        self.rope.update(get("rope_scaling") or {})
        self.rope.update(get("rope_parameters") or {})
        self.rope["rope_type"] = self.rope.get("type", self.rope["rope_type"])
        if old and (get("scale_attn_by_inverse_layer_idx") or not get("scale_attn_weights", True)):
            _refuse("attention that is scaled by its layer, or not at all, is not covered")
        if old and get("add_cross_attention"):
            _refuse("cross attention is not covered")

    def _windows(self, content):
        """How far each layer sees; None: without end."""
        window = content.get("sliding_window")
        if self.kind == "qwen2" and not content.get("use_sliding_window"):
            window = None
        kinds = content.get("layer_types") or []
        if not kinds and self.kind == "qwen2":
            first = content.get("max_window_layers", 0)
            kinds = ["sliding_attention" if i >= first else "full_attention" for i in range(self.layers)]
        if self.kind in ("gpt2", "llama") or window is None:
            return [None] * self.layers
        return [window if not kinds or kinds[i] == "sliding_attention" else None for i in range(self.layers)]

    def frequencies(self):
        """Of the rotation of each pair of a head's elements."""
        rope, kind = self.rope, self.rope["rope_type"]
        if rope.get("partial_rotary_factor", 1.0) != 1.0:
            _refuse("rotations of a part of a head are not covered")
        exponent = torch.arange(0, self.head, 2, dtype=torch.int64).float() / self.head
        plain = 1.0 / (rope["rope_theta"] ** exponent)
        if kind == "default":
            return plain
        if kind == "linear":
            return plain / rope["factor"]
        if kind != "llama3":
            _refuse(f"rotations of the type {kind!r} are not covered; default, linear and llama3 are")
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        original = rope["original_max_position_embeddings"]
        waves = 2 * torch.pi / plain
        smooth = (original / waves - low) / (high - low)
        between = (1 - smooth) * plain / rope["factor"] + smooth * plain
        slow = torch.where(waves > original / low, plain / rope["factor"], plain)
        return torch.where((waves <= original / low) & (waves >= original / high), between, slow)


class Weights:
    """The tensors of a folder, each taken once."""

    def __init__(self, folder, dtype):
        self.folder, self.dtype, self.files = folder, dtype, {}
        index = os.path.join(folder, "model.safetensors.index.json")
        if os.path.exists(index):
            with open(index, encoding="utf-8") as file:
                self.where = json.load(file)["weight_map"]
        else:
            self._open("model.safetensors")
            self.where = dict.fromkeys(self.files["model.safetensors"], "model.safetensors")

    def _open(self, name):
        from rushlight.safetensors import load_file

        if name != os.path.basename(name):
            _refuse(f"the index names '{name}', which is no file of the folder")
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            _refuse(f"there is no '{path}'; save the model with safe_serialization=True")
        self.files[name] = load_file(path)

    def __contains__(self, name):
        return any(prefix + name in self.where for prefix in ("", "transformer.", "model."))

    def __call__(self, name, *shape):
        full = next((p + name for p in ("", "transformer.", "model.") if p + name in self.where), None)
        if full is None:
            _refuse(f"the folder has no tensor '{name}'")
        file = self.where[full]
        if file not in self.files:
            self._open(file)
        tensor = self.files[file][full]
        if tuple(tensor.shape) != shape:
            _refuse(
                f"the tensor '{full}' has the sizes {list(tensor.shape)}, but the config says {list(shape)}"
            )
        return tensor.to(self.dtype)

    def small(self, name, *shape):
        """A norm's or a bias: computed with as activations are."""
        return self(name, *shape).float()


# --- the network ------------------------------------------------------------------------------------


class Linear(nn.Module):
    """Some projections of the same input as one product. Each token's is the same in any company."""

    def __init__(self, parts):
        super().__init__()
        weights, biases = zip(*parts)
        self.weight = nn.Parameter(torch.cat(weights) if len(parts) > 1 else weights[0], requires_grad=False)
        self.bias = None
        if any(b is not None for b in biases):
            zeros = [torch.zeros(len(w)) if b is None else b for w, b in parts]
            self.bias = nn.Parameter(torch.cat(zeros), requires_grad=False)

    def forward(self, x):
        return _aten._row_linear(x, self.weight, self.bias)


class Norm(nn.Module):
    def __init__(self, config, weights, name):
        super().__init__()
        self.eps, self.width = config.eps, config.width
        self.weight = nn.Parameter(weights.small(f"{name}.weight", config.width), requires_grad=False)
        self.bias = None
        if config.kind == "gpt2":
            self.bias = nn.Parameter(weights.small(f"{name}.bias", config.width), requires_grad=False)

    def forward(self, x):
        if self.bias is not None:
            return F.layer_norm(x, (self.width,), self.weight, self.bias, self.eps)
        return F.rms_norm(x, (self.width,), self.weight, self.eps)


class Layer(nn.Module):
    def __init__(self, config, weights, i, pages):
        super().__init__()
        self.config, self.window = config, config.windows[i] or 0
        c, name = config, f"h.{i}" if config.kind == "gpt2" else f"layers.{i}"
        own, keys = c.heads * c.head, c.key_heads * c.head
        if c.kind == "gpt2":
            self.first, self.second = (Norm(c, weights, f"{name}.{n}") for n in ("ln_1", "ln_2"))
            self.attend = Linear([self._conv(weights, f"{name}.attn.c_attn", c.width, 3 * c.width)])
            self.project = Linear([self._conv(weights, f"{name}.attn.c_proj", c.width, c.width)])
            self.widen = Linear([self._conv(weights, f"{name}.mlp.c_fc", c.width, c.inner)])
            self.narrow = Linear([self._conv(weights, f"{name}.mlp.c_proj", c.inner, c.width)])
        else:

            def part(which, rows, columns, bias):
                bias = weights.small(f"{name}.{which}.bias", rows) if bias else None
                return weights(f"{name}.{which}.weight", rows, columns), bias

            norms = "input_layernorm", "post_attention_layernorm"
            self.first, self.second = (Norm(c, weights, f"{name}.{n}") for n in norms)
            sizes = {"q": own, "k": keys, "v": keys}
            self.attend = Linear(
                [part(f"self_attn.{n}_proj", size, c.width, c.attention_bias) for n, size in sizes.items()]
            )
            self.project = Linear([part("self_attn.o_proj", c.width, own, c.output_bias)])
            self.widen = Linear([part(f"mlp.{n}_proj", c.inner, c.width, c.mlp_bias) for n in ("gate", "up")])
            self.narrow = Linear([part("mlp.down_proj", c.width, c.inner, c.mlp_bias)])
        # Keys as columns: neighbouring positions are neighbours in memory.
        keys = torch.zeros(pages, c.key_heads, c.head, PAGE, dtype=weights.dtype)
        self.register_buffer("keys", keys, persistent=False)
        values = torch.zeros(pages, c.key_heads, PAGE, c.head, dtype=weights.dtype)
        self.register_buffer("values", values, persistent=False)

    @staticmethod
    def _conv(weights, name, inputs, outputs):
        weight = weights(f"{name}.weight", inputs, outputs).t().contiguous()
        return weight, weights.small(f"{name}.bias", outputs)

    def forward(self, x, where, rotation):
        x = x + self._attention(self.first(x), where, rotation)
        return x + self._feed(self.second(x))

    def _attention(self, x, where, rotation):
        c = self.config
        pages, texts, positions, into, places = where
        rotated, v = self.attend(x).split(((c.heads + c.key_heads) * c.head, c.key_heads * c.head), -1)
        rotated = rotated.view(x.shape[0], c.heads + c.key_heads, c.head)
        if rotation is not None:
            rotated = _rotate(rotated, *rotation)
        q, k = rotated.split((c.heads, c.key_heads), 1)
        _aten._write_pages_(self.keys.transpose(2, 3), into, places, k)
        _aten._write_pages_(self.values, into, places, v.view(x.shape[0], c.key_heads, c.head))
        y = _aten._paged_attention(
            q, self.keys, self.values, pages, texts, positions, c.head**-0.5, self.window
        )
        return self.project(y.view(x.shape[0], c.heads * c.head))

    def _feed(self, x):
        if self.config.kind == "gpt2":
            return self.narrow(_ACTIVATIONS[self.config.activation](self.widen(x)))
        gate, up = self.widen(x).chunk(2, -1)
        return self.narrow(_ACTIVATIONS[self.config.activation](gate) * up)


def _rotate(x, cosine, sine):
    a, b = x.chunk(2, -1)
    return x * cosine + torch.cat((-b, a), -1) * sine


_ACTIVATIONS: dict[str, Callable] = {
    "silu": F.silu,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


class LanguageModel(nn.Module):
    """Tokens of any texts in one run: logits behind those that are ``wanted``, one of each text.

    Each token has a place in a text; row ``texts[i]`` of ``pages`` tells where that text's keys and values
    lie. Tokens of a text follow each other, those of one text side by side. Activations are float32.
    """

    def __init__(self, config, weights, length):
        super().__init__()
        if config.activation not in _ACTIVATIONS:
            _refuse(f"the activation {config.activation!r} is not covered")
        self.config = config
        old = config.kind == "gpt2"
        embedding = weights("wte.weight" if old else "embed_tokens.weight", config.words, config.width)
        self.words = nn.Parameter(embedding, requires_grad=False)
        pages = -(-length // PAGE)
        self.layers = nn.ModuleList([Layer(config, weights, i, pages) for i in range(config.layers)])
        self.norm = Norm(config, weights, "ln_f" if old else "norm")
        if old:
            places = weights("wpe.weight", config.length, config.width)
            self.places = nn.Parameter(places, requires_grad=False)
        else:
            self.register_buffer("frequencies", config.frequencies(), persistent=False)
        self.head = None
        if not config.tied and "lm_head.weight" in weights:
            head = weights("lm_head.weight", config.words, config.width)
            self.head = nn.Parameter(head, requires_grad=False)

    def forward(self, tokens, positions, texts, pages, wanted):
        x = F.embedding(tokens, self.words).float()
        rotation = None
        if self.config.kind == "gpt2":
            x = x + F.embedding(positions, self.places).float()
        else:
            angles = positions.float()[:, None, None] * self.frequencies
            angles = torch.cat((angles, angles), -1)
            rotation = angles.cos(), angles.sin()
        page = torch.div(positions, PAGE, rounding_mode="floor")
        where = pages, texts, positions, pages[texts, page], positions - page * PAGE
        for layer in self.layers:
            x = layer(x, where, rotation)
        head = self.words if self.head is None else self.head
        return {"logits": _aten._row_linear(self.norm(x.index_select(0, wanted)), head)}


# --- the file ---------------------------------------------------------------------------------------


def _read(folder, name, default=None):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        if default is None:
            _refuse(f"there is no '{path}'")
        return default
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except ValueError as error:
            _refuse(f"'{path}' is not JSON: {error}")
    if not isinstance(content, dict):
        _refuse(f"'{path}' is not what transformers writes")
    return content


def _ids(value):
    return [value] if isinstance(value, int) else [i for i in value or [] if isinstance(i, int)]


def _chat(folder):
    """The template of chats, and the tokens that it may name; nothing where there is none."""
    config = _read(folder, "tokenizer_config.json", {})
    template = config.get("chat_template")
    if isinstance(template, list):  # several by name
        template = {one["name"]: one["template"] for one in template}.get("default")
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            template = file.read()
    if not template:
        return {}
    tokens = {name: config.get(name) or "" for name in ("bos_token", "eos_token")}
    return {"template": template} | {k: t["content"] if isinstance(t, dict) else t for k, t in tokens.items()}


def save_language_model(folder, path, *, max_length=None, dtype=None):
    """Write a model of a folder that transformers' ``save_pretrained`` made to one file that generates text.

    GPT-2, Llama, Qwen2 and Mistral are covered, with weights in safetensors. The file has the method
    ``step``, pages of keys and values for ``max_length`` tokens as state, and the folder's tokenizer.json.
    """
    folder = os.fspath(folder)
    config = Config(_read(folder, "config.json"))
    given = _read(folder, "generation_config.json", {})
    length = min(max_length or config.length, config.length)
    if length < 2:
        _refuse(f"a cache for {length} tokens generates nothing")
    model = LanguageModel(config, Weights(folder, dtype or torch.float32), length).eval()
    settings = {
        "version": 2,
        "max_length": length,
        "page": PAGE,
        "vocabulary": config.words,
        "end": _ids(given.get("eos_token_id")) or _ids(_read(folder, "config.json").get("eos_token_id")),
    }
    texts: dict[str, str | bytes] = {"generate.json": json.dumps(settings)}
    tokenizer = os.path.join(folder, "tokenizer.json")
    if os.path.exists(tokenizer):
        with open(tokenizer, "rb") as file:
            texts["tokenizer.json"] = file.read()
    if chat := _chat(folder):
        texts["chat.json"] = json.dumps(chat)
    counts = torch.arange(3)
    many, rows = Dim("T", max=_MOST), Dim("R", max=_MOST)  # each more makes exporting take longer
    save_file(
        {"step": model},
        path,
        {
            "step": (
                torch.zeros(3, dtype=torch.int64),
                torch.zeros(3, dtype=torch.int64),
                counts % 2,
                torch.zeros(2, -(-length // PAGE), dtype=torch.int64),
                counts[:2],
            )
        },
        dynamic_shapes={"step": ({0: many}, {0: many}, {0: many}, {0: rows}, {0: rows})},
        texts=texts,
    )


class TextModel:
    """A language model of one file; threads may share one.

    Prompts are texts, or lists of token numbers where the file has no tokenizer.
    """

    def __init__(self, path):
        self._model = _C._TextModel(os.fspath(path))
        self.max_length, self.vocabulary = self._model.max_length, self._model.vocabulary
        self.has_tokenizer = self._model.has_tokenizer

    def encode(self, text, *, special=True):
        """The numbers of a text's tokens; ``special``: with what the model wants before and after it."""
        return self._model.encode(text, special)

    def decode(self, ids, *, skip_special=True):
        """The text of tokens."""
        return self._model.decode(ids, skip_special)

    def generate(self, prompt, **settings):
        """(tokens, text, why it ended: "length", "end", "stop" or "cancelled") of how a prompt goes on.

        Settings are ``max_tokens``, ``temperature`` (0: always the most likely token), ``top_k``, ``top_p``,
        ``repetition_penalty``, ``presence_penalty``, ``frequency_penalty``, ``seed``, ``stop`` (texts before
        which it ends) and ``ignore_end``.
        ``on_token`` and ``on_text`` are called with what is known so far, and end it by returning False.
        """
        ids = self.encode(prompt) if isinstance(prompt, str) else list(prompt)
        return self._model.generate(ids, **settings)


def load_language_model(path):
    """A model that `save_language_model` wrote, to generate text with."""
    return TextModel(path)
