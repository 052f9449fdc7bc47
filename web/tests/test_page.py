"""The page itself: every control, the keyboard, the address, narrow screens, preferences, pictures."""

import base64
import io
import pathlib

import pytest
from PIL import Image, ImageChops
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import browser

STEPS = ["1", "2", "3", "4", "5", "6", "lab"]
PICTURES = pathlib.Path(__file__).resolve().parent / "pictures"
# Of a picture's pixels, how many may differ, and from which difference of a colour they count: edges are drawn
# slightly differently by other versions of a browser.
MOST_DIFFERENT = 0.003
NOTICED = 48


def test_the_page_is_small_and_loads_only_its_own_files(page):
    files = list(browser.PAGE.parent.iterdir())
    assert sum(file.stat().st_size for file in files) < 1_000_000
    page.load()
    loaded = page.script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert all(name.startswith(("file:", "blob:", "data:")) for name in loaded), loaded
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert "http:" not in text and "https:" not in text


# For each step, a control and a value that is not its default; the laboratory's wait for its button.
CONTROLS = {
    "1": [("disk", "atlas3"), ("seed", None)],
    "2": [("disk", "cheetah9lp"), ("size", "64k")],
    "3": [("disk", "cheetah9lp"), ("depth", "4"), ("order", "clook")],
    "4": [("disk", "cheetah9lp"), ("workload", "closed:8"), ("seed", None)],
    "5": [("disk", "cheetah9lp"), ("workload", "open:40"), ("fill", "bw-greedy"), ("cache", "64 MiB")],
    "6": [("disk", "barracuda36es2"), ("admit", "cfq")],
    "lab": [
        ("disk", "cheetah9lp"), ("workload", "closed:3"), ("order", "fcfs"), ("fill", "bw-greedy"),
        ("background", "scan:64"), ("admit", "bfq"), ("cache", "16 MiB"), ("noise", "off"), ("seconds", "1.5"),
        ("seed", "9"),
        ("format", "msr-csv"), ("beyond", "refuse"),
    ],
}


def state(page):
    """The runs of a step, and which of them is on the platter."""
    return page.results(), page.text(".chosen"), page.text(".now")


@pytest.mark.parametrize("step", STEPS)
def test_every_control_changes_the_run_and_the_address(page, step):
    page.open(f"step={step}" + ("&seconds=1" if step == "lab" else ""))
    names = page.script("return [...document.querySelectorAll('.settings [name]')].map((c) => c.name)")
    more = ["trace"] if step == "lab" else []
    assert sorted(names) == sorted([name for name, _ in CONTROLS[step]] + more)
    for name, value in CONTROLS[step]:
        before = state(page)
        if value is None:
            page.press(f"[name={name}]")
            value = "2"
        else:
            change = "const c = document.querySelector(`[name=${arguments[0]}]`); c.value = arguments[1]; " \
                     "c.dispatchEvent(new Event('change'));"
            page.script(change, name, value)
        assert f"{name}={value}".replace(":", "%3A").replace(" ", "+") in page.script("return location.hash")
        if step != "lab":
            assert page.ready() == "yes", page.text(".status")
            assert state(page) != before, name
    if step == "lab":
        page.press(".run")
        page.until(lambda: page.script("return document.body.dataset.ready === 'yes'"))
        scenario = page.results()["yours"]["scenario"]
        for name, value in CONTROLS[step][:10]:
            assert f"{name} = " in scenario and value in scenario, scenario


def slide(page, value):
    """Moves the slider of the playback, which goes from 0 to 10,000."""
    page.script("const s = document.querySelector('.stage input[type=range]'); s.value = arguments[0]; "
                "s.dispatchEvent(new Event('input'))", value)


def test_the_playback_plays_pauses_and_goes_from_phase_to_phase(page):
    page.open("step=1")
    instant = "return Number(document.querySelector('input[type=range]').value)"
    assert page.script(instant) == 0
    page.press(".play")
    page.until(lambda: page.script(instant) > 100)
    page.press(".play")
    stopped = page.script(instant)
    assert page.text(".play") == "Play" and 0 < stopped < 10_000
    assert "t=" in page.script("return location.hash")
    words = []
    slide(page, 0)
    for _ in range(3):
        page.press(".transport button:nth-of-type(3)")
        words.append(page.text(".now"))
    assert "arm moves" in words[0] and "waits" in words[1] and "reads" in words[2], words
    page.press(".transport button:nth-of-type(2)")
    assert page.text(".now") == words[1]


def test_gaps_are_found_and_gone_through(page):
    page.open("step=4")
    first = page.text(".now")
    table = page.text(".figures")
    page.press(".moments button:nth-of-type(2)")
    assert page.text(".now") != first and page.text(".figures") != table
    page.press(".moments button:nth-of-type(1)")
    assert page.text(".now") == first and page.text(".figures") == table


def test_a_drive_that_surprises_is_explained(page):
    page.open("step=5&disk=nearline-20tb")
    assert "surprised" in page.text(".figures")
    page.open("step=5&disk=nearline-20tb&cache=64+MiB")
    assert "surprised" not in page.text(".figures")
    assert float(page.script("return document.querySelector('.view').runs().scan.result.freeblock.mb_s")) > 1


