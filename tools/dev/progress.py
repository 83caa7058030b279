"""The progress line: rewritten in place on a terminal, elsewhere a line now and then."""

import os
import shutil
import sys
import time

EVERY_SECONDS = 30  # without a terminal: a line so often,
EVERY_SHARE = 0.1  # or when so much more is done,
AT_LEAST_SECONDS = 2  # but not more often than this


def clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    """What one step does, for how long, and how long it will still take."""

    def __init__(self, title, out=None, now=time.monotonic):
        self.title, self.out, self.now = title, out or sys.stdout, now
        self.terminal = self.out.isatty() and os.environ.get("TERM") != "dumb"
        self.started = self.printed = now()
        self.printed_share = 0.0
        self.share = self.remaining = None
        self.told = self.started
        self.detail = ""
        self.width = 0
        if self.terminal:
            self._draw()
        else:
            print(f"dev: {title}", file=self.out, flush=True)

    def elapsed(self):
        return self.now() - self.started

    def update(self, share=None, remaining=None, detail=""):
        self.share, self.remaining, self.detail, self.told = share, remaining, detail, self.now()
        self.tick()

    def tick(self):
        """Call this every second or so: time passes while a long command runs."""
        if self.terminal:
            self._draw()
            return
        quiet = self.now() - self.printed
        more = (self.share or 0.0) - self.printed_share >= EVERY_SHARE
        if quiet >= EVERY_SECONDS or (more and quiet >= AT_LEAST_SECONDS):
            self.printed, self.printed_share = self.now(), self.share or 0.0
            print(f"dev: {self.text()}", file=self.out, flush=True)

    def text(self):
        parts = [self.title]
        if self.share is not None:
            parts.append(f"{int(self.share * 100):3d} %")
        parts.append(clock(self.elapsed()))
        if self.remaining is not None:
            left = max(1.0, self.remaining - (self.now() - self.told))
            parts[-1] += f", about {clock(left)} left"
        return "  ".join(parts + ([self.detail] if self.detail else []))

    def _draw(self):
        text = self.text()[: shutil.get_terminal_size().columns - 1]
        self.out.write("\r" + text + " " * (self.width - len(text)))
        self.out.flush()
        self.width = len(text)

    def clear(self):
        """Make room for other output."""
        if self.terminal and self.width:
            self.out.write("\r" + " " * self.width + "\r")
            self.out.flush()
            self.width = 0

    def finish(self, message=None):
        self.clear()
        if message:
            print(f"dev: {message}", file=self.out, flush=True)
