import json
import math

import pytest

from vaezoo.text import (
    aligned,
    did_you_mean,
    json_text,
    markdown_row,
    on_one_line,
    printable,
    spreadsheet_cell,
    tabular,
)


def test_the_nearest_name_is_asked_for() -> None:
    assert did_you_mean("sed", ["batch", "seed", "seeds"]) == "; did you mean 'seed'?"
    assert did_you_mean("seed", iter(["beta", "gamma"])) == ""


def test_a_long_text_is_cut() -> None:
    assert on_one_line("a\n  b\tc ", 5) == "a b c"
    assert on_one_line("a\n  b\tc d", 5) == "a b c…"


def test_columns_stand_below_each_other() -> None:
    assert aligned([["name", "n"], ["a", "10"]]) == ["name  n", "a     10"]


def test_a_tabular_escapes_what_latex_reads() -> None:
    assert tabular([["score", "100 %"], ["mig_20", "0.5 ± 0.1"], ["a&b #1 $", ""]]).splitlines() == [
        r"\begin{tabular}{ll}",
        r"\hline",
        r"score & 100 \% \\",
        r"\hline",
        r"mig\_20 & 0.5 $\pm$ 0.1 \\",
        r"a\&b \#1 \$ &  \\",
        r"\hline",
        r"\end{tabular}",
    ]


def test_latex_commands_are_text() -> None:
    (line,) = [line for line in tabular([["a"], [r"\input{/etc/passwd}~^"]]).splitlines() if "input" in line]
    assert line == r"\textbackslash{}input\{/etc/passwd\}\textasciitilde{}\textasciicircum{} \\"


EVIL = "run\x1b]0;owned\x07\x1b[2J\u202e\udc80\nnext"


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    shown = r"run\x1b]0;owned\x07\x1b[2J\u202e\udc80\nnext"
    assert printable(EVIL) == shown
    assert printable("schön ± 漢字") == "schön ± 漢字"
    assert aligned([[EVIL, "n"]]) == [f"{shown}  n"]
    assert on_one_line(EVIL, 100) == shown.replace(r"\n", " ")
    assert markdown_row(["a|b", "c"]) == r"| a\|b | c |"


@pytest.mark.parametrize("text", ["=HYPERLINK(0)", "+1", "-1+1", "@SUM(1)"])
def test_no_formula_reaches_a_spreadsheet(text: str) -> None:
    assert spreadsheet_cell(text) == f"'{text}"
    assert spreadsheet_cell("runs/1=2") == "runs/1=2"


def test_json_holds_any_number() -> None:
    text = json_text({"a": [1, 0.5, (math.inf,)], "b": {"c": -math.inf, "d": math.nan}}, separators=(",", ":"))
    assert text == '{"a":[1,0.5,["Infinity"]],"b":{"c":"-Infinity","d":"NaN"}}'
    assert float(json.loads(text)["b"]["c"]) == -math.inf


@pytest.mark.parametrize("value", [None, True, 3, "text", 1e-300])
def test_json_leaves_the_rest_alone(value: object) -> None:
    assert json.loads(json_text([value])) == [value]
