"""Makes the pictures of docs/page: every step and the laboratory, wide and narrow: python3 web/tests/pictures.py

The page must be built (`make web`).
"""

import io

from PIL import Image

import browser

FOLDER = browser.ROOT / "docs" / "page"
STATES = {
    "1": "step=1&t=5",
    "2": "step=2&t=200",
    "3": "step=3&t=400",
    "4": "step=4&t=4270",
    "5": "step=5&t=25000",
    "6": "step=6&t=1000",
    "lab": "step=lab&disk=nearline-20tb&t=2000",
}
WIDTHS = [1400, 390]
# A still for the README.
STILL = "step=4&t=4270"


def taken(page, state, width, height=None):
    """A picture of a state; of the whole page without a height."""
    with page.screen(width, height or 900):
        page.open(state)
        if height is None:
            full = page.script("return document.documentElement.scrollHeight")
            with page.screen(width, full):
                return page.driver.get_screenshot_as_png()
        return page.driver.get_screenshot_as_png()


def main():
    FOLDER.mkdir(exist_ok=True)
    driver = browser.start()
    page = browser.Page(driver)
    try:
        for width in WIDTHS:
            for name, state in STATES.items():
                picture = Image.open(io.BytesIO(taken(page, state, width))).convert("RGB")
                picture.save(FOLDER / f"{name}-{width}.webp", quality=70, method=6)
        still = Image.open(io.BytesIO(taken(page, STILL, 1100, 900))).convert("RGB")
        still.quantize(128).save(browser.ROOT / "docs" / "page.png", optimize=True)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
