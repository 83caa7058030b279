"""Language models of one file: transformers' tokens, the tokenizers package's text, programs, bad input."""

import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from tokenizer_kinds import KINDS, train

import rushlight as torch
from rushlight import nn
from rushlight._command import alias
from rushlight.export import UnsupportedError, load_language_model, save_file, save_language_model

transformers = pytest.importorskip("transformers")
oracle = torch if alias.is_installed() else pytest.importorskip("torch")  # what transformers runs on
pytest.importorskip("tokenizers")

RUNNER = pathlib.Path(torch.__file__).parent / "bin" / "rushlight-run"
needs_runner = pytest.mark.skipif(not RUNNER.exists(), reason="rushlight-run is not built here")
LENGTH = 96
LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": LENGTH,
    "eos_token_id": 3,
    "bos_token_id": 1,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def make(kind, words):
    """A random model of transformers', on PyTorch."""
    t = transformers
    if kind == "gpt2":
        config = t.GPT2Config(
            vocab_size=words,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=LENGTH,
            eos_token_id=3,
            bos_token_id=1,
        )
        return t.GPT2LMHeadModel(config)
    if kind == "llama2":
        return t.LlamaForCausalLM(t.LlamaConfig(vocab_size=words, **LLAMA))
    if kind == "llama3":
        rope = {"rope_parameters": LLAMA3_ROPE, "head_dim": 12, "tie_word_embeddings": True}
        return t.LlamaForCausalLM(t.LlamaConfig(vocab_size=words, **LLAMA, **rope))
    if kind == "qwen2":
        return t.Qwen2ForCausalLM(t.Qwen2Config(vocab_size=words, tie_word_embeddings=True, **LLAMA))
    return t.MistralForCausalLM(t.MistralConfig(vocab_size=words, sliding_window=6, **LLAMA))


class Case:
    def __init__(self, kind, folder):
        self.folder, self.path = folder / kind, folder / f"{kind}.rl"
        text = train(kind)
        words = max(json.loads(text)["model"]["vocab"].values()) + 8
        oracle.manual_seed(4)
        self.model = make(kind, words).eval()
        with oracle.no_grad():
            for p in self.model.parameters():
                p.mul_(4)  # logits far enough apart
        self.model.save_pretrained(self.folder)
        (self.folder / "tokenizer.json").write_text(text)
        save_language_model(self.folder, self.path)
        self.own = load_language_model(self.path)

    def expected(self, ids, count, **settings):
        given = oracle.tensor([ids])
        settings = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, **settings}
        with oracle.no_grad():
            made = self.model.generate(given, max_new_tokens=count, **settings)
        return made[0, len(ids) :].tolist()


@pytest.fixture(scope="module", autouse=True)
def no_torchvision():
    """transformers' text models load it where it is, whether it fits PyTorch or not."""
    with pytest.MonkeyPatch.context() as patch:
        for place in (transformers.utils, transformers.utils.import_utils):
            patch.setattr(place, "is_torchvision_available", lambda: False)
        yield


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("language"), {}

    def case(kind):
        if kind not in made:
            made[kind] = Case(kind, folder)
        return made[kind]

    return case


# --- tokens -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_tokens_are_transformers_own(cases, kind):
    case = cases(kind)
    for ids in ([5], [7, 9, 300, 12, 44], list(range(20, 90))):
        count = LENGTH - len(ids) if len(ids) > 5 else 40
        tokens, _, why = case.own.generate(ids, max_tokens=count, ignore_end=True)
        assert tokens == case.expected(ids, count) and why == "length"


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 1.0},
        {"temperature": 3.5, "top_k": 20},
        {"temperature": 2.0, "top_p": 0.7},
        {"temperature": 2.5, "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.4},
    ],
)
def test_seeds_give_the_tokens_of_python(cases, settings):
    case, ids = cases("llama2"), [7, 9, 300, 12]
    for seed in range(4):
        oracle.manual_seed(seed)
        expected = case.expected(ids, 30, do_sample=True, **{"top_k": 0, "top_p": 1.0, **settings})
        tokens, _, _ = case.own.generate(ids, max_tokens=30, seed=seed, ignore_end=True, **settings)
        assert tokens == expected
    assert len(set(expected)) > 3


def test_a_repetition_penalty_without_chance(cases):
    case, ids = cases("gpt2"), [7, 9, 300, 12]
    expected = case.expected(ids, 40, repetition_penalty=1.7)
    assert case.own.generate(ids, max_tokens=40, repetition_penalty=1.7, ignore_end=True)[0] == expected


