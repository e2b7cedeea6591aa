"""Files that are written whole: what is said of one that cannot be."""

import pytest

from transformer_ablation.report.json_file import write_text


def test_fault_names_the_file_that_was_asked_for(tmp_path):
    folder = tmp_path / "table.tex"
    folder.mkdir()
    with pytest.raises(IsADirectoryError) as found:
        write_text(folder, "text")
    assert found.value.filename == str(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["table.tex"]


def test_name_of_any_length_that_the_file_system_takes(tmp_path):
    path = tmp_path / ("x" * 255)
    write_text(path, "text")
    assert path.read_text() == "text"
    with pytest.raises(OSError, match="too long") as found:
        write_text(tmp_path / ("x" * 256), "text")
    assert found.value.filename == str(tmp_path / ("x" * 256))
