"""Objects that remember how they were built, as plain data.

A checkpoint holds numbers, strings and tensors, never pickled objects. A regularizer in a model's hyperparameters is
stored as `{"class_path": …, "init_args": …}` and rebuilt on load. Classes of vaezoo are stored under their public
names, such as `vaezoo.KL`, so runs stay readable when files move.
"""

import inspect
import math
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from typing_extensions import Self

import vaezoo

T = TypeVar("T")

IMPORTS = "VAEZOO_IMPORT"
"""Environment variable with modules, separated by commas, that every command imports first, as with --import."""


class Specified:
    """Base class of everything that configures a model; `spec` holds its constructor arguments.

    Numbers must be finite and non-negative, as weights, sizes, steps and rates are. Others raise an error here, for
    every class, unless named in `signed`.
    """

    signed: ClassVar[tuple[str, ...]] = ()
    """Arguments that may be negative."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Store the constructor's arguments before it runs."""
        self = super().__new__(cls)
        signature = inspect.signature(cls.__init__)
        # Partial: copying and unpickling create the object first and fill it afterwards.
        arguments = dict(list(signature.bind_partial(self, *args, **kwargs).arguments.items())[1:])
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments |= arguments.pop(name, {})
        kept = {name: plain(value, name) for name, value in arguments.items()}
        for name, value in kept.items():
            _check_numbers(value, name, name in cls.signed)
        object.__setattr__(self, "_arguments", kept)
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """Class and constructor arguments as plain data, as in YAML."""
        arguments: dict[str, Any] = self._arguments  # type: ignore[attr-defined]
        return {"class_path": class_path(type(self)), "init_args": dict(arguments)}

    @classmethod
    def build(cls, spec: Self | Mapping[str, Any]) -> Self:
        """Build the object that spec describes; objects are returned unchanged.

        Builds only imported subclasses of this class: a checkpoint cannot name anything else.
        """
        if isinstance(spec, cls):
            return spec
        if not isinstance(spec, Mapping) or "class_path" not in spec:
            raise ValueError(f"expected a {cls.__name__} or a mapping with class_path and init_args, not {spec!r}")
        return find(cls, spec["class_path"])(**spec.get("init_args", {}))


def class_path(cls: type) -> str:
    """Name of a class in checkpoints and configurations; the public name for classes of vaezoo."""
    return public(f"{cls.__module__}.{cls.__qualname__}")


def public(path: str) -> str:
    """Public name of a vaezoo class from its current or former path; other paths stay unchanged."""
    package, _, name = path.partition(".")[0], *path.rpartition(".")[1:]
    return f"vaezoo.{name}" if package == "vaezoo" and name in vars(vaezoo)["__all__"] else path


def with_public_names(value: Any) -> Any:
    """Plain data with public names in every `class_path`, so data of earlier versions reads like today's."""
    if isinstance(value, Mapping):
        return {
            key: public(item) if key == "class_path" and isinstance(item, str) else with_public_names(item)
            for key, item in value.items()
        }
    return [with_public_names(item) for item in value] if isinstance(value, list) else value


def find(base: type[T], path: str) -> type[T]:
    """The imported subclass of base with that name or path."""
    classes = family(base)
    module, _, name = path.rpartition(".")
    exported = vars(sys.modules[module]).get(name) if module in sys.modules else None  # looked up, never imported
    for cls in classes:
        if cls is exported or path == cls.__name__ or public(path) == class_path(cls):
            return cls
    known = ", ".join(sorted({cls.__name__ for cls in classes}))
    raise ValueError(
        f"{path!r} is not an imported {base.__name__}: import the module that defines it first, on the command line "
        f"with --import MODULE (known: {known})"
    )


def import_options() -> list[str]:
    """The option that makes another command import the same modules; for subprocesses and printed commands."""
    return [f"--import={os.environ[IMPORTS]}"] if os.environ.get(IMPORTS) else []


def plain(value: Any, name: str) -> Any:
    """Convert an argument to data that YAML and `torch.load(weights_only=True)` can hold."""
    if isinstance(value, Specified):
        return value.spec
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item, name) for item in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if (optimizer := _torch_optimizer(value)) is not None:
        arguments = value.keywords if isinstance(value, partial) else {}
        return {"class_path": f"torch.optim.{optimizer.__name__}", "init_args": plain(arguments, name)}
    raise TypeError(
        f"argument {name!r} is a {type(value).__name__}; a checkpoint keeps only numbers, strings and specs, and "
        "optimizers such as functools.partial(torch.optim.Adagrad, lr=0.01)"
    )


def _torch_optimizer(value: Any) -> type | None:
    """The class of `torch.optim` that a value is, or is a partial call of; jsonargparse has the class among args."""
    parts = (value.func, *value.args) if isinstance(value, partial) else (value,)
    classes = [part for part in parts if isinstance(part, type) and part.__module__.startswith("torch.optim.")]
    return classes[0] if len(classes) == 1 else None


def _check_numbers(value: Any, name: str, signed: bool) -> None:
    if isinstance(value, list):
        for item in value:
            _check_numbers(item, name, signed)
    if isinstance(value, (int, float)) and not (math.isfinite(value) and (signed or value >= 0)):
        raise ValueError(f"{name} must be a {'finite number' if signed else 'number, 0 or more'}, not {value}")


def family(cls: type[T]) -> list[type[T]]:
    """The class and all its imported subclasses."""
    return [cls, *(member for child in cls.__subclasses__() for member in family(child))]
