r"""A table as LaTeX, in the manner of the paper's: booktabs, groups between rules.

The text compiles as it is, and as well where a paper that loads booktabs takes it in
with ``\input``. Letters that pdfLaTeX does not know are shown by LuaLaTeX and XeLaTeX,
and as their code points by pdfLaTeX.
"""

import re
from collections.abc import Sequence

from transformer_ablation.report.cells import (
    Column,
    config_columns,
    other_column,
    plain,
    result_columns,
    row_columns,
)
from transformer_ablation.report.table import Table

TOP = r"""% \input this file in a paper that loads booktabs, and graphicx to shrink
% a table that is wider than the page; or compile it as it is.
\expandafter\ifx\csname @classoptionslist\endcsname\relax
  \documentclass{article}
  \ifdefined\directlua\usepackage{fontspec}\else
  \ifdefined\XeTeXversion\usepackage{fontspec}\else
  \usepackage[T1]{fontenc}\usepackage{lmodern,textcomp}\fi\fi
  \usepackage{booktabs,graphicx}
  \usepackage[margin=1cm,landscape]{geometry}
  \begin{document}
  \def\sweeptableend{\end{document}}
  \def\sweeptabletext#1#2{#2}
\else
  \def\sweeptableend{}
  % Rare letters as they are, in the paper's fonts, where the engine knows them all;
  % else their code points.
  \ifdefined\directlua\def\sweeptabletext#1#2{#1}\else
  \ifdefined\XeTeXversion\def\sweeptabletext#1#2{#1}\else
  \def\sweeptabletext#1#2{#2}\fi\fi
\fi
\begin{table*}
  \centering
  \footnotesize
  \setlength{\tabcolsep}{3.5pt}
"""
# A table that is wider than the page is shrunk to it.
FIT = r"""  \ifdim\wd0>\linewidth
    \ifdefined\resizebox\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi
  \else\usebox0\fi
"""

# Names that a paper sets in its own way.
HEADINGS = {
    "N": "$N$",
    "d_model": r"$d_{\mathrm{model}}$",
    "d_ff": r"$d_{\mathrm{ff}}$",
    "h": "$h$",
    "d_k": "$d_k$",
    "d_v": "$d_v$",
    "P_drop": r"$P_{\mathit{drop}}$",
    "ε_ls": r"$\epsilon_{\mathit{ls}}$",
    "n": "$n$",
    "p": "$p$",
    "×10⁶": r"$\times 10^6$",
}

# Characters that TeX reads as commands, and letters of ours and of Europe's languages
# that need one in pdfLaTeX. Accented letters come from the kernel, in T1.
ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}",
    '"': r"\symbol{34}",  # in any encoding
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "-{}",  # two of them are no dash
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "Δ": r"\ensuremath{\Delta}",
    "ε": r"\ensuremath{\epsilon}",
    "≠": r"\ensuremath{\neq}",
    "†": r"\ensuremath{\dagger}",
    "§": r"\S{}",
    "…": r"\ldots{}",
    "⁶": r"\ensuremath{^6}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
}
KERNEL = re.compile("[ -~\u00a1\u00bf-\u00d6\u00d8-\u00f6\u00f8-\u017e]")
NUMBER = re.compile(r"[+-](?=\.?\d)")


def as_latex(table: Table) -> str:
    """A ``table*`` with the title as its caption and the notes below."""
    left, config = row_columns(table), config_columns(table)
    results = result_columns(table)
    other = other_column(table)
    spans = [
        bool(text) and bool(config) and not any(c.cells[i] for c in config)
        for i, text in enumerate(other.cells)
    ]
    placed = all(spans[i] for i, text in enumerate(other.cells) if text)
    if not placed:
        config, spans = [*config, other], [False] * len(spans)
    columns = [*left, *config, *results]
    body = []
    for i, row in enumerate(table.rows):
        if i and row.group != table.rows[i - 1].group:
            body.append(r"    \midrule")
        cells = [latex_cell(c.cells[i]) for c in left]
        if spans[i]:
            words = f"\\multicolumn{{{len(config)}}}{{l}}{{{escape(other.cells[i])}}}"
            cells.append(words)
        else:
            cells += [latex_cell(c.cells[i]) for c in config]
        cells += [latex_cell(c.cells[i]) for c in results]
        body.append(f"    {' & '.join(cells)} \\\\")
    return latex_table(table.title, columns, body, table.notes)


def latex_table(
    title: str, columns: Sequence[Column], body: Sequence[str], notes: Sequence[str]
) -> str:
    """A whole document's ``table*``; ``body`` are its rows between the rules."""
    specification = "".join("l" if c.left else "r" for c in columns)
    lines = [
        f"  \\caption{{{escape(title)}}}",
        f"  \\sbox0{{\\begin{{tabular}}{{{specification}}}",
        r"    \toprule",
        f"    {' & '.join(_heading(c.top) for c in columns)} \\\\",
        f"    {' & '.join(_heading(c.bottom) for c in columns)} \\\\",
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}}",
    ]
    end = [
        r"  \par\medskip",
        r"  \begin{minipage}{\linewidth}\scriptsize\raggedright",
        *[f"    {escape(note)}\\par" for note in notes],
        r"  \end{minipage}",
        r"\end{table*}",
        r"\sweeptableend",
    ]
    return TOP + "\n".join(lines) + "\n" + FIT + "\n".join(end) + "\n"


def _heading(text: str) -> str:
    return HEADINGS.get(text) or escape(text)


def latex_cell(text: str) -> str:
    """A cell: escaped, with a minus that is one before a number."""
    parts = NUMBER.split(text)
    signs = NUMBER.findall(text) if _numeric(text) else []
    if not signs:
        return escape(text)
    found = [escape(parts[0])]
    for sign, part in zip(signs, parts[1:], strict=True):
        found += [f"\\ensuremath{{{sign}}}", escape(part)]
    return "".join(found)


def _numeric(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?( [±≠†].*)?", text))


def escape(text: str) -> str:
    """Text that LaTeX sets as it is, on one line."""
    line = re.sub("[\u2068\u2069]", "", plain(text))  # isolation, for terminals
    found = []
    for run in re.split(f"({KERNEL.pattern}+)", line):
        if run and KERNEL.match(run):
            found.append("".join(ESCAPES.get(letter, letter) for letter in run))
        elif run:
            found.append(_foreign(run))
    return "".join(found)


def _foreign(run: str) -> str:
    """Letters outside the kernel's: commands where known, else both ways."""
    if all(letter in ESCAPES for letter in run):
        return "".join(ESCAPES[letter] for letter in run)
    inner = "".join(ESCAPES.get(c, c) for c in run)
    points = " ".join(ESCAPES[c] if c in ESCAPES else f"U+{ord(c):04X}" for c in run)
    return f"\\sweeptabletext{{{inner}}}{{{points}}}"
