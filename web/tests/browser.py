"""A headless Chromium that shows the page, and what tests ask of it."""

import contextlib
import os
import pathlib
import shutil
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PAGE = TARGET / "page" / "index.html"

# Seconds within which a step's runs are done, also on a busy machine.
PATIENCE = 60


def missing():
    """What is not installed of a browser and its driver; empty if nothing is."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


def start(width=1400, height=1000):
    """A browser. It draws without the machine's graphics, so that pictures are alike everywhere."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    # Chromium's own sandbox needs another user than root, and the page is ours.
    arguments = ["headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "force-device-scale-factor=1",
                 "disable-dev-shm-usage", "force-color-profile=srgb", "disable-background-networking",
                 f"window-size={width},{height}"]
    for argument in arguments:
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


class Page:
    """The page in a browser."""

    def __init__(self, driver):
        self.driver = driver
        self.screens = []

    def open(self, state="step=1"):
        """Shows a state: what the page's address has after the hash. The page is loaded only once."""
        if self.driver.current_url.startswith(PAGE.as_uri()):
            # The address changes in any case, also if it is this one already.
            self.script("document.body.dataset.ready = ''; history.replaceState(null, '', '#'); "
                        "location.hash = arguments[0]", state)
        else:
            self.driver.get(f"{PAGE.as_uri()}#{state}")
        self.ready()

    def load(self, state="step=1"):
        """Loads the page anew."""
        self.driver.get("about:blank")
        self.open(state)

    def ready(self):
        """Waits until the runs are done, or have failed; returns which."""
        return self.until(lambda: self.script("return document.body.dataset.ready"))

    def until(self, condition, patience=PATIENCE):
        """Waits for a condition; returns what it gives."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not within {patience} s; the status is: {self.text('.status')}")

    def script(self, text, *arguments):
        """Runs JavaScript in the page."""
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        """The elements that a selector finds."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """The text of the first element; empty if there is none."""
        found = self.find(selector)
        return found[0].text if found else ""

    def press(self, selector):
        """Clicks an element."""
        self.script("arguments[0].scrollIntoView({block: 'center'})", self.find(selector)[0])
        self.find(selector)[0].click()

    def console(self):
        """What the browser has had to say since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def results(self):
        """The runs of the step: name to scenario and result."""
        return self.script("return document.querySelector('.view').runs()")

    @contextlib.contextmanager
    def screen(self, width, height=844):
        """A screen of another size for a while."""
        self.screens.append({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", self.screens[-1])
        try:
            yield
        finally:
            self.screens.pop()
            if self.screens:
                self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", self.screens[-1])
            else:
                self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    @contextlib.contextmanager
    def preferring(self, feature, value):
        """A preference of the visitor's, such as prefers-reduced-motion, for a while."""
        media = {"features": [{"name": feature, "value": value}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
