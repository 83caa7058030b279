"""Texts of many threads at once from one language model."""

import os
import threading
import weakref

from rushlight import _C


class TextService:
    """Runs the texts that threads ask for together, on a thread of its own.

    ``max_queued`` texts may wait and ``max_running`` run; ``max_prompt`` and ``max_tokens`` bound a text,
    ``cache_bytes`` the keys and values of all. ``chunk`` tokens of prompts go along with a step of texts that
    run. Prompts that begin alike share what was computed for their beginning.
    """

    def __init__(
        self, path, *, max_queued=256, max_running=16, max_prompt=0, max_tokens=0, cache_bytes=0, chunk=64
    ):
        self._service = _C._TextService(
            os.fspath(path),
            max_queued=max_queued,
            max_running=max_running,
            max_prompt=max_prompt,
            max_tokens=max_tokens,
            cache_bytes=cache_bytes,
            chunk=chunk,
        )
        self._end = weakref.finalize(self, self._service.close)  # before the interpreter ends, too

    def submit(self, prompt, *, on_text=None, on_end=None, key="", timeout=None, **settings):
        """A ticket for a text, a prompt or a list of token numbers; None where too many wait.

        ``on_text(piece, tokens)`` is called with what is known more, and ``on_end(end)`` once, with a dict;
        both on the service's thread, which runs all texts: they must be quick. Texts of one ``key`` wait for
        each other's turn. After ``timeout`` seconds a text ends as it is. Settings are those of
        `TextModel.generate`.
        """
        prompt = prompt if isinstance(prompt, str) else list(prompt)
        return self._service.submit(
            prompt, on_text=on_text, on_end=on_end, key=key, timeout=timeout, **settings
        )

    def generate(self, prompt, *, on_text=None, key="", timeout=None, **settings):
        """(tokens, text, why it ended), as of `TextModel.generate`; waits for it. Any threads may."""
        done, found = threading.Event(), {}

        def on_end(end):
            found.update(end)
            done.set()

        ticket = self.submit(prompt, on_text=on_text, on_end=on_end, key=key, timeout=timeout, **settings)
        if ticket is None:
            raise RuntimeError("the service takes no more texts: too many wait, or it drains")
        try:
            done.wait()
        except BaseException:
            self.cancel(ticket)
            raise
        if found["outcome"] == "failed":
            raise RuntimeError(found["error"])
        if found["outcome"] == "deadline":
            raise TimeoutError(f"the text had {len(found['tokens'])} tokens after {timeout} seconds")
        return found["tokens"], found["text"], found["finish"]

    def cancel(self, ticket):
        """End a text as cancelled, if it has not ended."""
        self._service.cancel(ticket)

    def stats(self):
        """How many texts and tokens there were, are and wait; pages of the cache."""
        return self._service.stats()

    def forget_prefixes(self):
        """Beginnings of texts so far are not shared with later ones."""
        self._service.forget_prefixes()

    def drain(self, timeout=-1.0):
        """Take no more texts; whether all have ended within ``timeout`` seconds (-1: however long)."""
        return self._service.drain(timeout)

    def close(self):
        """End all texts as cancelled, and the service."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
