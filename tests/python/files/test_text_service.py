"""Many texts at once: the tokens of each alone, whatever the company; turns, limits, ends, failures."""

import json
import random
import threading
import time

import pytest
from language_folders import WORDS, write_llama

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, TextService, load_language_model, save_file, save_language_model

LENGTH = 160
PAGE = 32


class Ends:
    """What a service told of texts, by name."""

    def __init__(self, service):
        self.service, self.told, self.pieces, self.order = service, {}, {}, []
        self.changed = threading.Condition()

    def submit(self, name, prompt, **settings):
        def on_end(end):
            with self.changed:
                self.told[name] = end
                self.order.append(name)
                self.changed.notify_all()

        self.pieces[name] = []
        settings.setdefault("on_text", lambda piece, tokens: self.pieces[name].append((piece, tokens)))
        return self.service.submit(prompt, on_end=on_end, **settings)

    def wait(self, *names, seconds=120):
        with self.changed:
            assert self.changed.wait_for(lambda: all(n in self.told for n in names), seconds)
        return [self.told[n] for n in names]

    def wait_for_tokens(self, name, count=1, seconds=120):
        end = time.monotonic() + seconds
        while sum(len(tokens) for _, tokens in list(self.pieces[name])) < count:
            assert time.monotonic() < end
            time.sleep(0.001)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    save_language_model(write_llama(folder / "llama", length=LENGTH), folder / "m.rl")
    return folder / "m.rl"


@pytest.fixture(scope="module")
def alone(path):
    return load_language_model(path)


def page_bytes(path):
    with TextService(path) as service:
        stats = service.stats()
    return stats["cache_bytes"] // stats["pages"]


def random_requests(seed, count):
    choose = random.Random(seed)
    common = [choose.randrange(4, WORDS) for _ in range(70)]
    requests = []
    for i in range(count):
        own = [choose.randrange(4, WORDS) for _ in range(choose.choice((1, 2, 5, 40, 90)))]
        prompt = common[: choose.choice((0, 0, 31, 32, 33, 64, 70))] + own
        settings = {"max_tokens": choose.choice((1, 3, 20, 60)), "ignore_end": choose.random() < 0.7}
        if choose.random() < 0.6:
            settings |= {"temperature": choose.choice((0.7, 1.5)), "seed": i, "top_k": choose.choice((0, 9))}
        if choose.random() < 0.3:
            settings["repetition_penalty"] = 1.3
        requests.append((prompt[: LENGTH - 1], settings))
    return requests


@pytest.mark.parametrize("pages, running, chunk", [(0, 16, 64), (7, 8, 24), (5, 3, 1000)])
def test_tokens_are_those_of_each_text_alone(path, alone, pages, running, chunk):
    """Texts come at random times, in a cache with room for all or for a few, which put each other back."""
    long = {"max_tokens": 110, "ignore_end": True}  # which together take more pages than there may be
    requests = [([5 + i], long) for i in range(5)] + random_requests(pages, 35)
    expected = [alone.generate(prompt, **settings) for prompt, settings in requests]
    cache = pages * page_bytes(path)
    with TextService(path, max_running=running, chunk=chunk, cache_bytes=cache) as service:
        ends, choose = Ends(service), random.Random(7)
        for i, (prompt, settings) in enumerate(requests):
            assert ends.submit(i, prompt, key=str(i % 3), **settings)
            time.sleep(choose.choice((0, 0, 0.002, 0.01)) if i > 5 else 0)
        found = ends.wait(*range(len(requests)))
        assert service.drain(10)
        stats = service.stats()
    for i, (end, (tokens, _, why)) in enumerate(zip(found, expected)):
        assert (end["outcome"], end["tokens"], end["finish"]) == ("done", tokens, why), i
        assert [t for _, some in ends.pieces[i] for t in some] == tokens
    assert stats["batched"] and stats["done"] == len(requests) and stats["pages_used"] == 0
    assert stats["reused_tokens"] > 0 and (pages == 0 or stats["put_back"] > 0)
    assert stats["generated_tokens"] == sum(len(tokens) for tokens, _, _ in expected)
    assert stats["steps"] < stats["generated_tokens"] + sum(len(p) for p, _ in requests) / 2


