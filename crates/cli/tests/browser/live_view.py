"""The live view in a browser: beside a busy server its figures are those of `headtime top`, a session is paused in it,
and it says when the server is gone and goes on when it is back.

    HEADTIME=target/debug/headtime python3 live_view.py

Needs Chromium, its driver and fio (Debian: chromium, chromium-driver, fio) and the package selenium. `make web-tests`
installs the latter and runs this.
"""

import json
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

HEADTIME = os.path.abspath(os.environ.get("HEADTIME", "target/debug/headtime"))
TOKEN = secrets.token_hex(16)


def until(what, holds, seconds=30):
    """Waits until `holds` returns something true, and returns that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def number(text):
    """The first number of a text, with a unit of bytes."""
    found = re.search(r"(-?[\d.]+)(?: (KiB|MiB|GiB|TiB))?", text)
    assert found, f"no number in {text!r}"
    return float(found[1]) * 1024 ** ["", "KiB", "MiB", "GiB", "TiB"].index(found[2] or "")


class Server:
    """`headtime serve` in a directory, which may be ended and started again."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        (folder / "token").write_text(TOKEN)
        (folder / "token").chmod(0o600)
        (folder / "serve.toml").write_text(
            f"""
            [disk]
            drive = "atlas10k"
            backing = "disk.img"
            [listen]
            nbd = ["unix:nbd.sock"]
            control = "control.sock"
            web = "127.0.0.1:{self.port}"
            web-token = "token"
            [[export]]
            name = "data"
            """
        )
        self.start()

    def start(self):
        log = open(self.folder / "said", "a", encoding="utf-8")
        self.process = subprocess.Popen([HEADTIME, "serve", "serve.toml"], cwd=self.folder, stderr=log)
        until("the server listens", lambda: (self.folder / "nbd.sock").exists())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0

    def top(self):
        words = [HEADTIME, "top", "--once", "--json", "--interval-ms", "1000"]
        return json.loads(subprocess.run(words, cwd=self.folder, check=True, stdout=subprocess.PIPE).stdout)


class Page:
    """The live view in a browser without a window."""

    def __init__(self, port):
        options = webdriver.ChromeOptions()
        for word in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,1600"]:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        service = Service(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
        self.browser = webdriver.Chrome(options=options, service=service)
        self.origin = f"http://127.0.0.1:{port}/"
        self.browser.get(self.origin)

    def figure(self, name):
        return self.browser.find_element(By.CSS_SELECTOR, f'dd[data-figure="{name}"]').text

    def cell(self, table, name):
        """A cell of the only row of a table; the page may be replacing the row."""
        script = "const c = document.querySelector(arguments[0]); return c && c.textContent"
        return until(f"a cell {name}", lambda: self.browser.execute_script(script, f'#{table} [data-figure="{name}"]'))

    def state(self):
        return self.browser.find_element(By.ID, "state").text

    def readings(self):
        return int(self.browser.execute_script("return document.body.dataset.readings ?? 0"))

    def read_anew(self):
        """Waits until the page has read the figures twice more."""
        before = self.readings()
        until("new figures", lambda: self.readings() >= before + 2)

    def complaints(self):
        """What the browser's console has, since the last question."""
        return [line for line in self.browser.get_log("browser") if line["level"] != "INFO"]

    def requested(self):
        """The addresses of all requests since the last question."""
        events = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def within(shown, before, after, digits):
    """Whether a shown counter, rounded, lies between two counts."""
    return before * (1 - digits) - 1 <= shown <= after * (1 + digits) + 1


