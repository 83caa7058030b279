"""Log-probabilities, penalties and biases of rushlight-serve's texts, beside transformers' logits."""

import json
import math

import pytest
from serving import needs_server, serving
from tokenizer_kinds import train

import rushlight as torch
from rushlight._command import alias
from rushlight.export import load_language_model, save_language_model

transformers = pytest.importorskip("transformers")
oracle = torch if alias.is_installed() else pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytestmark = needs_server

CHAT = "{% for m in messages %}{{ m.content }}{% endfor %}"
PROMPT = "Once upon a cat"


class Case:
    """A random model on PyTorch, its file, and a server of it."""

    def __init__(self, folder, kind):
        text = train(kind)
        words = max(json.loads(text)["model"]["vocab"].values()) + 8
        shape = {"vocab_size": words, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
        heads = {"num_attention_heads": 4, "max_position_embeddings": 256, "eos_token_id": 3}
        oracle.manual_seed(4)
        self.model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, **heads)).eval()
        with oracle.no_grad():
            for p in self.model.parameters():
                p.mul_(8)
        self.model.save_pretrained(folder / kind)
        (folder / kind / "tokenizer.json").write_text(text)
        config = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": CHAT}
        (folder / kind / "tokenizer_config.json").write_text(json.dumps(config))
        save_language_model(folder / kind, folder / f"{kind}.rl")
        self.path, self.words = folder / f"{kind}.rl", words
        self.own = load_language_model(self.path)
        self.prompt = self.own.encode(PROMPT)

    def logits(self, ids):
        """Behind each token, as a list of lists."""
        with oracle.no_grad():
            return self.model(oracle.tensor([ids])).logits[0].double()

    def greedy(self, count, change):
        """Tokens, by logits as `change(logits, made)` leaves them."""
        ids = list(self.prompt)
        for _ in range(count):
            scores = self.logits(ids)[-1].tolist()
            change(scores, ids[len(self.prompt) :])
            ids.append(max(range(len(scores)), key=scores.__getitem__))
        return ids[len(self.prompt) :]