def test_logits_have_the_same_bits_in_any_company(path):
    """What makes tokens equal: no sum of a token depends on what else a step computes."""
    from rushlight.export import load_file

    torch.manual_seed(3)
    model, ids = load_file(path), torch.randint(4, WORDS, (3, 90))
    pages = torch.arange(15).reshape(3, 5) % 5
    together = [[], [], []]
    one_by_one = model.session()
    for i in range(90):
        logits = one_by_one.step(
            ids[:1, i], torch.tensor([i]), torch.tensor([0]), pages[:1], torch.tensor([0])
        )
        together[0].append(logits["logits"] if isinstance(logits, dict) else logits)
    whole = model.session()
    places = torch.arange(90)
    logits = whole.step(ids[0], places, places * 0, pages[:1].expand(90, -1).contiguous(), places)
    logits = logits["logits"] if isinstance(logits, dict) else logits
    assert torch.equal(torch.cat(together[0]), logits)


def test_prompts_that_begin_alike_share_pages(path, alone):
    choose = random.Random(1)
    prompt = [choose.randrange(4, WORDS) for _ in range(100)]
    settings = {"max_tokens": 8, "ignore_end": True}
    expected = alone.generate(prompt, **settings)[0]
    with TextService(path) as service:
        ends = Ends(service)
        for name, given, reused in [
            ("first", prompt, 0),
            ("same", prompt, 96),
            ("longer", prompt[:64] + [5, 6, 7], 64),
            ("shorter", prompt[:96], 64),  # the last token is computed
            ("other", [*prompt[:31], 4 if prompt[31] != 4 else 5, *prompt[32:]], 0),
        ]:
            ends.submit(name, given, **settings)
            (end,) = ends.wait(name)
            assert end["reused_tokens"] == reused and end["prompt_tokens"] == len(given)
            assert end["tokens"] == alone.generate(given, **settings)[0]
        assert service.stats()["pages_cached"] > 3
        service.forget_prefixes()
        ends.submit("again", prompt, **settings)
        (end,) = ends.wait("again")
        assert end["reused_tokens"] == 0 and end["tokens"] == expected


def test_keys_take_turns(path):
    with TextService(path, max_running=1) as service:
        ends = Ends(service)
        ends.submit("blocks", [5], max_tokens=100, ignore_end=True, key="a")
        ends.wait_for_tokens("blocks")
        for i in range(6):
            ends.submit(f"a{i}", [5, 6], max_tokens=2, ignore_end=True, key="a")
        for i in range(2):
            ends.submit(f"b{i}", [7, 8], max_tokens=2, ignore_end=True, key="b")
        ends.wait(*(f"a{i}" for i in range(6)), "b0", "b1")
    assert ends.order == ["blocks", "a0", "b0", "a1", "b1", "a2", "a3", "a4", "a5"]


def test_running_texts_go_on_while_a_long_prompt_comes_in(path):
    with TextService(path, chunk=8) as service:
        ends = Ends(service)
        ends.submit("runs", [5], max_tokens=150, ignore_end=True)
        ends.wait_for_tokens("runs")
        before = len(ends.pieces["runs"])
        ends.submit("long", list(range(4, 54)) * 2, max_tokens=1, ignore_end=True)
        ends.wait_for_tokens("long")
        told = len(ends.pieces["runs"]) - before
        ends.wait("runs", "long")
    assert told >= 6  # steps of 8 to 16 tokens of the prompt, each with one of the text


def test_too_many_are_refused_and_the_others_served(path):
    with TextService(path, max_running=1, max_queued=2) as service:
        ends = Ends(service)
        ends.submit("runs", [5], max_tokens=150, ignore_end=True)
        ends.wait_for_tokens("runs")
        tickets = [ends.submit(i, [5, 6], max_tokens=2, ignore_end=True) for i in range(4)]
        assert tickets[:2] == sorted(tickets[:2]) and tickets[2:] == [None, None]
        ends.wait("runs", 0, 1)
        assert service.stats()["refused"] == 2
        assert service.drain(30)
        assert service.submit([5]) is None
        with pytest.raises(RuntimeError, match="takes no more texts"):
            service.generate([5])


