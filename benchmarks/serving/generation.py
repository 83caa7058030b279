"""Tokens a second of one file, of transformers on PyTorch, and of llama.cpp where `llama_cpp` is installed.

python -m benchmarks.serving.generation [--dtype bfloat16] [--tokens 64] [--rounds 5] [--clients 1,8]

A random Llama of 116 million parameters. Each library has a process of its own; they take turns, and the
ratio is the median of the turns'. Several clients are texts at once (at most 8); prompts have 16 tokens and
count as time.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIZES: dict[str, Any] = {
    "hidden_size": 704,
    "intermediate_size": 1856,
    "num_hidden_layers": 12,
    "num_attention_heads": 11,
    "num_key_value_heads": 11,
    "vocab_size": 32000,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
PROMPT, CLIENTS = 16, 8  # CLIENTS: at most


def prompts(count: int) -> list[list[int]]:
    return [[3 + (i * 7919 + 31 * c) % 31000 for i in range(PROMPT)] for c in range(count)]


class Transformers:
    """Writes the folder too: the weights of all come from here."""

    def __init__(self, folder: Path, dtype: str, threads: int) -> None:
        sys.modules["torchvision"] = None  # type: ignore[assignment]  # whatever version there is
        import torch
        import transformers

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()
        if not (folder / "config.json").exists():
            model.save_pretrained(folder)
        self.model, self.torch = model.to(getattr(torch, dtype)), torch

    def generate(self, texts: list[list[int]], tokens: int) -> list[list[int]]:
        ids = self.torch.tensor(texts)
        settings = {"do_sample": False, "min_new_tokens": tokens, "max_new_tokens": tokens, "pad_token_id": 0}
        with self.torch.inference_mode():
            found = self.model.generate(ids, attention_mask=self.torch.ones_like(ids), **settings)
        return found[:, PROMPT:].tolist()

    def run(self, clients: int, tokens: int) -> list[list[int]]:
        return self.generate(prompts(clients), tokens)


class OneByOne(Transformers):
    """As a program that has no batches of clients calls it: a text at a time."""

    def run(self, clients: int, tokens: int) -> list[list[int]]:
        return [self.generate([prompt], tokens)[0] for prompt in prompts(clients)]


class File:
    def __init__(self, folder: Path, dtype: str, threads: int) -> None:
        import rushlight
        from rushlight.export import TextService, save_language_model

        rushlight.set_num_threads(threads)
        file = folder / f"{dtype}.rl"
        save_language_model(str(folder), str(file), dtype=getattr(rushlight, dtype))
        self.service = TextService(str(file), max_running=CLIENTS, max_queued=64)

    def run(self, clients: int, tokens: int) -> list[list[int]]:
        from concurrent.futures import ThreadPoolExecutor

        self.service.forget_prefixes()

        def text(prompt: list[int]) -> list[int]:
            found = self.service.generate(prompt, max_tokens=tokens, ignore_end=True)
            return found[0]

        with ThreadPoolExecutor(clients) as pool:
            return list(pool.map(text, prompts(clients)))


class LlamaCpp:
    """By its own interface, greedy; several texts are one batch a step."""

    def __init__(self, folder: Path, dtype: str, threads: int) -> None:
        import ctypes

        import llama_cpp

        file = folder / f"{dtype}.gguf"
        write_gguf(folder, file, dtype)
        self.lib, self.ctypes = llama_cpp, ctypes
        llama_cpp.llama_backend_init()
        silent = llama_cpp.llama_log_callback(lambda *_: None)
        self.silent = silent
        llama_cpp.llama_log_set(silent, None)
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(str(file).encode(), params)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_seq_max, params.n_batch = CLIENTS * 256, CLIENTS, 512
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = {"float32": 0, "bfloat16": 30}[dtype]
        self.context = llama_cpp.llama_init_from_model(self.model, params)

    def step(self, rows: list[tuple[int, int, int, bool]]) -> dict[int, int]:
        """The likeliest next token of each text of (text, position, token, whether it is wanted)."""
        import numpy

        lib = self.lib
        batch = lib.llama_batch_init(len(rows), 0, 1)
        for i, (text, position, token, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
            batch.seq_id[i][0], batch.logits[i] = text, wanted
        batch.n_tokens = len(rows)
        if lib.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")
        lib.llama_batch_free(batch)
        words = SIZES["vocab_size"]
        found = {}
        for i, (text, _, _, wanted) in enumerate(rows):
            if wanted:
                logits = lib.llama_get_logits_ith(self.context, i)
                found[text] = int(numpy.ctypeslib.as_array(logits, shape=(words,)).argmax())
        return found

    def run(self, clients: int, tokens: int) -> list[list[int]]:
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        rows = [
            (text, place, token, place == PROMPT - 1)
            for text, prompt in enumerate(prompts(clients))
            for place, token in enumerate(prompt)
        ]
        texts: list[list[int]] = [[] for _ in range(clients)]
        for place in range(PROMPT, PROMPT + tokens):
            for text, token in self.step(rows).items():
                texts[text].append(token)
            rows = [(text, place, texts[text][-1], True) for text in range(clients)]
        return texts


def write_gguf(folder: Path, file: Path, dtype: str) -> None:
    """The folder's weights as llama.cpp reads them; rows of queries and keys are paired in its order."""
    import gguf
    import numpy
    from safetensors.numpy import load_file

    heads, layers = SIZES["num_attention_heads"], SIZES["num_hidden_layers"]
    out = gguf.GGUFWriter(str(file), "llama")
    out.add_context_length(SIZES["max_position_embeddings"])
    out.add_embedding_length(SIZES["hidden_size"])
    out.add_block_count(layers)
    out.add_feed_forward_length(SIZES["intermediate_size"])
    out.add_head_count(heads)
    out.add_head_count_kv(heads)
    out.add_layer_norm_rms_eps(SIZES["rms_norm_eps"])
    out.add_rope_dimension_count(SIZES["hidden_size"] // heads)
    out.add_vocab_size(SIZES["vocab_size"])
    out.add_tokenizer_model("none")
    names = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    tops = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    tensors = load_file(str(folder / "model.safetensors"))
    for name, value in tensors.items():
        part = name.removesuffix(".weight")
        if part.startswith("model.layers."):
            number, kind = part.removeprefix("model.layers.").split(".", 1)
            label = f"blk.{number}.{names[kind]}"
            if kind in ("self_attn.q_proj", "self_attn.k_proj"):
                rows = value.reshape(heads, 2, value.shape[0] // heads // 2, value.shape[1])
                value = rows.swapaxes(1, 2).reshape(value.shape)
        else:
            label = tops[part]
        value = numpy.ascontiguousarray(value, numpy.float32)
        if dtype == "bfloat16" and value.ndim == 2:
            kind16 = gguf.GGMLQuantizationType.BF16
            out.add_tensor(f"{label}.weight", gguf.quants.quantize(value, kind16), raw_dtype=kind16)
        else:
            out.add_tensor(f"{label}.weight", value)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


KINDS: dict[str, Any] = {
    "file": File,
    "transformers": Transformers,
    "one by one": OneByOne,
    "llama.cpp": LlamaCpp,
}


def serve(kind: str, folder: str, dtype: str, threads: str) -> None:
    """The process of one library: runs as it is told, and says the seconds of wall and processor time."""
    runner = KINDS[kind](Path(folder), dtype, int(threads))
    print(json.dumps({"ready": kind}), flush=True)
    for line in sys.stdin:
        clients, tokens = json.loads(line)
        wall, processor = time.perf_counter(), time.process_time()
        texts = runner.run(clients, tokens)
        spent = time.perf_counter() - wall, time.process_time() - processor
        assert [len(text) for text in texts] == [tokens] * clients, [len(text) for text in texts]
        print(json.dumps({"wall": spent[0], "cpu": spent[1], "texts": texts}), flush=True)


class Peer:
    def __init__(self, stack: ExitStack, kind: str, folder: Path, options: argparse.Namespace) -> None:
        words = [sys.executable, "-m", "benchmarks.serving.generation", "--serve", kind, str(folder)]
        self.process = stack.enter_context(
            subprocess.Popen(
                [*words, options.dtype, str(options.threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
        )
        stack.callback(self.process.terminate)
        self.kind = self.answer()["ready"]

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit("a library's process ended")

    def run(self, clients: int, tokens: int) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([clients, tokens]) + "\n")
        self.process.stdin.flush()
        return self.answer()


def has_llama_cpp() -> bool:
    from importlib.util import find_spec

    return find_spec("llama_cpp") is not None and find_spec("gguf") is not None


def measure(peers: list[Peer], clients: int, options: argparse.Namespace) -> None:
    times: dict[str, list[dict[str, Any]]] = {peer.kind: [] for peer in peers}
    for peer in peers:
        peer.run(clients, 4)
    for i in range(options.rounds):
        for peer in peers if i % 2 else reversed(peers):
            times[peer.kind].append(peer.run(clients, options.tokens))
    ours = times[peers[0].kind]
    for kind, results in times.items():
        count = clients * options.tokens
        each = statistics.median(r["cpu"] for r in results) / count * 1e3
        ratios = {
            clock: statistics.median(r[clock] / o[clock] for r, o in zip(results, ours, strict=True))
            for clock in ("wall", "cpu")
        }
        equal = sum(
            next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))
            for a, b in zip(results[0]["texts"], ours[0]["texts"], strict=True)
        )
        print(
            f"{clients:7} {kind:14} {each:10.2f} {ratios['wall']:8.2f} {ratios['cpu']:8.2f} "
            f"{equal / count:8.0%}",
            flush=True,
        )


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clients", default="1,8")
    options = parser.parse_args()
    kinds = ["file", "transformers", "one by one", *(["llama.cpp"] if has_llama_cpp() else [])]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        first = Peer(stack, "transformers", folder, options)
        rest = {kind: Peer(stack, kind, folder, options) for kind in kinds if kind != "transformers"}
        peers = [first if kind == "transformers" else rest[kind] for kind in kinds]
        head = ("clients", "library", "cpu ms/tok", "wall x", "cpu x", "equal")
        print("{:>7} {:14} {:>10} {:>8} {:>8} {:>8}".format(*head))
        for clients in map(int, options.clients.split(",")):
            measure([p for p in peers if clients > 1 or p.kind != "one by one"], clients, options)


if __name__ == "__main__":
    main()