def figures_are_those_of_top(server, page):
    """Counters lie between those of `top` before and after; rates and shares are near them."""
    before = server.top()
    page.read_anew()
    shown = {name: page.figure(name) for name in ["commands", "free_bytes", "commands_per_second", "head_time.seek"]}
    shown |= {name: page.cell("exports", name) for name in ["requests", "reads_per_second", "response_mean_ms"]}
    shown |= {name: page.cell("sessions", name) for name in ["done", "priority", "state", "name"]}
    after = server.top()
    print("shown:", shown)
    assert within(number(shown["commands"]), before["service"]["count"], after["service"]["count"], 0)
    assert within(number(shown["free_bytes"]), before["free_bytes"], after["free_bytes"], 0.005)
    counts = [view["exports"][0]["response"]["count"] for view in [before, after]]
    assert within(number(shown["requests"]), *counts, 0)
    done = [view["sessions"][0]["done_bytes"] for view in [before, after]]
    assert within(number(shown["done"]), *done, 0.005), (shown, done)
    session = after["sessions"][0]
    assert (shown["priority"], shown["name"]) == (str(session["priority"]), session["name"])
    assert shown["state"] == ("paused" if session["suspended"] else "running")
    # The intervals are not the same ones, and a virtual drive on a busy machine is uneven: these are of the same size.
    rates = {
        "commands_per_second": lambda view: view["commands_per_second"],
        "reads_per_second": lambda view: view["exports"][0]["reads_per_second"],
        "response_mean_ms": lambda view: view["exports"][0]["response_mean_ms"],
        "head_time.seek": lambda view: 100 * view["head_time"]["seek"],
    }
    for name, of in rates.items():
        low, high = sorted(of(view) for view in [before, after])
        assert low / 5 <= number(shown[name]) <= 5 * high, (name, shown[name], low, high)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        server = Server(folder)
        page, others = None, []
        try:
            page = Page(server.port)
            until("it is connected", lambda: page.state().startswith("Connected"))
            load = f"""fio --name=r --ioengine=nbd --uri=nbd+unix:///data?socket={folder}/nbd.sock --rw=randread --bs=4k
                --iodepth=4 --time_based --runtime=600 --size=8g"""
            others.append(subprocess.Popen(load.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            scrub = [HEADTIME, "scrub", "--journal", "journal"]
            others.append(subprocess.Popen(scrub, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            until("a session is shown", lambda: page.browser.find_elements(By.CSS_SELECTOR, "#sessions tbody tr"))
            time.sleep(4)
            figures_are_those_of_top(server, page)
            if out := os.environ.get("HEADTIME_SCREENSHOT"):
                page.browser.save_screenshot(out)

            press = lambda: page.browser.execute_script("document.querySelector('#sessions button').click()")
            said = lambda: page.browser.find_element(By.ID, "changed").text
            press()
            until("a change without the token is refused", lambda: "expected the token" in said())
            (refused,) = page.complaints()
            assert "401" in refused["message"], refused
            page.browser.find_element(By.ID, "token").send_keys(TOKEN)
            press()
            until("it is paused", lambda: page.cell("sessions", "state") == "paused")
            assert server.top()["sessions"][0]["suspended"]
            press()
            until("it goes on", lambda: page.cell("sessions", "state") == "running")
            assert page.complaints() == []

            elsewhere = [url for url in page.requested() if not url.startswith((page.origin, "data:"))]
            assert elsewhere == [], elsewhere
            server.stop()
            until("it says that the server is gone", lambda: "server is gone" in page.state())
            page.complaints()
            server.start()
            until("it goes on by itself", lambda: page.state().startswith("Connected"))
            page.read_anew()
            commands = number(page.figure("commands"))
            assert commands <= server.top()["service"]["count"] + 1, "it counts from the new start"
            strange = [c for c in page.complaints() if "ERR_CONNECTION_REFUSED" not in c["message"]]
            strange = [c for c in strange if "ERR_CONNECTION_RESET" not in c["message"]]
            assert strange == [], strange
            # Wide contents scroll within their part: a telephone's page does not scroll sideways.
            page.browser.set_window_size(420, 900)
            wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.browser.execute_script(wide) <= 0
            print("live_view.py: in order")
        finally:
            if page:
                page.browser.quit()
            for other in others:
                other.terminate()
                other.wait()
            if server.process.poll() is None:
                server.stop()


if __name__ == "__main__":
    sys.exit(main())
