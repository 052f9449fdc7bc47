"""Prints how many frames a second the playback draws, and how much work each is: python3 web/tests/frames.py

The page must be built (`make web`). The browser draws without a graphics card, and the processor can be slowed down, so
that a fast machine stands for a small one. The work is the processor's time of the page's own thread, which does not
depend on what else the machine does.
"""

import argparse
import time

import browser

STATES = {
    "one request": "step=1",
    "a queue of 64": "step=3&depth=64",
    "gaps": "step=4",
    "a whole scan": "step=5",
    "20 TB": "step=lab&disk=nearline-20tb&seconds=5",
}
MEASURE = """
const done = arguments[arguments.length - 1];
const play = document.querySelector('.play');
const frames = [];
const each = (now) => {
  frames.push(now);
  if (frames.length > 1 && now - frames[0] > 4000) {
    done(frames);
  } else {
    requestAnimationFrame(each);
  }
};
play.click();
requestAnimationFrame(each);
"""


def busy(driver):
    """Processor time of the page's thread so far, in ms."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slower", type=float, default=1, help="factor by which the processor is slowed down")
    parser.add_argument("--width", type=int, default=1400)
    arguments = parser.parse_args()
    driver = browser.start()
    page = browser.Page(driver)
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    try:
        with page.screen(arguments.width, 1000):
            for name, state in STATES.items():
                page.open(state)
                driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": arguments.slower})
                time.sleep(0.3)
                before = busy(driver)
                at = driver.execute_async_script(MEASURE)
                work = (busy(driver) - before) / (len(at) - 1)
                driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": 1})
                between = sorted(b - a for a, b in zip(at, at[1:]))
                rate = 1000 * len(between) / (at[-1] - at[0])
                late = between[int(0.95 * (len(between) - 1))]
                print(f"{name:15} {rate:5.1f} frames/s, 95% of them within {late:.1f} ms; {work:.1f} ms of work each")
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
