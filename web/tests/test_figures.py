"""The page's figures are those of `headtime simulate --json`, for every run of every step."""

import json
import os
import pathlib
import subprocess

import pytest

import browser

HEADTIME = pathlib.Path(os.environ.get("HEADTIME", browser.TARGET / "debug" / "headtime"))
STEPS = ["1", "2", "3", "4", "5", "6", "lab"]
# What depends on the machine: times of the simulator itself, and memory, whose addresses have 32 bits in the page.
OF_THE_MACHINE = ["wall_seconds", "ns_per_decision", "ns_per_fill_search", "model_bytes", "task_bytes"]


def simulated(scenarios, folder):
    """The results of the command line for scenarios, two of them at a time."""
    results, running = [], []
    for i, scenario in enumerate(scenarios):
        file = folder / f"{i}.toml"
        file.write_text(scenario, encoding="utf-8")
        command = [HEADTIME, "simulate", file, "--json"]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        if len(running) == 2 or i == len(scenarios) - 1:
            for one in running:
                out, err = one.communicate()
                assert one.returncode == 0, err
                results.append(json.loads(out))
            running = []
    return results


def without_machine(of):
    """A result without what depends on the machine."""
    if isinstance(of, dict):
        return {key: without_machine(value) for key, value in of.items() if key not in OF_THE_MACHINE}
    return of


def at(result, path):
    """The figure at a path such as `foreground.mb_s`."""
    for key in path.split("."):
        result = result[key]
    return result


def compare(page, folder):
    """Compares each run of the step that is shown, and each figure of its tables."""
    runs = page.results()
    expected = dict(zip(runs, simulated([run["scenario"] for run in runs.values()], folder), strict=True))
    for name, run in runs.items():
        assert without_machine(run["result"]) == without_machine(expected[name]), name
    cells = page.script(
        "return [...document.querySelectorAll('td[data-path]')].map((c) => [c.dataset.run, c.dataset.path, "
        "c.dataset.value, c.textContent])"
    )
    assert cells
    for run, path, value, text in cells:
        figure = at(expected[run], path)
        assert value == "" if figure is None else float(value) == figure, (run, path)
        assert text in ("–", "") if figure is None else same(text, figure), (run, path, text, figure)
    return expected


def same(text, figure):
    """Whether a text such as `1,234.5 ms` or `12.3%` is a figure, rounded."""
    number = text.rstrip("%").split(" ")[0].replace(",", "").removesuffix("/s")
    digits = len(number.partition(".")[2])
    scale = 100 if text.endswith("%") else 1
    return abs(float(number) - scale * figure) <= 0.5000001 * 10**-digits


WIDTHS = [390, 1400]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_has_the_figures_of_the_command_line_and_fits_every_screen(page, tmp_path, step):
    page.open(f"step={step}")
    assert page.script("return document.body.dataset.ready") == "yes", page.text(".status")
    compare(page, tmp_path)
    everything_has_a_name(page)
    for width in WIDTHS:
        with page.screen(width):
            assert page.script("return document.documentElement.scrollWidth") <= width
            outside = page.script("""
                return [...document.querySelectorAll('button, select, input, canvas, p, h2')]
                    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML)
            """)
            assert not outside, width


def everything_has_a_name(page):
    """Every control has a name, every picture a text, and what is simulated is said."""
    without = page.script("""
        const named = (e) =>
          e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')?.textContent.trim();
        const all = [...document.querySelectorAll('button, input, select, a')];
        return all.filter((e) => !named(e)).map((e) => e.outerHTML);
    """)
    assert not without
    bare = page.script("""
        const told = (c) => c.getAttribute('role') === 'img' && c.getAttribute('aria-label');
        const shown = (c) => c.getAttribute('aria-hidden') !== 'true';
        const all = [...document.querySelectorAll('canvas')].filter(shown);
        return all.filter((c) => !told(c)).map((c) => c.className);
    """)
    assert not bare
    assert page.text(".status[role=status]")


def test_the_parts_of_one_request_are_its_response_time(page):
    page.open("step=1&disk=cheetah9lp&seed=7")
    parts = [float(v) for v in page.script("return [...document.querySelectorAll('td')].map((c) => c.dataset.value)")]
    assert len(parts) == 5 and all(part >= 0 for part in parts)
    assert abs(sum(parts[:4]) - parts[4]) < 1e-6


def test_a_drive_of_20_tb(page, tmp_path):
    page.open("step=lab&disk=nearline-20tb&seconds=3&workload=closed%3A4")
    expected = compare(page, tmp_path)
    assert expected["yours"]["disk"] == "nearline-20tb"
    assert expected["yours"]["freeblock"]["mb_s"] > 1
    assert "20" in page.find("select[name=disk] option:checked")[0].text


TRACE = "time_ms,op,lbn,sectors\n" + "".join(f"{7 * i},{'RW'[i % 2]},{i * 7919 % 100000 * 8},8\n" for i in range(400))


def test_a_trace_of_the_visitors(page, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(TRACE, encoding="utf-8")
    page.open("step=lab&seconds=2")
    page.find("input[type=file]")[0].send_keys(str(file))
    page.until(lambda: "trace=mine.csv" in page.script("return location.hash"))
    page.press(".run")
    page.until(lambda: page.script("return document.body.dataset.ready === 'yes'"))
    expected = compare(page, tmp_path)
    assert expected["yours"]["foreground"]["requests"] > 200


def test_a_damaged_trace_is_refused_with_its_line(page, tmp_path):
    file = tmp_path / "torn.csv"
    lines = TRACE.splitlines()
    lines[41] = "40,R,12"
    file.write_text("\n".join(lines), encoding="utf-8")
    page.open("step=lab&seconds=2")
    page.find("input[type=file]")[0].send_keys(str(file))
    page.until(lambda: "trace=torn.csv" in page.script("return location.hash"))
    page.press(".run")
    page.until(lambda: page.script("return document.body.dataset.ready === 'error'"))
    assert "torn.csv:42:" in page.text(".status"), page.text(".status")
    assert page.find(".status[role=status].error")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("step=lab&disk=floppy", "no built-in drive"),
        ("step=lab&seconds=-1", "scenario:"),
        ("step=lab&workload=closed%3A0", "scenario:"),
        ("step=lab&seed=x", "scenario:"),
        ("step=lab&order=best", "scenario:"),
        ("step=lab&trace=gone.csv", "gone.csv"),
    ],
)
def test_a_wrong_setting_is_refused_and_named(page, state, reason):
    page.open(state)
    assert page.script("return document.body.dataset.ready") == "error"
    assert reason in page.text(".status"), page.text(".status")
