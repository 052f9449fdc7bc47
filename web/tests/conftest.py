"""One browser for all tests, which fail if the page has said anything on the console."""

import pytest

import browser


def pytest_collection_modifyitems(items):
    """Without a browser there is nothing to test with."""
    missing = browser.missing()
    if missing:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)}"))


@pytest.fixture(scope="session")
def driver():
    """The browser."""
    started = browser.start()
    yield started
    started.quit()


@pytest.fixture
def page(driver):
    """The page, which has nothing to say on the console while a test runs."""
    shown = browser.Page(driver)
    shown.console()
    yield shown
    said = shown.console()
    assert not said, f"on the console: {said}"
