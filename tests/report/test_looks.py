"""Texts and pictures as TensorBoard gives them back over HTTP."""

import html
import io
import re

import matplotlib.image
import numpy as np
import pytest

from tests.report.tensorboard_http import Board
from transformer_ablation.report import attention_sheets
from transformer_ablation.report.metrics import MetricWriter
from transformer_ablation.report.sample_text import sample_table
from transformer_ablation.report.samples import Sample

ODD = "a | b *c* _d_ `e` <b>f</b> &amp; \\| [g](h) #1 $x$ ~~i~~ \u05e9\u05dc http://a.b"
SAMPLES = [
    Sample(7, "one", "eins", ODD),
    Sample(9, "# two", None, ""),
    Sample(11, ODD, "-", "3. x"),
]


def pixels(png):
    return matplotlib.image.imread(io.BytesIO(png), format="png")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("looks")
    png = attention_sheets.sheet(np.eye(3)[None, None], "abc", "xyz", "title")
    with MetricWriter(folder / "run") as writer:
        for step in (5, 10):
            writer.write_text("samples/validation", sample_table(SAMPLES), step)
            writer.write_image("attention/line_7", png, step)
            writer.write_histogram("entropy/head_1", np.array([0.0, 1.0, 1.0]), step)
    with MetricWriter(folder / "run", resume_step=5) as writer:
        writer.write_text("samples/validation", sample_table(SAMPLES[:1]), 10)
    return Board(folder), png


def test_table_of_samples_shows_every_letter(shown):
    first, second = shown[0].get(
        "text", "text", run="run", tag="samples/validation/text_summary"
    )
    assert (first["step"], second["step"]) == (5, 10)
    body = first["text"].partition("</thead>")[2]
    cells = re.findall(r"<td>(.*?)</td>", body, re.DOTALL)
    texts = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]
    expected = [
        ["7", "one", "eins", ODD],
        ["9", "# two", "", ""],
        ["11", ODD, "-", "3. x"],
    ]
    assert np.reshape(texts, (3, 4)).tolist() == expected
    assert not re.search("<(b|em|code|a|del|h1)>", first["text"])
    rows = second["text"].partition("</thead>")[2].count("<tr>")
    assert rows == 1  # of the second attempt


def test_picture_is_the_file_that_was_written(shown):
    board, png = shown
    (entry,) = board.get(
        "images", "images", run="run", tag="attention/line_7", sample=0
    )
    assert entry["step"] == 5  # update 10 has not been made again
    assert board.raw("images", "individualImage?" + entry["query"]) == png


def test_histogram_holds_all_values(shown):
    ((_, step, bins),) = shown[0].get(
        "histograms", "histograms", run="run", tag="entropy/head_1"
    )
    assert step == 5 and sum(count for _, _, count in bins) == 3


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 3)])
def test_sheet_has_a_black_cell_for_a_weight_of_one(layers, heads):
    """Head h of layer n attends from each query q to key q + h + n, in a circle.

    Each sees the other keys, in white, but the last, which is blue unless it is that.
    """
    weights = np.full((layers, heads, 4, 5), 1e-9)
    weights[..., 4] = 0
    for n, h, q in np.ndindex(layers, heads, 4):
        weights[n, h, q, (q + h + n) % 5] = 1
    png = attention_sheets.sheet(weights, "abcd", "vwxyz", "$ title")
    image = pixels(png)[..., :3]
    cell, margin = attention_sheets.CELL, attention_sheets.MARGIN
    bottom = image.shape[0] - margin
    top = bottom - (layers * 5 - 1) * cell
    for n, h, q, k in np.ndindex(layers, heads, 4, 5):
        y = top + round((n * 5 + q + 0.5) * cell)
        x = margin + round((h * 6 + k + 0.5) * cell)
        weight = weights[n, h, q, k]
        red, green, blue = image[y, x]
        if weight > 0:
            assert np.allclose(image[y, x], 1 - weight, atol=0.01)
        else:
            assert 0.8 < red < green < blue


def test_wide_sheet_stays_bounded():
    png = attention_sheets.sheet(
        np.full((1, 64, 24, 24), 1 / 24), "q" * 24, "k" * 24, ""
    )
    height, width = pixels(png).shape[:2]
    assert width < 64 * 25 * 2 + 200 and height < 24 * 2 + 200


def test_positions_are_a_picture_without_a_warning(recwarn):
    png = attention_sheets.position_pictures(np.zeros((5, 4)), "zeros")
    assert pixels(png).shape[2] == 4 and not recwarn.list
