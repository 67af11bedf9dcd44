"""Colours of the style sheet: text can be read on its ground, by light and in the dark (WCAG 2.1, level AA)."""

import re

import pytest

from secure_kg.report.style import STYLE

LEAST = 4.5


def colours(scheme: str) -> dict[str, str]:
    """The variables of a scheme; the dark one changes some of the light one's."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[:2]
    found = dict(re.findall(r"--(\w+): (#\w+)", light))
    return found if scheme == "light" else found | dict(re.findall(r"--(\w+): (#\w+)", dark))


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_what_the_standard_says() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "soft"])
@pytest.mark.parametrize("ink", ["ink", "quiet", "main", "good", "bad"])
def test_text_stands_out(scheme: str, ground: str, ink: str) -> None:
    found = colours(scheme)
    assert contrast(found[ink], found[ground]) >= LEAST


@pytest.mark.parametrize("severity", ["high", "medium", "low", "info"])
def test_white_stands_out_on_badges(severity: str) -> None:
    found = re.search(rf"\.chip\.{severity} \{{ background: (#\w+);[^}}]*color: #fff;", STYLE)
    assert found is not None
    assert contrast(found[1], "#fff") >= LEAST


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_of_all_classes_stand_out_from_the_page(scheme: str) -> None:
    found = colours(scheme)
    for name in ("public", "ciphertext", "masked", "aggregate", "clear"):
        assert contrast(found[name], found["paper"]) >= 2.5, name  # a shape, with its name beside it
