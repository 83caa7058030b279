"""A headless browser for tests that must see a page as people do."""

import re
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no browser to show the page: none of {', '.join(NAMES)} is installed")
    return browser


def body_of(page, tmp_path, address="", script=""):
    """The attributes of the page's body after a script ran in it, and the whole document's text."""
    shown = tmp_path / "shown.html"
    shown.write_text(page.read_text() + f"<script>{script}</script>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=3000"]
    options += [f"--user-data-dir={tmp_path / 'browser'}", "--window-size=1280,800"]
    done = subprocess.run(
        [find(), *options, f"{shown.as_uri()}{address}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    body = re.search(r"<body([^>]*)>", done.stdout)[1]
    return dict(re.findall(r'data-([\w-]+)="([^"]*)"', body)), done.stdout
