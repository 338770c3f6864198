"""The Chromium that the page tests drive: found on PATH, else installed.  Run as a script, it installs."""

import os
import shutil
import subprocess
import sys

# The first has the same engine without windows around it, and opens pages twice as fast.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium-headless-shell", "chromium")  # of Debian, where only the second is everywhere
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]


def find_browser() -> str | None:
    """Path of a Chromium on this machine, or None: Playwright then takes its own."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _has_own_browser() -> bool:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return os.path.exists(playwright.chromium.executable_path)


def install() -> None:
    """Debian's package where that is possible, else the build that Playwright downloads."""
    if find_browser() or _has_own_browser():
        return
    print("installing a browser for the page tests", flush=True)
    if shutil.which("apt-get") and os.geteuid() == 0:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], env=environment, stdout=subprocess.DEVNULL, check=False)
        for package in PACKAGES:
            subprocess.run(["apt-get", "install", "-y", "-q", package, "fonts-noto-cjk"], env=environment,
                           stdout=subprocess.DEVNULL, check=False)
            if find_browser():
                return
    if subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False).returncode:
        sys.exit("error: no Chromium could be installed: put one on PATH (chromium, google-chrome), then run again")


if __name__ == "__main__":
    install()