@pytest.fixture(scope="module", params=["llama2", "gpt2"])
def case(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for place in (transformers.utils, transformers.utils.import_utils):
            patch.setattr(place, "is_torchvision_available", lambda: False)
        made = Case(tmp_path_factory.mktemp("logprobs"), request.param)
        with serving(f"lm={made.path}") as server:
            made.server = server
            yield made


def ask(case, path="/v1/completions", **change):
    body = {"model": "lm", "temperature": 0, "max_tokens": 10, "ignore_eos": True, **change}
    if path == "/v1/completions":
        body.setdefault("prompt", PROMPT)
    else:
        body.setdefault("messages", [{"role": "user", "content": PROMPT}])
    status, answer, _ = case.server.ask(path, body)
    assert status == 200, answer
    return answer["choices"][0]


def streamed(case, path, **change):
    what = {"messages": [{"role": "user", "content": PROMPT}]} if "chat" in path else {"prompt": PROMPT}
    body = {"model": "lm", "temperature": 0, "max_tokens": 10, "ignore_eos": True, "stream": True}
    status, data, _ = case.server.ask(path, body | what | change)
    assert status == 200, data
    pieces = [p.removeprefix("data: ") for p in data.decode().split("\n\n")]
    return [json.loads(p)["choices"][0] for p in pieces if p.startswith("{")]


def expected(case, prompt, tokens):
    """The logarithms of all tokens' probabilities, where each of these was chosen."""
    logits = case.logits(prompt + tokens)[len(prompt) - 1 : -1]
    return oracle.log_softmax(logits, -1)


def test_completions_have_the_models_logarithms(case):
    tokens = case.own.generate(case.prompt, max_tokens=10, ignore_end=True)[0]
    choice = ask(case, logprobs=4)
    logs, found = expected(case, case.prompt, tokens), choice["logprobs"]
    assert found["token_logprobs"] == pytest.approx(
        [logs[i, t].item() for i, t in enumerate(tokens)], abs=1e-4
    )
    for row, top in zip(logs, found["top_logprobs"], strict=True):
        assert sorted(top.values(), reverse=True) == pytest.approx(row.topk(4).values.tolist(), abs=1e-4)
    for i, name in enumerate(found["tokens"]):
        assert found["top_logprobs"][i][name] == found["token_logprobs"][i]
    assert len(set(found["text_offset"])) > 2 and found["text_offset"] == sorted(found["text_offset"])
    assert ask(case, logprobs=0)["logprobs"]["top_logprobs"] is None
    assert ask(case)["logprobs"] is None


@pytest.mark.parametrize("seed", range(3))
def test_offsets_are_where_tokens_begin_in_the_text(case, seed):
    odd = [i for i in range(case.words) if "\ufffd" in case.own.decode([i])]  # parts of characters
    how = {"temperature": 1.5, "seed": seed, "max_tokens": 30, "logit_bias": {str(i): -100 for i in odd}}
    choice = ask(case, **how, logprobs=0)
    text, found = choice["text"], choice["logprobs"]
    assert "\ufffd" not in text and len(found["tokens"]) == 30
    own = [case.own.encode(name, special=False) for name in found["tokens"]]
    silent = [len(ids) == 1 and not case.own.decode(ids) for ids in own]
    for name, at, unseen in zip(found["tokens"], found["text_offset"], silent, strict=True):
        assert unseen or text[at:].startswith(name)
    assert "".join(name for name, unseen in zip(found["tokens"], silent, strict=True) if not unseen) == text


def test_chances_are_those_before_temperature_and_penalties(case):
    how = {"temperature": 1.5, "top_k": 30, "seed": 3, "presence_penalty": 1, "frequency_penalty": 0.5}
    tokens = case.own.generate(case.prompt, max_tokens=10, ignore_end=True, **how)[0]
    found = ask(case, logprobs=1, **how)["logprobs"]
    logs = expected(case, case.prompt, tokens)
    assert found["token_logprobs"] == pytest.approx(
        [logs[i, t].item() for i, t in enumerate(tokens)], abs=1e-4
    )
    # what was drawn is among them, though another token was likelier
    assert all(name in top for name, top in zip(found["tokens"], found["top_logprobs"], strict=True))
    assert any(len(top) == 2 for top in found["top_logprobs"])


def test_chats_tell_the_bytes_of_each_token(case):
    choice = ask(case, "/v1/chat/completions", logprobs=True, top_logprobs=3)
    content = choice["logprobs"]["content"]
    prompt = case.own.encode(PROMPT, special=False)
    tokens = case.own.generate(prompt, max_tokens=10, ignore_end=True)[0]
    logs = expected(case, prompt, tokens)
    assert [t["logprob"] for t in content] == pytest.approx(
        [logs[i, t].item() for i, t in enumerate(tokens)], abs=1e-4
    )
    written = b"".join(
        bytes(t["bytes"]) for t, n in zip(content, tokens, strict=True) if case.own.decode([n])
    )
    assert written.decode(errors="replace").strip() == choice["message"]["content"].strip()
    for token in content:
        assert len(token["top_logprobs"]) == 3
        assert token["top_logprobs"][0]["logprob"] == pytest.approx(token["logprob"], abs=1e-6)
        assert token["top_logprobs"][0]["bytes"] == token["bytes"]
    assert ask(case, "/v1/chat/completions", logprobs=True)["logprobs"]["content"][0]["top_logprobs"] == []
    assert ask(case, "/v1/chat/completions", logprobs=False)["logprobs"] is None


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_events_bring_each_token_once(case, path):
    how = {"logprobs": True, "top_logprobs": 2} if "chat" in path else {"logprobs": 2}
    whole = ask(case, path, **how)["logprobs"]
    pieces = [p["logprobs"] for p in streamed(case, path, **how) if p["logprobs"]]
    assert len(pieces) > 2
    for name, values in whole.items():
        if values is not None:
            assert [value for piece in pieces for value in piece[name]] == values


def test_tokens_behind_a_stop_are_left_out(case):
    text = ask(case, max_tokens=20)["text"]
    stop = text[-4:-2]
    for choice in (
        ask(case, max_tokens=20, stop=stop, logprobs=0),
        streamed(case, "/v1/completions", max_tokens=20, stop=stop, logprobs=0)[-1],
    ):
        assert choice["finish_reason"] == "stop"
    choice = ask(case, max_tokens=20, stop=stop, logprobs=0)
    offsets = choice["logprobs"]["text_offset"]
    assert offsets and all(at < len(choice["text"]) for at in offsets)
    pieces = streamed(case, "/v1/completions", max_tokens=20, stop=stop, logprobs=0)
    assert [at for p in pieces if p["logprobs"] for at in p["logprobs"]["text_offset"]] == offsets


@pytest.mark.parametrize("presence, frequency", [(1.5, 0.0), (0.0, 2.0), (0.7, 0.9), (-2.0, -1.0)])
def test_penalties_are_openais_formula(case, presence, frequency):
    scale = 2.0  # of what the requests may ask for

    def change(scores, made):
        for token in set(made):
            scores[token] -= scale * (presence + frequency * made.count(token))

    settings = {"presence_penalty": scale * presence, "frequency_penalty": scale * frequency}
    tokens = case.own.generate(case.prompt, max_tokens=24, ignore_end=True, **settings)[0]
    assert tokens == case.greedy(24, change)
    scale = 1.0
    settings = {"presence_penalty": presence, "frequency_penalty": frequency}
    text = ask(case, max_tokens=24, **settings)["text"]
    made = case.own.generate(case.prompt, max_tokens=24, ignore_end=True, **settings)
    assert made[0] == case.greedy(24, change) and made[1] == text


def test_a_bias_is_added_to_logits(case):
    plain = case.own.generate(case.prompt, max_tokens=8, ignore_end=True)[0]
    never, always = plain[0], 40

    def change(scores, made):
        scores[never] -= 100
        scores[always] += 3.5

    found = ask(case, max_tokens=8, logit_bias={str(never): -100, str(always): 3.5}, logprobs=0)
    tokens = case.greedy(8, change)
    logs = expected(case, case.prompt, tokens)
    assert found["logprobs"]["token_logprobs"] == pytest.approx(
        [logs[i, t].item() for i, t in enumerate(tokens)], abs=1e-4
    )
    forced = ask(case, max_tokens=3, logit_bias={str(always): 100}, logprobs=0)["logprobs"]["tokens"]
    assert len(set(forced)) == 1


@pytest.mark.parametrize(
    "change, said",
    [
        ({"logprobs": 21}, "'logprobs' is from 0 to 20"),
        ({"logprobs": -1}, "'logprobs' is from 0 to 20"),
        ({"logprobs": True}, "'logprobs' is a whole number"),
        ({"top_logprobs": 2}, "'top_logprobs' belongs to chats"),
        ({"presence_penalty": 2.5}, "'presence_penalty' is from -2 to 2"),
        ({"frequency_penalty": "a"}, "'frequency_penalty' is a number"),
        ({"logit_bias": {"a": 1}}, "names tokens by their numbers"),
        ({"logit_bias": {"1": 101}}, "is from -100 to 100"),
        ({"logit_bias": {"1": "x"}}, "is from -100 to 100"),
        ({"logit_bias": {"99999999": 1}}, "the bias is of the token 99999999"),
        ({"logit_bias": {"-1": 1}}, "the bias is of the token -1"),
        ({"logit_bias": [1]}, "'logit_bias' is an object"),
        ({"logit_bias": {str(i): 0 for i in range(2000)}}, "at most 1024 tokens"),
    ],
)
def test_wrong_requests_are_one_error(case, change, said):
    body = {"model": "lm", "prompt": "Once", "max_tokens": 2, **change}
    status, answer, _ = case.server.ask("/v1/completions", body)
    assert status == 400 and said in answer["error"]["message"], answer
    chat = {"model": "lm", "messages": [{"role": "user", "content": "a"}], "top_logprobs": 2}
    assert (
        "belongs to chats with 'logprobs'"
        in case.server.ask("/v1/chat/completions", chat)[1]["error"]["message"]
    )


def test_numbers_are_finite_in_python(case):
    for settings in ({"presence_penalty": math.nan}, {"frequency_penalty": math.inf}):
        with pytest.raises(ValueError, match="a penalty must be a finite number"):
            case.own.generate(case.prompt, **settings)


def test_the_openai_package_reads_them(case):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{case.server.url}/v1", api_key="none", max_retries=0)
    how = {"model": "lm", "max_tokens": 6, "temperature": 0, "extra_body": {"ignore_eos": True}}
    chat = {"messages": [{"role": "user", "content": PROMPT}], "logprobs": True, **how}
    answer = client.chat.completions.create(**chat, top_logprobs=5).choices[0]
    assert len(answer.logprobs.content[0].top_logprobs) == 5 and answer.logprobs.content[0].logprob <= 0
    events = [e.choices[0].logprobs for e in client.chat.completions.create(**chat, stream=True)]
    parts = [token for logprobs in events if logprobs for token in logprobs.content]
    assert [t.token for t in parts] == [t.token for t in answer.logprobs.content]
    plain = client.completions.create(prompt=PROMPT, logprobs=2, **how).choices[0].logprobs
    assert len(plain.tokens) == len(plain.token_logprobs) == len(plain.top_logprobs) == 6