def test_sharded_halves_are_read(cases, tmp_path):
    case, ids = cases("qwen2"), [7, 9, 300, 12]
    model = case.model.to(oracle.bfloat16)
    model.save_pretrained(tmp_path / "folder", max_shard_size="40KB")
    case.model.float()
    assert (tmp_path / "folder" / "model.safetensors.index.json").exists()
    save_language_model(tmp_path / "folder", tmp_path / "m.rl", max_length=20)
    own = load_language_model(tmp_path / "m.rl")
    assert own.max_length == 20 and not own.has_tokenizer
    rounded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "folder", dtype=oracle.float32)
    made = rounded.generate(
        oracle.tensor([ids]), max_new_tokens=16, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    assert own.generate(ids, ignore_end=True)[0] == made[0, 4:].tolist()


# --- text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_text_are_the_text(cases, kind):
    from tokenizers import Tokenizer

    case = cases(kind)
    tokenizer = Tokenizer.from_file(str(case.folder / "tokenizer.json"))
    for seed in range(25):
        prompt, pieces, seen = "the 你好 quick it's 345 fox", [], []
        tokens, text, _ = case.own.generate(
            prompt,
            max_tokens=40,
            temperature=2.0,
            seed=seed,
            ignore_end=True,
            on_text=pieces.append,
            on_token=seen.append,
        )
        ids = tokenizer.encode(prompt).ids
        assert case.own.encode(prompt) == ids and seen == tokens
        whole, before = tokenizer.decode([*ids, *tokens]), tokenizer.decode(ids)
        assert before + text == whole and "".join(pieces) == text and len(pieces) > 10


def test_stop_texts_end_it_before_them(cases):
    own = cases("gpt2").own
    _, text, _ = own.generate("the", max_tokens=60, temperature=2.0, seed=3, ignore_end=True)
    for stop in (text[9:12], text[20:27]):
        pieces = []
        settings = {"max_tokens": 60, "temperature": 2.0, "seed": 3, "ignore_end": True}
        _, cut, why = own.generate("the", stop=["never there", stop], on_text=pieces.append, **settings)
        assert why == "stop" and cut == text[: text.index(stop)] == "".join(pieces)


def test_tokens_that_end_a_text_end_it(cases):
    case = cases("llama2")
    for seed in range(60):
        tokens, text, why = case.own.generate([7, 9], max_tokens=80, temperature=6.0, seed=seed)
        assert (tokens[-1] == 3) == (why == "end") and 3 not in tokens[:-1]
        if why == "end":
            break
    assert why == "end" and text


def test_calls_that_say_no_cancel(cases):
    own, seen = cases("gpt2").own, []

    def three(token):
        seen.append(token)
        return len(seen) < 3

    tokens, _, why = own.generate([5, 6], max_tokens=50, ignore_end=True, on_token=three)
    assert tokens == seen and len(seen) == 3 and why == "cancelled"

    def fails(text):
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        own.generate("the", max_tokens=50, ignore_end=True, on_text=fails)


def test_threads_share_a_model(cases):
    own = cases("llama3").own
    prompts = [[5 + i, 9, 40 * i + 1] for i in range(6)]
    expected = [own.generate(p, max_tokens=30, ignore_end=True)[0] for p in prompts]
    found = {}

    def work(i):
        for _ in range(3):
            found[i] = own.generate(prompts[i], max_tokens=30, ignore_end=True)[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [found[i] for i in range(6)] == expected


# --- programs ---------------------------------------------------------------------------------------


def command(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, timeout=300)


@needs_runner
def test_the_program_writes_text_as_it_comes(cases):
    case, prompt = cases("llama3"), "the quick brown"
    done = command(RUNNER, case.path, "--prompt", prompt, "--max-tokens", 20, "--ignore-end")
    _, text, _ = case.own.generate(prompt, max_tokens=20, ignore_end=True)
    assert done.returncode == 0 and done.stdout.decode() == text + "\n", done.stderr
    options = ["--temperature=2.5", "--top-k=40", "--top-p=0.9", "--repetition-penalty=1.2", "--seed=7"]
    options += ["--presence-penalty=0.75", "--frequency-penalty=1.5"]
    done = command(RUNNER, case.path, "--prompt", prompt, "--max-tokens=20", "--print-tokens", *options)
    settings = {"temperature": 2.5, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.2, "seed": 7}
    settings |= {"presence_penalty": 0.75, "frequency_penalty": 1.5}
    tokens, _, _ = case.own.generate(prompt, max_tokens=20, **settings)
    assert [int(t) for t in done.stdout.split()] == tokens, done.stderr
    for words, message in [
        (["--prompt", "a", "--top-p", "2"], b"top-p must be above zero and not above one"),
        (["--prompt", "a", "--max-tokens", "x"], b"needs a whole number, not 'x'"),
        (["--prompt", b"\xff"], b"not UTF-8 at byte 0"),
        (["--prompt", "the " * 200], b"the model holds 96"),
    ]:
        words = [w if isinstance(w, bytes) else w.encode() for w in words]
        done = subprocess.run(
            [os.fsencode(RUNNER), os.fsencode(case.path), *words], capture_output=True, timeout=60
        )
        assert done.returncode == 1 and message in done.stderr and done.stderr.count(b"\n") == 1


def test_the_command_exports_a_folder(cases, tmp_path):
    case, path = cases("mistral"), tmp_path / "m.rl"
    export = [sys.executable, "-m", "rushlight", "export-lm"]
    done = command(*export, case.folder, "-o", path, "--max-length", 40)
    assert done.returncode == 0 and b"m.rl: " in done.stdout, done.stderr
    own, ids = load_language_model(path), [7, 9, 300, 12, 44]
    assert own.generate(ids, max_tokens=35, ignore_end=True)[0] == case.expected(ids, 35)
    done = command(*export, tmp_path, "-o", path)
    assert (
        done.returncode == 1
        and done.stderr.startswith(b"rushlight: export-lm: ")
        and b"config.json" in done.stderr
    )


CPP = r"""
#define RUSHLIGHT_CORE
#include <cstdio>
#include "rushlight/generation.h"
using namespace rushlight::generation;

int main(int, char** argv) {
  const auto model = TextModel::load(argv[1]);
  Settings settings;
  settings.max_tokens = 12;
  settings.ignore_end = true;
  std::string streamed;
  const auto made = model.generate("the quick", settings, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  for (const auto token : made.tokens) std::printf("%ld ", static_cast<long>(token));
  std::printf("%d\n", streamed == made.text && made.finish == Finish::Length);
}
"""


def test_cpp_generates(cases, tmp_path):
    import shutil

    package = pathlib.Path(torch.__file__).parent
    if not shutil.which("g++"):
        pytest.skip("needs a compiler")
    (tmp_path / "program.cpp").write_text(CPP)
    source = package.parent / "src"
    includes = [source, package.parent / "include"] if source.exists() else [package / "include"]
    words = [
        "g++",
        "-std=c++20",
        *(f"-I{i}" for i in includes),
        "program.cpp",
        "-o",
        "program",
        f"-L{package / 'lib'}",
    ]
    words += ["-lrushlight", f"-Wl,-rpath,{package / 'lib'}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
    case = cases("gpt2")
    found = command(tmp_path / "program", case.path).stdout.split()
    tokens, _, _ = case.own.generate("the quick", max_tokens=12, ignore_end=True)
    assert [int(t) for t in found] == [*tokens, 1]


C = r"""
#include <rushlight/c.h>
#include <stdio.h>
#include <string.h>

static int print_token(void* count, int64_t token) {
  printf("%ld ", (long)token);
  return ++*(int*)count < 5;
}
static int append(void* text, const char* piece, size_t length) {
  return strlen(piece) == length && strcat((char*)text, piece) != NULL;
}

int main(int argc, char** argv) {
  rl_text_model model;
  rl_text_settings settings;
  char text[4096] = "";
  int finish = -1, count = 0;
  const int64_t prompt[] = {7, 9};
  if (argc != 2 || rl_text_model_load(argv[1], &model)) return puts(rl_last_error()), 1;
  rl_text_settings_init(&settings);
  settings.max_tokens = 12;
  settings.ignore_end = 1;
  settings.temperature = 2;
  settings.seed = 3;
  if (rl_text_generate(model, "the quick", &settings, append, text, &finish)) return puts(rl_last_error()), 1;
  printf("%d %s\n", finish, text);
  if (rl_text_generate_tokens(model, prompt, 2, NULL, print_token, &count, &finish)) return 1;
  printf("%d\n", finish);
  settings.top_p = 2;
  printf("%d ", rl_text_generate(model, "a", &settings, NULL, NULL, NULL));
  puts(rl_last_error());
  settings.top_p = 1;
  settings.stop_count = 1;
  printf("%d\n", rl_text_generate(model, "a", &settings, NULL, NULL, NULL));
  settings.struct_size = 3;
  printf("%d\n", rl_text_generate(model, "a", &settings, NULL, NULL, NULL));
  printf("%d\n", rl_text_generate_tokens(model, prompt, 0, NULL, NULL, NULL, NULL));
  printf("%d\n", rl_text_generate(NULL, "a", NULL, NULL, NULL, NULL));
  printf("%d\n", rl_text_model_load("none.rl", &model) != 0);
  rl_text_model_release(model);
  rl_text_model_release(NULL);
  return 0;
}
"""


def test_c_generates(cases, tmp_path):
    import shutil

    package = pathlib.Path(torch.__file__).parent
    if not shutil.which("gcc"):
        pytest.skip("needs a compiler")
    (tmp_path / "program.c").write_text(C)
    include = package.parent / "include"
    words = ["gcc", "-Wall", "-Werror", f"-I{include if include.exists() else package / 'include'}"]
    words += ["program.c", "-o", "program", f"-L{package / 'lib'}", "-lrushlight"]
    words += [f"-Wl,-rpath,{package / 'lib'}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
    case = cases("gpt2")
    done = command(tmp_path / "program", case.path)
    settings = {"max_tokens": 12, "ignore_end": True, "temperature": 2.0, "seed": 3}
    _, text, _ = case.own.generate("the quick", **settings)
    tokens, _, _ = case.own.generate([7, 9], max_tokens=5)
    wanted = f"0 {text}\n{' '.join(map(str, tokens))} 3\n2 "
    found = done.stdout.decode()
    assert done.returncode == 0 and found.startswith(wanted), done.stderr
    assert "top-p must be" in found and found.endswith("\n2\n2\n2\n2\n1\n")


# --- bad input --------------------------------------------------------------------------------------


def test_settings_that_mean_nothing_are_one_error(cases):
    own = cases("gpt2").own
    for prompt, settings, message in [
        ([], {}, "the prompt has no tokens"),
        ([10**6], {}, "token 1000000 is not one of"),
        ([-1], {}, "token -1 is not one of"),
        ([1] * LENGTH, {}, "has 96 tokens, but the model holds 96"),
        ([1], {"max_tokens": 0}, "max_tokens must be above zero"),
        ([1], {"temperature": -1.0}, "temperature must be zero or above"),
        ([1], {"temperature": float("nan")}, "temperature must be zero or above"),
        ([1], {"top_k": -1}, "top-k must be"),
        ([1], {"top_p": 0.0}, "top-p must be"),
        ([1], {"repetition_penalty": 0.0}, "penalty must be above zero"),
        ([1], {"stop": [""]}, "a stop text is empty"),
    ]:
        with pytest.raises(ValueError, match=message):
            own.generate(prompt, **settings)


def test_folders_that_are_not_covered_say_why(cases, tmp_path):
    def folder(name, **changes):
        config = json.loads((cases("llama2").folder / "config.json").read_text()) | changes
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        (tmp_path / name / "model.safetensors").symlink_to(cases("llama2").folder / "model.safetensors")
        return tmp_path / name

    for name, changes, message in [
        ("kind", {"model_type": "bloom"}, "the model type is 'bloom'; gpt2, llama"),
        ("rope", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0}}, "'yarn' are not covered"),
        ("wide", {"intermediate_size": 50}, r"has the sizes \[48, 32\], but the config says \[50, 32\]"),
        ("deep", {"num_hidden_layers": 3}, "has no tensor 'layers.2.input_layernorm.weight'"),
        ("act", {"hidden_act": "mish"}, "the activation 'mish' is not covered"),
    ]:
        with pytest.raises(UnsupportedError, match=message):
            save_language_model(folder(name, **changes), tmp_path / "m.rl")
    assert not (tmp_path / "m.rl").exists()


def test_files_that_are_no_language_models_say_so(cases, tmp_path):
    path = tmp_path / "m.rl"
    save_file(nn.Linear(2, 2), path, (torch.ones(1, 2),))
    with pytest.raises(RuntimeError, match="holds no language model"):
        load_language_model(path)
    program = {"prefill": nn.Linear(2, 2), "decode": nn.Linear(2, 2)}
    x = {"prefill": (torch.ones(1, 2),), "decode": (torch.ones(1, 2),)}
    good = {"version": 1, "max_length": 8, "step": 4, "vocabulary": 5}
    for text, message in [
        ("[1", r"'@generate.json' is not JSON"),
        ("{}", "has no number 'version'"),
        (json.dumps({**good, "step": -1}), "has no number 'step'"),
        (json.dumps({**good, "version": 2}), "another version"),
    ]:
        save_file(program, path, x, texts={"generate.json": text})
        with pytest.raises(RuntimeError, match=message):
            load_language_model(path)
    save_file(program, path, x, texts={"generate.json": json.dumps(good)})
    with pytest.raises((RuntimeError, ValueError), match="inputs"):
        load_language_model(path).generate([1, 2])