def test_the_map_follows_the_instant(page):
    page.open("step=5")
    last = page.text(".progress")
    slide(page, 2000)
    early = page.text(".progress")
    assert early != last and "requests" in early
    share = lambda text: float(text.split("; ")[1].split("%")[0])
    assert 0 < share(early) <= share(last)


def test_arrow_keys_go_from_step_to_step(page):
    page.open("step=1")
    press = lambda key: ActionChains(page.driver).send_keys(key).perform()
    for step in [*STEPS[1:], "lab"]:
        press(Keys.ARROW_RIGHT)
        page.until(lambda: f"step={step}" in page.script("return location.hash"))
        page.until(lambda: page.script("return document.activeElement.id") == "title")
    press(Keys.ARROW_LEFT)
    page.until(lambda: "step=6" in page.script("return location.hash"))
    # In a list they choose from the list.
    page.find("select[name=admit]")[0].send_keys(Keys.ARROW_RIGHT)
    assert "step=6" in page.script("return location.hash")
    page.ready()


def test_every_control_is_reached_with_the_tabulator(page):
    page.open("step=4")
    wanted = page.script("return document.querySelectorAll('.view button, .view input, .view select').length")
    page.script("document.getElementById('title').focus()")
    reached = set()
    for _ in range(wanted + 6):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        index = page.script("return [...document.querySelectorAll('.view button, .view input, .view select')]"
                            ".indexOf(document.activeElement)")
        reached.add(index)
    assert reached >= set(range(wanted)), reached
    page.script("document.querySelector('.play').focus()")
    ActionChains(page.driver).send_keys(Keys.ENTER).perform()
    assert page.text(".play") == "Pause"


def test_an_address_brings_back_its_state(page):
    page.load("step=3&disk=cheetah9lp&depth=4&order=clook&t=123.456")
    chosen = page.script("return [...document.querySelectorAll('.settings select')].map((s) => s.value)")
    assert chosen == ["cheetah9lp", "4", "clook"]
    assert page.text(".now").startswith("123.456 ms")
    assert page.find("#steps a[aria-current=step]")[0].text.startswith("3.")
    page.press("#steps a[data-step='2']")
    page.until(lambda: "step=2" in page.script("return location.hash"))
    page.ready()
    page.driver.back()
    page.until(lambda: "step=3" in page.script("return location.hash"))
    page.ready()
    assert page.text(".now").startswith("123.456 ms")


def test_with_reduced_motion_nothing_moves_by_itself(page):
    with page.preferring("prefers-reduced-motion", "reduce"):
        page.open("step=1")
        instant = "return document.querySelector('.now').textContent"
        page.press(".play")
        seen = set()
        page.script("window.seen = new Set(); window.watch = setInterval(() => "
                    "seen.add(document.querySelector('.now').textContent), 10)")
        page.until(lambda: page.script("return seen.size") >= 3)
        seen = page.script("clearInterval(watch); return [...seen]")
        page.press(".play")
    # One text for each phase: no instant between them was shown.
    assert len(seen) == 3, seen


def test_light_and_dark(page):
    # A copy is read, since reading a canvas often makes it slow, and the browser says so.
    corner = """
        const [from, to] = [document.querySelector('.platter'), document.createElement('canvas')];
        [to.width, to.height] = [from.width, from.height];
        const context = to.getContext('2d', { willReadFrequently: true });
        context.drawImage(from, 0, 0);
        return [...context.getImageData(from.width / 3, from.height / 5, 1, 1).data];
    """
    page.open("step=1")
    light = page.script("return getComputedStyle(document.body).backgroundColor"), page.script(corner)
    with page.preferring("prefers-color-scheme", "dark"):
        page.until(lambda: page.script("return getComputedStyle(document.body).backgroundColor") != light[0])
        page.until(lambda: page.script(corner) != light[1])


STATES = {
    "seek": "step=1&t=2",
    "queue": "step=3&depth=32&t=400",
    "gap": "step=4&t=1000",
    "scan": "step=5&disk=cheetah9lp&t=20000",
    "20tb": "step=lab&disk=nearline-20tb&seconds=2&t=700",
}


def drawn(page, canvas):
    """What a canvas shows, on white."""
    url = page.script("return document.querySelector(arguments[0]).toDataURL()", canvas)
    image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")


@pytest.mark.parametrize("name", STATES)
def test_a_picture_is_as_it_was(page, name):
    with page.screen(800, 1000):
        page.open(STATES[name])
        # The drawing follows the screen's new size with the next frame.
        page.until(lambda: page.script("return document.querySelector('.platter').width") == 768)
        images = [drawn(page, canvas) for canvas in [".platter", ".strip"] + ([".map"] if name == "scan" else [])]
    picture = Image.new("RGB", (max(i.width for i in images), sum(i.height for i in images)))
    top = 0
    for image in images:
        picture.paste(image, (0, top))
        top += image.height
    file = PICTURES / f"{name}.png"
    if not file.exists():
        PICTURES.mkdir(exist_ok=True)
        picture.quantize(64).save(file, optimize=True)
        pytest.fail(f"there was no picture {file.name}; there is one now, look at it")
    before = Image.open(file).convert("RGB")
    assert before.size == picture.size
    difference = ImageChops.difference(before, picture).convert("L").point(lambda v: 255 if v > NOTICED else 0)
    different = difference.histogram()[255] / (picture.width * picture.height)
    assert different <= MOST_DIFFERENT, f"{100 * different:.1f}% of the pixels differ"
