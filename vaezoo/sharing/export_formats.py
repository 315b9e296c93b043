"""The formats of an export: how each writes one half of a model, and runs what it has written."""

import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from vaezoo.models import VAE
from vaezoo.sharing.export_graphs import DecoderGraph, Graph
from vaezoo.specs import find
from vaezoo.text import on_one_line

FormatName = Literal["onnx", "torch_export", "safetensors"]
Run = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""An exported graph: from inputs to outputs, by name."""
BATCH = "batch"
OPSET = 18  # what the exporter's own operators are written in, and every onnxruntime of today reads
PACKAGES = ("onnx", "onnxscript", "onnxruntime")


class ExportError(RuntimeError):
    """A model that cannot be exported, or whose export computes something else."""


class Format(Protocol):
    """One kind of file."""

    suffix: str
    """How its files end."""
    facts_inside: bool
    """Whether the file itself holds all facts about the model; if not, they lie beside it as JSON."""
    reader: str
    """What runs the file to verify it."""

    def write(self, graph: Graph, facts: dict[str, Any]) -> bytes:
        """The content of a file."""

    def read(self, content: bytes, graph: Graph) -> Run:
        """The graph that a file holds."""


class Onnx:
    """ONNX, with facts as JSON in `metadata_props`."""

    suffix, facts_inside, reader = ".onnx", True, "onnxruntime"

    def __init__(self) -> None:
        if missing := [name for name in PACKAGES if find_spec(name) is None]:
            raise ModuleNotFoundError(f"ONNX needs {', '.join(missing)}: pip install 'vaezoo[export]'")

    def write(self, graph: Graph, facts: dict[str, Any]) -> bytes:
        """The graph by torch's exporter."""
        inputs, outputs = list(graph.examples(2)), list(graph.expected(graph.examples(2)))
        program = traced(graph)
        made = torch.onnx.export(
            program, dynamo=True, input_names=inputs, output_names=outputs, opset_version=OPSET, verbose=False
        )
        assert made is not None
        proto = made.model_proto
        for node in proto.graph.node:
            del node.metadata_props[:]  # where each was called from, with paths of this machine
        del proto.graph.value_info[:]
        for value in (*proto.graph.input, *proto.graph.output):
            value.type.tensor_type.shape.dim[0].dim_param = BATCH
            del value.metadata_props[:]
        proto.producer_name, proto.producer_version = "vaezoo", facts["vaezoo"]
        for key, fact in facts.items():
            proto.metadata_props.add(key=key, value=fact if isinstance(fact, str) else json.dumps(fact))
        return bytes(proto.SerializeToString())

    def read(self, content: bytes, graph: Graph) -> Run:
        """The graph in onnxruntime, on the host."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]

        def run(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
            outputs = session.run(names, {name: value.numpy() for name, value in inputs.items()})
            return {name: torch.from_numpy(value) for name, value in zip(names, outputs, strict=True)}

        return run


class TorchExport:
    """`torch.export`'s program, for PyTorch without vaezoo."""

    suffix, facts_inside, reader = ".pt2", False, "torch.export.load"

    def write(self, graph: Graph, facts: dict[str, Any]) -> bytes:
        """The traced program."""
        file = io.BytesIO()
        torch.export.save(traced(graph), file)
        return file.getvalue()

    def read(self, content: bytes, graph: Graph) -> Run:
        """The program as it is loaded."""
        program = torch.export.load(io.BytesIO(content)).module()
        return lambda inputs: dict(program(**inputs))


class Safetensors:
    """Weights alone, by their names in the model, for other frameworks; facts tell the class and its arguments."""

    suffix, facts_inside, reader = ".safetensors", False, "a model built anew"

    def write(self, graph: Graph, facts: dict[str, Any]) -> bytes:
        """The weights of one half; those of losses belong to neither."""
        from safetensors.torch import save

        own = {name: value for name, value in graph.model.state_dict().items() if not name.startswith(LOSSES)}
        decodes = isinstance(graph, DecoderGraph)
        chosen = {name: value for name, value in own.items() if name.startswith("decoder.") == decodes}
        return save({name: value.contiguous() for name, value in chosen.items()}, {"format": "pt"})

    def read(self, content: bytes, graph: Graph) -> Run:
        """The graph of a model that has the weights of the file, and first weights otherwise."""
        from safetensors.torch import load

        spec = model_spec(graph.model)
        with torch.random.fork_rng(devices=[]):
            model = find(VAE, spec["class_path"])(**spec["init_args"]).eval()
        if unknown := model.load_state_dict(load(content), strict=False).unexpected_keys:
            raise ExportError(f"{type(model).__name__} built anew has no weights {', '.join(unknown)}")
        again = type(graph)(model)
        return lambda inputs: again(**inputs)


LOSSES = ("regularizers.", "step")
FORMATS: dict[FormatName, Callable[[], Format]] = {
    "onnx": Onnx,
    "torch_export": TorchExport,
    "safetensors": Safetensors,
}


def model_spec(model: VAE) -> dict[str, Any]:
    """Class and arguments that build a model as it is now, also one that a checkpoint has changed as it was loaded."""
    spec, loaded = model.spec, {key: value for key, value in model.hparams.items() if key != "regularizers"}
    return {"class_path": spec["class_path"], "init_args": {**spec["init_args"], **loaded}}


def traced(graph: Graph) -> torch.export.ExportedProgram:
    """The operations of a graph, for a batch of any size.

    Raises:
        ExportError: It cannot be traced, as choices in it depend on values.
    """
    inputs, batch = graph.examples(2), torch.export.Dim(BATCH)
    try:
        with torch.no_grad():
            program = torch.export.export(
                graph, (), inputs, dynamic_shapes={name: {0: batch} for name in inputs}, strict=False
            )
    except Exception as error:
        why = on_one_line(f"{type(error).__name__}: {error}", 200)
        raise ExportError(f"the {graph.name} of {type(graph.model).__name__} cannot be traced ({why})") from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of this machine
    return program