def test_texts_end_when_they_are_told_to(path):
    with TextService(path, max_running=1) as service:
        ends = Ends(service)
        running = ends.submit("runs", [5], max_tokens=159, ignore_end=True)
        waiting = ends.submit("waits", [5], max_tokens=150, ignore_end=True)
        ends.submit("late", [5], max_tokens=150, ignore_end=True, timeout=0.0)
        ends.wait_for_tokens("runs")
        service.cancel(waiting)
        service.cancel(running)
        runs, waits, late = ends.wait("runs", "waits", "late")
        service.cancel(running)  # it has ended
        service.cancel(10**9)
        assert runs["outcome"] == waits["outcome"] == "cancelled" and late["outcome"] == "deadline"
        assert 0 < len(runs["tokens"]) and not waits["tokens"]
        ends.submit("soon", [5], max_tokens=159, ignore_end=True, timeout=0.02)
        (soon,) = ends.wait("soon")
        assert soon["outcome"] in ("deadline", "done")
        assert service.stats()["pages_used"] == 0
        with pytest.raises(TimeoutError):
            service.generate([5], timeout=0.0)


def test_the_end_of_a_service_ends_its_texts(path):
    service = TextService(path, max_running=2)
    ends = Ends(service)
    for i in range(5):
        ends.submit(i, [5], max_tokens=159, ignore_end=True)
    ends.wait_for_tokens(0)
    service.close()
    assert sum(end["outcome"] == "cancelled" for end in ends.wait(*range(5), seconds=1)) >= 3
    service.close()
    for use in (service.stats, service.drain, lambda: service.submit([5])):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_threads_may_be_in_a_service_that_is_closed(path):
    service, found = TextService(path, max_running=1), []

    def work(i):
        try:
            while True:
                found.append(service.generate([5 + i], max_tokens=159, ignore_end=True)[2])
        except (ValueError, RuntimeError) as error:
            found.append(str(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    drains = threading.Thread(target=lambda: found.append(service.drain()))
    while service.stats()["generated_tokens"] < 10:
        time.sleep(0.001)
    drains.start()
    service.close()
    for t in (*threads, drains):
        t.join(60)
        assert not t.is_alive()
    assert sum("closed" in str(f) or "no more texts" in str(f) for f in found) >= 4


def test_one_text_fails_alone(tmp_path):
    """A word without numbers, and callbacks that raise, beside texts that go on."""
    save_language_model(write_llama(tmp_path / "f", silent=7), tmp_path / "m.rl")
    alone = load_language_model(tmp_path / "m.rl")
    settings = {"max_tokens": 60, "ignore_end": True}
    good = [prompt for prompt in ([i, 9, 11] for i in range(10, 30))]
    expected = {}
    for i, prompt in enumerate(good):
        try:
            expected[i] = alone.generate(prompt, **settings)[0]
        except RuntimeError:
            pass
    assert len(expected) > 3

    def fails(piece, tokens):
        raise KeyError("of the caller")

    with TextService(tmp_path / "m.rl") as service:
        ends = Ends(service)
        for i in expected:
            ends.submit(i, good[i], **settings)
        ends.submit("silent", [5, 7, 9], **settings)
        ends.submit("raises", [good[min(expected)][0], 9, 11], on_text=fails, **settings)
        silent, raises, *others = ends.wait("silent", "raises", *expected)
        assert silent["outcome"] == "failed" and "gave no numbers" in silent["error"]
        assert raises["outcome"] == "failed" and "of the caller" in raises["error"]
        assert [end["tokens"] for end in others] == list(expected.values())
        assert service.stats()["failed"] == 2 and service.stats()["pages_used"] == 0
        with pytest.raises(RuntimeError, match="gave no numbers"):
            service.generate([7], **settings)


def test_requests_that_can_never_run_are_one_error(path):
    with TextService(path, max_prompt=20, max_tokens=30) as service:
        for prompt, settings, message in [
            ([], {}, "no tokens"),
            ([WORDS], {}, "is not one of"),
            ([5] * 21, {}, "at most 20 are allowed"),
            ([5], {"max_tokens": 31}, "at most 30 are allowed"),
            ([5], {"max_tokens": 0}, "above zero"),
            ([5], {"temperature": -1.0, "max_tokens": 3}, "temperature"),
            ("text", {}, "no tokenizer"),
        ]:
            with pytest.raises(ValueError, match=message):
                service.submit(prompt, **settings)
        assert service.stats()["submitted"] == 0
    for limits, message in [
        ({"cache_bytes": 100}, "does not hold a text of 160 tokens"),
        ({"max_running": 0}, "room for one text"),
        ({"chunk": -1}, "room for one text"),
        ({"cache_bytes": -1}, "not be negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            TextService(path, **limits)


def test_threads_wait_for_their_texts(path, alone):
    found = {}
    with TextService(path) as service:

        def work(i):
            found[i] = [service.generate([5 + i, 9], max_tokens=20, ignore_end=True) for _ in range(3)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for i in range(8):
        assert found[i] == [alone.generate([5 + i, 9], max_tokens=20, ignore_end=True)] * 3


def test_half_the_precision_in_the_file(path, tmp_path):
    """Weights and caches of bfloat16: the tokens are those alone, and close to float32's."""
    write_llama(tmp_path / "f", length=LENGTH)
    save_language_model(tmp_path / "f", tmp_path / "h.rl", dtype=torch.bfloat16)
    alone, ids = load_language_model(tmp_path / "h.rl"), list(range(5, 50))
    with TextService(tmp_path / "h.rl") as service:
        for seed in range(3):
            settings = {"max_tokens": 30, "temperature": 1.0, "seed": seed}
            assert service.generate(ids, **settings) == alone.generate(ids, **settings)
    assert (tmp_path / "h.rl").stat().st_size < path.stat().st_size * 0.7


class Counting(nn.Module):
    """A model of the first format: methods for one text, its tokens so far as state."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("cache", torch.zeros(1, 1, 24, 4), persistent=False)
        self.words = nn.Parameter(torch.randn(9, 4), requires_grad=False)

    def forward(self, tokens, positions, reach):
        rows = torch.nn.functional.embedding(tokens, self.words)[:, None]
        self.cache.index_copy_(2, positions, rows)
        seen = (reach <= positions[-1])[:, None].float()
        state = (self.cache[0, 0, : reach.shape[0]] * seen * (reach[:, None] + 1).cos()).sum(0)
        return {"logits": (state @ self.words.t())[None] * 3}


def test_files_of_the_first_format_are_served_one_by_one(tmp_path):
    model = Counting().eval()
    tokens, places, reach = (torch.arange(k) for k in (3, 3, 8))
    many = Dim("N", max=24), Dim("T", max=24)
    save_file(
        {"prefill": model, "decode": model},
        tmp_path / "m.rl",
        {"prefill": (tokens[None], places, reach), "decode": (tokens[None, :1], places[:1], reach)},
        dynamic_shapes={
            "prefill": ({1: many[0]}, {0: many[0]}, {0: many[1]}),
            "decode": (None, None, {0: many[1]}),
        },
        texts={
            "generate.json": json.dumps(
                {"version": 1, "max_length": 24, "step": 8, "vocabulary": 9, "end": [3]}
            )
        },
    )
    alone = load_language_model(tmp_path / "m.rl")
    ids = [5, 2, 8, 1]
    by_hand = []
    for _ in range(10):
        session = Counting()
        n = len(ids) + len(by_hand)
        given = torch.tensor([ids + by_hand])
        logits = session(given, torch.arange(n), torch.arange(24))["logits"]
        by_hand.append(int(logits.argmax()))
    assert alone.generate(ids, max_tokens=10, ignore_end=True)[0] == by_hand
    requests = [([5, i, 8], {"max_tokens": 15, "seed": i, "temperature": 0.5 * i}) for i in range(8)]
    with TextService(tmp_path / "m.rl") as service:
        assert not service.stats()["batched"]
        ends = Ends(service)
        for i, (prompt, settings) in enumerate(requests):
            ends.submit(i, prompt, **settings)
        late = ends.submit("late", [5], timeout=0.0, max_tokens=5)
        gone = ends.submit("gone", [5], max_tokens=5)
        service.cancel(gone)
        assert late and [ends.wait(n)[0]["outcome"] for n in ("late", "gone")] == ["deadline", "cancelled"]
        for i, (prompt, settings) in enumerate(requests):
            (end,) = ends.wait(i)
            tokens, _, why = alone.generate(prompt, **settings)
            assert (end["tokens"], end["finish"]) == (tokens, why)
            assert [t for _, some in ends.pieces[i] for t in some] == tokens
