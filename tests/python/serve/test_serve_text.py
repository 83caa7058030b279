"""OpenAI's protocol of rushlight-serve, on language models of a file: texts, events, templates of chats."""

import json
import socket
import threading
import time

import pytest
import small_language_model
from serving import needs_server, serving
from tokenizer_kinds import train

from rushlight import _C
from rushlight.export import load_language_model, save_language_model

jinja2 = pytest.importorskip("jinja2")
pytest.importorskip("tokenizers")
pytestmark = needs_server

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}
{% set system_message = false %}{% endif %}{% for message in loop_messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{% if loop.index0 == 0 and system_message != false %}
{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}
{% else %}{% set content = message['content'] %}{% endif %}
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}
{% endfor %}"""
LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{#- what the system says #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- system_message ~ "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
SPACES = """  {% set ns = namespace(seen=0, last='') %}
    {% for m in messages if m.role != 'system' %}
  {% set ns.seen = ns.seen + 1 %}{% set ns.last = m.content[:3] %}
  <{{ loop.index }}/{{ loop.length }} {{ m.role | upper }}: {{ m.content | replace('a', 'b') | tojson }}>
{{ "last" if loop.last else loop.nextitem.role }}
    {% else %}
  none
    {% endfor %}
{{ ns.seen }} {{ ns.last ~ 1.5 }} {{ -7 // 2 }} {{ messages | length > 1 and not false }}  {# gone #}
{%- for k, v in messages[-1].items() %} {{ k }}={{ v.split()[0] if v else none }};{%- endfor +%}
{{ messages | map }}"""


def render(template, messages):
    """As transformers does."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda x: json.dumps(x, ensure_ascii=False)
    environment.globals["raise_exception"] = refuse
    given = {"messages": messages, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    return environment.from_string(template).render(**given)


TEMPLATES = {
    "chatml": CHATML,
    "llama2": LLAMA2,
    "llama3": LLAMA3,
    "spaces": SPACES.replace("\n{{ messages | map }}", ""),
    "macro": "{% macro f() %}{% endmacro %}",
    "filter": SPACES,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language")
    small_language_model.write(folder / "llama", train("llama2"))
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": CHATML}
    (folder / "llama" / "tokenizer_config.json").write_text(json.dumps(config))
    write = _C._write_model

    def write_all(path, methods, held, texts):
        """The model is exported once; files with other templates, and without one, hold the same."""
        chat = json.loads(texts.pop("chat.json"))
        assert chat == {"template": CHATML, "bos_token": "<s>", "eos_token": "</s>"}
        write(str(folder / "plain.rl"), methods, held, texts)
        for name, template in TEMPLATES.items():
            given = {**texts, "chat.json": json.dumps({**chat, "template": template}).encode()}
            write(str(folder / f"{name}.rl"), methods, held, given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_C, "_write_model", write_all)
        save_language_model(folder / "llama", folder / "unused.rl")
    return folder


@pytest.fixture(scope="module")
def server(files):
    with serving(*sorted(files.glob("*.rl"))) as running:
        yield running


@pytest.fixture(scope="module")
def model(files):
    return load_language_model(files / "plain.rl")


GREEDY = {"model": "plain", "temperature": 0}


def events(server, path, body):
    status, data, headers = server.ask(path, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), data
    pieces = data.decode().split("\n\n")
    assert pieces.pop() == "" and pieces.pop() == "data: [DONE]"
    return [json.loads(piece.removeprefix("data: ")) for piece in pieces]


def test_completions_are_the_models_texts(server, model):
    tokens, text, why = model.generate("Once upon", max_tokens=12)
    status, answer, _ = server.ask("/v1/completions", {**GREEDY, "prompt": "Once upon", "max_tokens": 12})
    assert status == 200, answer
    (choice,) = answer["choices"]
    assert choice["text"] == text and choice["finish_reason"] == {"length": "length"}.get(why, "stop")
    prompt = len(model.encode("Once upon"))
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (prompt, len(tokens))
    ids = server.ask("/v1/completions", {**GREEDY, "prompt": model.encode("Once upon"), "max_tokens": 12})[1]
    assert ids["choices"][0]["text"] == text


def test_events_are_the_same_text_in_pieces(server, model):
    text = model.generate("Once upon", max_tokens=12)[1]
    options = {"include_usage": True}
    body = {**GREEDY, "prompt": "Once upon", "max_tokens": 12, "stream_options": options}
    pieces = events(server, "/v1/completions", body)
    assert pieces[-1]["choices"] == [] and pieces[-1]["usage"]["completion_tokens"] == 12
    choices = [piece["choices"][0] for piece in pieces[:-1]]
    assert "".join(c["text"] for c in choices) == text and len(choices) > 2
    assert choices[-1]["finish_reason"] == "length"
    assert all(c["finish_reason"] is None for c in choices[:-1])


def test_several_prompts_and_texts_of_each(server, model):
    prompts = ["Once", "upon a", model.encode("time")]
    body = {**GREEDY, "prompt": prompts, "max_tokens": 5, "n": 2}
    choices = server.ask("/v1/completions", body)[1]["choices"]
    expected = [model.generate(p, max_tokens=5)[1] for p in prompts for _ in range(2)]
    assert [c["text"] for c in choices] == expected and [c["index"] for c in choices] == list(range(6))
    texts = [""] * 6
    for piece in events(server, "/v1/completions", body):
        texts[piece["choices"][0]["index"]] += piece["choices"][0]["text"]
    assert texts == expected


def test_seeds_and_settings_are_the_models(server, model):
    settings = {"temperature": 0.9, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.2, "seed": 5}
    text = model.generate("Once", max_tokens=10, **settings)[1]
    body = {"model": "plain", "prompt": "Once", "max_tokens": 10, **settings}
    assert server.ask("/v1/completions", body)[1]["choices"][0]["text"] == text


MESSAGES = [
    {"role": "system", "content": " Be kind. "},
    {"role": "user", "content": "A cat and\na dog"},
    {"role": "assistant", "content": ' said "hi" '},
    {"role": "user", "content": "  Why?  "},
]


@pytest.mark.parametrize("name", ["chatml", "llama2", "llama3", "spaces"])
@pytest.mark.parametrize("first", [0, 1])
def test_chats_are_written_as_jinja_writes_the_template(server, model, name, first):
    messages = MESSAGES[first:]
    prompt = model.encode(render(TEMPLATES[name], messages), special=False)
    text = model.generate(prompt, max_tokens=4)[1]
    body = {"model": name, "temperature": 0, "messages": messages, "max_tokens": 4}
    status, answer, _ = server.ask("/v1/chat/completions", body)
    assert status == 200, answer
    assert answer["usage"]["prompt_tokens"] == len(prompt)
    message = answer["choices"][0]["message"]
    assert message == {"role": "assistant", "content": text}
    pieces = [piece["choices"][0] for piece in events(server, "/v1/chat/completions", body)]
    assert pieces[0]["delta"]["role"] == "assistant" and pieces[-1]["finish_reason"] == "length"
    assert "".join(piece["delta"].get("content", "") for piece in pieces) == text


def test_templates_that_are_not_covered_are_refused_by_name(server):
    body = {"messages": MESSAGES, "max_tokens": 2}
    for name, said in (("macro", "tag 'macro' is not covered"), ("filter", "filter 'map' is not covered")):
        status, answer, _ = server.ask("/v1/chat/completions", {**body, "model": name})
        assert status == 400 and said in answer["error"]["message"]
        assert server.ask("/v1/completions", {"model": name, "prompt": "Once", "max_tokens": 1})[0] == 200
        assert said in server.logged(event="chat_template", model=name)["message"]
    status, answer, _ = server.ask("/v1/chat/completions", {**body, "model": "plain"})
    assert status == 400 and "has no template for chats" in answer["error"]["message"]
    wrong = {**body, "model": "llama2", "messages": MESSAGES[2:]}
    assert "must alternate" in server.ask("/v1/chat/completions", wrong)[1]["error"]["message"]


@pytest.mark.parametrize(
    "change, status, said",
    [
        ({"model": "none"}, 404, "there is no model 'none'"),
        ({"model": None}, 400, "names no model"),
        ({"prompt": ""}, 400, "the prompt is empty"),
        ({"prompt": 5}, 400, "'prompt' is a text"),
        ({"prompt": [10**9]}, 400, "is not one of the model's"),
        ({"prompt": "word " * 5000}, 400, "tokens, but the"),
        ({"max_tokens": 0}, 400, "max_tokens must be above zero"),
        ({"temperature": -1}, 400, "temperature"),
        ({"temperature": "hot"}, 400, "'temperature' is a number"),
        ({"top_p": 2}, 400, "top-p"),
        ({"n": 1000}, 400, "'n' times prompts"),
        ({"echo": True}, 400, "'echo' is not served"),
        ({"tools": [{}]}, 400, "'tools' is not served"),
        ({"stop": [5]}, 400, "'stop' is a text"),
        ({"stream": "yes"}, 400, "'stream' is true or false"),
    ],
)
def test_wrong_requests_are_one_error(server, change, status, said):
    body = {**GREEDY, "prompt": "Once", "max_tokens": 2, **change}
    found, answer, _ = server.ask("/v1/completions", body)
    assert found == status and said in answer["error"]["message"], answer


ENDLESS = 20_000
LONG = {"model": "endless", "temperature": 0, "prompt": "Once", "max_tokens": ENDLESS, "ignore_eos": True}


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A server whose texts do not come to their end within a test, however fast the machine is."""
    folder = tmp_path_factory.mktemp("endless")
    small_language_model.write(folder / "llama", train("llama2"), max_position_embeddings=ENDLESS + 64)
    save_language_model(folder / "llama", folder / "endless.rl")
    with serving(folder / "endless.rl") as running:
        yield running


def wait_for(server, texts):
    """Until so many texts are under way. The machine may be so busy that seconds pass between two steps: what
    tells that a text was ended are the tokens that were not made."""
    until = time.monotonic() + 90
    while sum(server.metric(f"rushlight_texts_{kind}") for kind in ("running", "queued")) != texts:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("leave", ["close", "shutdown"])
def test_a_client_that_goes_away_ends_its_text(endless, stream, leave):
    made = endless.metric("rushlight_generated_tokens_total")
    lost = endless.metric("rushlight_requests_lost_total")
    body = json.dumps({**LONG, "n": 2, "stream": stream}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    clients = [endless.raw(head + body) for _ in range(3)]
    try:
        wait_for(endless, 6)
        for s in clients:
            if stream:
                assert s.recv(100).startswith(b"HTTP/1.1 200 ")
            s.close() if leave == "close" else s.shutdown(socket.SHUT_WR)
        wait_for(endless, 0)
    finally:
        for s in clients:
            s.close()
    assert endless.metric("rushlight_requests_lost_total") == lost + 3
    assert endless.metric("rushlight_generated_tokens_total") - made < 6 * ENDLESS
    assert endless.ask("/v1/completions", {**LONG, "max_tokens": 1})[0] == 200


def test_a_refused_prompt_ends_the_texts_of_those_before_it(endless):
    made = endless.metric("rushlight_generated_tokens_total")
    status, answer, _ = endless.ask("/v1/completions", {**LONG, "prompt": ["Once", [10**9]]})
    assert status == 400 and "is not one of the model's" in answer["error"]["message"]
    wait_for(endless, 0)
    assert endless.metric("rushlight_generated_tokens_total") - made < ENDLESS


def test_many_clients_get_their_own_texts(server, model):
    prompts = [f"Once {i} upon" for i in range(10)]
    expected = [model.generate(p, max_tokens=8)[1] for p in prompts]
    found = [None] * len(prompts)

    def ask(i):
        body = {**GREEDY, "prompt": prompts[i], "max_tokens": 8}
        found[i] = server.ask("/v1/completions", body)[1]["choices"][0]["text"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == expected
    assert server.metric("rushlight_generated_tokens_total") > 80


def test_models_are_listed(server):
    names = {m["id"] for m in server.ask("/v1/models")[1]["data"]}
    assert names == {*TEMPLATES, "plain"} and server.ask("/v1/models/plain")[1]["id"] == "plain"
    status, answer, _ = server.infer("plain", ("x", "FP32", [1], [1]))
    assert status == 400 and "/v1/completions" in answer["error"]


def test_the_openai_package_talks_to_it(server, model):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    text = model.generate("Once upon", max_tokens=6)[1]
    settings = {"model": "plain", "prompt": "Once upon", "max_tokens": 6, "temperature": 0}
    assert client.completions.create(**settings).choices[0].text == text
    assert "".join(e.choices[0].text for e in client.completions.create(**settings, stream=True)) == text
    chat = {"model": "chatml", "messages": MESSAGES, "max_tokens": 5, "temperature": 0}
    answer = client.chat.completions.create(**chat).choices[0].message.content
    streamed = client.chat.completions.create(**chat, stream=True)
    assert "".join(e.choices[0].delta.content or "" for e in streamed) == answer
    assert {m.id for m in client.models.list()} == {*TEMPLATES, "plain"}
    with pytest.raises(openai.NotFoundError, match="there is no model"):
        client.completions.create(model="none", prompt="x")
    with pytest.raises(openai.BadRequestError, match="is not served"):
        client.completions.create(model="plain", prompt="x", best_of=2)
