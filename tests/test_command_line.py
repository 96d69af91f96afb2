"""The command ``lossmith``, run as a user runs it."""

import argparse
import inspect
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import lossmith
from lossmith.command_line import _parser, main
from lossmith.commands.printing.colour import painted
from lossmith.lazy_names import lazy_names
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.purposes import losses_by_purpose
from lossmith.losses.contract.options import Options
from lossmith.objectives import OBJECTIVES, SCHEDULES, make_objective
from lossmith.objectives.published import PRESETS
from lossmith.recipes import RECIPES


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "lossmith", *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def test_help_does_not_import_torch():
    code = "import sys; from lossmith.command_line import main\ntry: main(['--help'])\nfinally: assert 'torch' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert "list every loss, objective and recipe" in result.stdout


def test_importing_the_package_does_not_import_torch_but_using_it_does():
    code = "import sys, lossmith; assert 'torch' not in sys.modules; lossmith.FocalLoss(); assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


def test_only_torch_and_numpy_are_imported_by_the_losses():
    code = (
        "import sys, torch; before = {name.partition('.')[0] for name in sys.modules};"
        "import lossmith; lossmith.make_loss('ce');"
        "more = {name.partition('.')[0] for name in sys.modules} - before - set(sys.stdlib_module_names);"
        "assert more == {'lossmith'}, more"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_list_names_every_loss_objective_schedule_and_recipe_by_purpose(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns
    *losses, objectives, schedules, recipes = (group.partition(":\n")[2] for group in shown.rstrip().split("\n\n"))
    named = [name for names in losses_by_purpose().values() for name in names]
    assert sorted(named) == sorted(LOSSES)
    catalogue = (("\n".join(losses), named), (objectives, OBJECTIVES), (schedules, SCHEDULES), (recipes, RECIPES))
    for listed, names in catalogue:
        lines = [line for line in listed.splitlines() if not line.startswith("  ")]  # below a name where that is narrow
        assert [line.split("(")[0].split()[0] for line in lines] == list(names)


def options_of_all_commands():
    parser = _parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return [(name, action) for name, each in commands.choices.items() for action in each._actions]


def test_every_option_has_help():
    assert not [(command, action.dest) for command, action in options_of_all_commands() if not action.help]


def test_losses_are_completed_without_being_imported():
    code = (
        "import sys; from lossmith.commands.completion import loss_names; print(*loss_names()); assert 'torch' not in sys.modules"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert sorted(shown.stdout.split()) == sorted(LOSSES)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ex", {"export", "explore"}),
        ("show gc", {"gce"}),
        ("compare --optimizer ada", {"adam", "adamw", "adadelta"}),
        ("compare --losses ce,gc", {"ce,gce"}),
    ],
)
def test_a_shell_completes(typed, found, capsys, tmp_path):
    pytest.importorskip("shtab", reason="shtab is part of lossmith[experiments]")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "lossmith"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    words = ["lossmith", *typed.split()]
    ask = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
    ask += '_shtab_lossmith; printf "%s\\n" "${COMPREPLY[@]}"'
    shown = subprocess.run(["bash", "-c", ask], check=True, capture_output=True, text=True)  # noqa: S603, S607
    assert set(shown.stdout.split()) == found


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert painted("ce", "bold", terminal) == "\033[1mce\033[0m"
    assert painted("ce", "bold", SimpleNamespace(isatty=lambda: False)) == "ce"
    monkeypatch.setenv("NO_COLOR", "1")
    assert painted("ce", "bold", terminal) == "ce"


@pytest.mark.parametrize("name", LOSSES)
def test_show(name, capsys):
    assert main(["show", name]) == 0
    shown = capsys.readouterr().out
    assert LOSSES[name].__name__ in shown
    assert all(f"  {parameter} = " in shown for parameter in LOSSES[name].limits)
    assert "Args:" not in shown  # the list of parameters says it already


@pytest.mark.parametrize("name", LOSSES)
def test_docstrings_explain_every_parameter(name):
    sections = inspect.getdoc(LOSSES[name]).split("\n\n")
    (arguments,) = (section for section in sections if section.startswith("Args:"))
    *explained, options = (line.split(":")[0].strip() for line in arguments.splitlines()[1:] if line[4] != " ")
    parameters = inspect.signature(LOSSES[name]).parameters.values()
    named = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
    assert set(explained) - set(Options.__annotations__) == named - set(Options.__annotations__)
    assert options == "**options"


@pytest.mark.parametrize("name", OBJECTIVES)
def test_show_objective(name, capsys):
    assert main(["show", name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}: an objective")
    assert all(parameter in shown for parameter in inspect.signature(OBJECTIVES[name]).parameters if parameter != "schedules")
    assert (f"{name}@cifar-10: " in shown) == (name in PRESETS)


@pytest.mark.parametrize("name", [name for name in PRESETS if name in LOSSES])
def test_show_loss_with_the_preset_of_a_data_set(name, capsys):
    assert main(["show", f"{name}@cifar-100"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{make_objective(f'{name}@cifar-100').loss}: lossmith.{LOSSES[name].__name__}")
    assert f"  {name}@cifar-100: " in shown


@pytest.mark.parametrize("name", SCHEDULES)
def test_show_schedule(name, capsys):
    assert main(["show", name]) == 0
    assert capsys.readouterr().out.startswith(f"{name}: a schedule")


@pytest.mark.parametrize("name", ["two-pass-cot", "cot", "nce-agce"])
def test_show_names_presets_that_can_be_read(name, capsys):
    assert main(["show", name]) == 0
    lines = [line.split(" = ") for line in capsys.readouterr().out.splitlines() if line.startswith(f"  {name}@10")]
    assert len(lines) == 3
    for preset, written in lines:
        assert repr(make_objective(preset.strip()).loss) == repr(make_objective(written).loss)


def test_show_takes_spaces(capsys):
    assert main(["show", " cosine-softmax (tau=0.1) "]) == 0
    assert capsys.readouterr().out.startswith("cosine-softmax (tau=0.1): an objective")


def test_show_objective_with_a_wrong_parameter(capsys):
    assert main(["show", "cosine-softmax(tua=1)"]) == 2
    assert "did you mean 'tau'?" in capsys.readouterr().err


def test_show_knows_which_objective_was_meant(capsys):
    assert main(["show", "cosine-soft"]) == 2
    assert "unknown loss, objective, schedule or recipe 'cosine-soft'; did you mean 'cosine-softmax'?" in capsys.readouterr().err


def test_as_a_module():
    result = run("show", "gec")
    assert result.returncode == 2
    assert (
        result.stderr
        == "lossmith: unknown loss, objective, schedule or recipe 'gec'; did you mean 'gce'? 'lossmith list' names all.\n"
    )


def test_a_star_import_brings_every_public_name():
    names: dict[str, object] = {}
    exec("from lossmith import *", names)  # noqa: S102
    assert set(dir(lossmith)) - {"__version__", *NAMESPACES} == set(names) - {"__builtins__"}


def test_a_missing_file_is_named_without_numbers(tmp_path, capsys):
    assert main(["compare", str(tmp_path / "missing.toml")]) == 2
    assert capsys.readouterr().err == f"lossmith: {tmp_path / 'missing.toml'}: no such file or directory.\n"


NAMESPACES = (
    *(
        "analysis",
        "data",
        "distributed",
        "integrations",
        "kernels",
        "linear",
        "losses",
        "numerics",
        "objectives",
        "plots",
        "recipes",
        "report",
    ),
    *("statistics", "studies", "theory", "training"),
)

IN_LOSSES = (
    *("ComplementEntropyLoss", "NormalizedCrossEntropyAGCELoss", "NormalizedCrossEntropyMAELoss", "NormalizedFocalMAELoss"),
    *("ClassificationLoss", "TargetProbabilityLoss"),
)
"""Classes that are shown by ``lossmith.losses`` alone."""


def test_the_package_shows_what_people_type_and_its_namespaces():
    made = ["LinearLoss", "LossScheduler", "LossmithClassifier", "linear_loss", "make_loss", "make_noise", "make_objective"]
    used = ["Study", "advise", "compare", "inspect_labels", "load_data", "open_study"]
    binary = ["BinaryBiTemperedLoss", "BinaryLoss"]
    losses = [*binary, *(loss.__name__ for loss in LOSSES.values() if loss.__name__ not in IN_LOSSES)]
    assert sorted(dir(lossmith)) == sorted(["__version__", *NAMESPACES, *made, *used, *losses])
    assert all(getattr(lossmith, name) is not None for name in dir(lossmith))
    with pytest.raises(AttributeError, match="module 'lossmith' has no attribute 'nothing'"):
        _ = lossmith.nothing


@pytest.mark.parametrize("name", [*IN_LOSSES, "LOSSES", "WeightedSum", "search_space", "solve_logit_bias"])
def test_names_of_a_namespace_alone_say_where_they_are(name):
    with pytest.raises(AttributeError, match=rf"^module 'lossmith' has no attribute '{name}'; it is in lossmith\.\w+$") as caught:
        getattr(lossmith, name)
    home = str(caught.value).rpartition(".")[2]
    assert name in getattr(lossmith, home).__all__


EACH_FIRST = """
import importlib, sys, types

for name in sys.argv[1:]:
    for known in [module for module in sys.modules if module.partition(".")[0] == "lossmith"]:
        del sys.modules[known]  # so that each is imported first
    namespace = getattr(importlib.import_module("lossmith"), name)
    assert set(namespace.__all__) <= set(dir(namespace)), name
    shown = {each: getattr(namespace, each) for each in namespace.__all__}
    modules = [each for each, value in shown.items() if isinstance(value, types.ModuleType)]
    assert shown and not modules, (name, modules)
"""


def test_each_namespace_can_be_used_first_and_has_all_that_it_shows():
    subprocess.run([sys.executable, "-c", EACH_FIRST, *NAMESPACES], check=True)  # noqa: S603


def test_a_lazy_namespace_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "lossmith.statistics.summary", raising=False)
    with pytest.raises(ImportError, match=r"lossmith\.statistics\.summarise needs pandas, .* pip install 'lossmith\[all\]'"):
        _ = lossmith.statistics.summarise
    with pytest.raises(AttributeError, match=r"module 'lossmith\.statistics' has no attribute 'nothing'"):
        _ = lossmith.statistics.nothing


def test_a_lazy_name_must_not_be_hidden_by_a_module():
    with pytest.raises(ValueError, match=r"names of lossmith\.x must differ from those of its modules, got 'rank' for both"):
        lazy_names("lossmith.x", {"rank": ["rank"]})


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["compare", "--loses", "ce"],
            "lossmith compare: unknown option --loses; did you mean '--losses'? See 'lossmith compare --help'.",
        ),
        (["compare", "digits", "more"], "lossmith compare: unrecognized arguments: more. See 'lossmith compare --help'."),
        (["analyze", "study"], "lossmith: unknown command 'analyze'; did you mean 'analyse'? See 'lossmith --help'."),
        (["--quiet"], "lossmith: unknown option --quiet. See 'lossmith --help'."),
        (
            ["compare", "--seeds", "two"],
            "lossmith compare: argument --seeds: invalid int value: 'two'. See 'lossmith compare --help'.",
        ),
    ],
)
def test_what_cannot_be_parsed_is_one_line(arguments, line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"{line}\n"


def test_an_unknown_noise_names_the_known_ones(capsys):
    assert main(["compare", "digits", "--noise", "abc", "--dry-run"]) == 2
    assert "unknown noise 'abc' in 'abc'; known are none, symmetric, uniform, pair, " in capsys.readouterr().err


def test_a_file_that_is_no_study_is_named(tmp_path, capsys):
    file = tmp_path / "messy.csv"
    file.write_text("a,b")
    assert main(["status", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"lossmith: {file} is not a study of lossmith; a study is a folder")


def test_no_folder_of_the_package_is_ignored_and_so_left_out_of_what_is_installed():
    root = Path(__file__).parent.parent
    if not (root / ".gitignore").exists():
        pytest.skip("not a checkout")
    everywhere = {line.rstrip("/") for line in (root / ".gitignore").read_text().splitlines() if not line.startswith("/")}
    folders = {path.name for path in (root / "src").rglob("*") if path.is_dir()} - {"__pycache__"}
    assert not everywhere & folders


@pytest.mark.parametrize(
    "error", [KeyError("what\nnobody \x1b[31m foresaw"), RecursionError(), MemoryError(), AssertionError("no")]
)
def test_what_nobody_foresaw_is_one_line_that_names_a_file_with_the_details(error, monkeypatch, tmp_path, capsys):
    def fail(_):
        raise error

    monkeypatch.setattr("lossmith.commands.list_losses.run", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["list"]) == 1
    said = capsys.readouterr().err
    found = re.fullmatch(
        rf"lossmith: this should not have happened: {type(error).__name__}[^\n\x1b]*\. Details are in (.*)\n", said
    )
    assert found
    assert Path(found[1]).parent == tmp_path
    assert "Traceback (most recent call last)" in Path(found[1]).read_text()


def test_where_no_details_can_be_written_there_is_one_line_all_the_same(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("lossmith.commands.list_losses.run", lambda _: {}["missing"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert main(["list"]) == 1
    assert capsys.readouterr().err == "lossmith: this should not have happened: KeyError: 'missing'.\n"


def test_errors_of_several_lines_are_printed_as_one(monkeypatch, capsys):
    def fail(_):
        raise ValueError("a table\n  with lines\n")

    monkeypatch.setattr("lossmith.commands.list_losses.run", fail)
    assert main(["list"]) == 2
    assert capsys.readouterr().err == "lossmith: a table with lines\n"


@pytest.mark.parametrize("keep", ["weights", "features", "weights,features"])
def test_keep_and_analyse_go_together(keep, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "digits", "--rows", "200", "--keep", keep, "--analyse", "--dry-run", "--workers", "1"]) == 0
    assert main(["compare", "digits", "--keep", "weight", "--analyse", "--dry-run"]) == 2
    assert "keep must be one of features, weights, got 'weight'" in capsys.readouterr().err


def test_the_explorer_needs_jinja_only(tmp_path):
    absent = ["pandas", "scipy", "sklearn", "matplotlib", "PIL", "rich", "pyarrow", "threadpoolctl"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent})); from lossmith.command_line import main;"
        f"sys.exit(main(['explore', '--output', {str(tmp_path / 'explore.html')!r}]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "explore.html").stat().st_size > 10_000


def test_every_name_of_the_reports_can_be_imported():
    from lossmith import report

    assert all(callable(getattr(report, name)) for name in report.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = report.nothing
