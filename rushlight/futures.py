"""Futures: results that arrive later."""

import threading
from typing import Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


_T = TypeVar("_T")


class Future(Generic[_T]):
    """A result set once by ``set_result`` or ``set_exception``; ``wait`` blocks until then.

    Callbacks run in the thread that completes the future, in the order of their registration."""

    def __init__(self, *, devices=None):
        self._condition = threading.Condition()
        self._done = False
        self._value = None
        self._error = None
        self._callbacks = []

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def wait(self):
        """The result, as soon as there is one; raises the error that was set instead."""
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self.value()

    def value(self):
        """The result of a completed future. Raises ``RuntimeError`` before that."""
        if not self._done:
            raise RuntimeError("Future: value() before the result was set; call wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def _complete(self, value, error):
        with self._condition:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback):
        """Run a callback; whoever completes the future does not answer for its errors."""
        try:
            callback(self)
        except Exception:
            _log_callback_error()

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def set_result(self, result) -> None:
        """Completes the future with a result."""
        self._complete(result, None)

    def set_exception(self, result) -> None:
        """Completes the future with an exception, which ``wait`` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def add_done_callback(self, callback) -> None:
        """Calls ``callback(self)`` on completion, or now if complete. What it raises is logged, no more: use
        `then` where an error must reach somebody."""
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def then(self, callback):
        """A future of ``callback(self)``, run on completion. What the callback raises comes out of that
        future's `wait` as a RuntimeError."""
        result = Future()

        def run(done):
            try:
                result.set_result(callback(done))
            except RuntimeError as error:
                result.set_exception(error)
            except Exception as error:
                result.set_exception(_callback_error(error))

        self.add_done_callback(run)
        return result


def _callback_error(error):
    made = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def _log_callback_error():
    import logging

    logging.getLogger("torch.futures").exception("Got the following error when running the callback:")


def collect_all(futures):
    """A future of the list of `futures`, complete when all of them are."""
    futures, result = list(futures), Future()
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    left, lock = len(futures), threading.Lock()
    if not futures:
        result.set_result([])

    def count_down(_):
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(count_down)
    return result


def wait_all(futures):
    """The results of all `futures`, waiting for each; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
