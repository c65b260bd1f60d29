"""What tests of pages may ask for."""

from tests.browser.page import browser, console, no_complaints, screen, visitor

__all__ = ["browser", "console", "no_complaints", "screen", "visitor"]
