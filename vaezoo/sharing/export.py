"""`vaezoo export`: encoder and decoder as files that run without vaezoo."""

import copy
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from lightning.pytorch import LightningDataModule

from vaezoo.models import VAE
from vaezoo.runs.data import RunData, split_data_options
from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.runs.options import CommandParser, checkpoint_in
from vaezoo.sharing.export_facts import export_facts, label_count, label_names_of
from vaezoo.sharing.export_formats import FORMATS, ExportError, FormatName, Run, model_spec
from vaezoo.sharing.export_graphs import DecoderGraph, EncoderGraph, Graph
from vaezoo.text import on_one_line, printable

BATCHES = (1, 2, 7)
"""Sizes that an export is verified with."""
TOLERANCE = 1e-5
"""Largest difference from the model; of a value beyond 1, relative to it."""
FACTS = "metadata.json"


def export(
    model: VAE, output: str | Path, format: FormatName = "onnx", label_names: Sequence[str] = ()
) -> dict[Path, float]:
    """Write a model's encoder and decoder as two files that need no vaezoo.

    The encoder takes bytes (B, C, H, W), the decoder returns images in [0, 1]; B is any number. Both are run and
    compared with the model before they are written.

    Args:
        model: The model; it is not changed.
        output: Folder to write; earlier files of the same format are replaced.
        format: "onnx", "torch_export" or "safetensors".
        label_names: Names of the labels that the model learnt from. Defaults to label_0, label_1, …

    Returns:
        The files of the two graphs, and the largest difference of each from the model.

    Raises:
        ExportError: The model cannot be exported, or the export computes something else.
        ModuleNotFoundError: A package for ONNX is missing.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    kind = FORMATS[format]()
    model = copy.deepcopy(model).cpu().float().eval()
    facts = export_facts(model, label_names)
    files, gaps = {}, {}
    for graph in (EncoderGraph(model), DecoderGraph(model)):
        path = Path(output) / f"{graph.name}{kind.suffix}"
        files[path] = kind.write(graph, facts | _signature(graph))
        gaps[path] = largest_gap(graph, kind.read(files[path], graph), path)
    if not kind.facts_inside:
        graphs = {graph.name: _signature(graph) for graph in (EncoderGraph(model), DecoderGraph(model))}
        content = json.dumps({**facts, "built_from": model_spec(model), "graphs": graphs}, indent=1)
        files[Path(output) / FACTS] = content.encode()
    _write_all(files)
    return gaps


def largest_gap(graph: Graph, run: Run, path: Path) -> float:
    """Compare an exported graph with the model.

    Args:
        graph: The half of the model that was exported.
        run: What was exported.
        path: Where it goes, for the error.

    Returns:
        The largest difference over all outputs and sizes of batches.

    Raises:
        ExportError: An output is missing, has another shape or differs by more than the tolerance.
    """
    largest = 0.0
    for n in BATCHES:
        inputs = graph.examples(n)
        try:
            with torch.no_grad():
                found = run(inputs)
        except Exception as error:
            why = on_one_line(f"{type(error).__name__}: {error}", 200)
            raise ExportError(f"{path}: a batch of {n} cannot be run ({why}); nothing was written") from error
        for name, value in graph.expected(inputs).items():
            where = f"{path}: output {name!r} of a batch of {n}"
            if name not in found or found[name].shape != value.shape:
                shape = tuple(found[name].shape) if name in found else "missing"
                raise ExportError(f"{where} is {shape}, the model's is {tuple(value.shape)}; nothing was written")
            gap = float(((found[name] - value).abs() / value.abs().clamp(min=1)).max())
            if not gap <= TOLERANCE:  # nor NaN
                raise ExportError(
                    f"{where} differs from the model's by {gap:.1e}, more than {TOLERANCE:g}; nothing was written"
                )
            largest = max(largest, gap)
    return largest


def run_export(args: Sequence[str], data_class: type[LightningDataModule]) -> None:
    """Export a checkpoint and say what is where.

    Args:
        args: Command line after `vaezoo export`.
        data_class: Base of the datamodules to choose from; they know the names of labels.
    """
    own, data_args = split_data_options(args)
    options = _parser().parse_args(own)
    reader = FORMATS[options.format]().reader  # a missing package is said before anything is read
    path = Path(checkpoint_in(options.checkpoint))
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    model, run = load(path), RunFolder.of(path)
    own_folder = run.config.is_file() or path.name == run.weights.name  # of a run, or of a shared model
    output = Path(options.output) if options.output else run.exports if own_folder else Path(run.exports.name)
    names = _label_names(model, run, RunData(data_class, data_args)) if label_count(model) else []
    written = export(model, output, options.format, names)
    sizes = ", ".join(map(str, BATCHES))
    for file, gap in written.items():
        print(printable(f"{file}: verified by {reader}, batches of {sizes}, largest difference {gap:.0e}"))


def _label_names(model: VAE, run: RunFolder, data: RunData) -> list[str]:
    """Names of the labels in the data; none, which is said, if the run does not tell its data."""
    try:
        names, why = label_names_of(data.unopened(run), model), "the data has other labels; --data NAME names them"
    except Exception as error:
        if data.args:  # what the user asks for
            raise
        names, why = [], on_one_line(str(error), 200)
    if not names:
        print(printable(f"labels are called label_0 and so on: {why}"))
    return names


def _signature(graph: Graph) -> dict[str, dict[str, str]]:
    """Names, types and shapes of what goes in and comes out."""
    inputs = graph.examples(2)
    parts = {"inputs": inputs, "outputs": graph.expected(inputs)}
    return {
        part: {
            name: f"{str(value.dtype).removeprefix('torch.')} ({', '.join(['batch', *map(str, value.shape[1:])])})"
            for name, value in values.items()
        }
        for part, values in parts.items()
    }


def _write_all(files: Mapping[Path, bytes]) -> None:
    """Write all files, or none where the disk is full."""
    with ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(atomic_write(path)).write_bytes(content)


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo export",
        description="Write encoder and decoder as two files that run without vaezoo, checked against the model.",
        epilog="--data NAME and --data.ARG VALUE override the data that names the labels.",
    )
    parser.add_argument("checkpoint", type=str, help="Run (best checkpoint) or checkpoint.")
    parser.add_argument("--format", type=FormatName, default="onnx", help="Format of the files.")
    parser.add_argument(
        "--output",
        type=str | None,
        help="Folder to write. Defaults to `export` in the run's folder, or in the current one without a run.",
    )
    return parser
