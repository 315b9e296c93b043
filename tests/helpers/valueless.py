"""Training on a device without values, torch's "meta": whatever asks for one is noted, as it would wait for a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.pytorch.accelerators import Accelerator, AcceleratorRegistry
from lightning.pytorch.strategies import SingleDeviceStrategy, StrategyRegistry
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

META = torch.device("meta")
aten = torch.ops.aten
VALUES = {aten._local_scalar_dense, aten.equal, aten.is_nonzero, aten.nonzero, aten.masked_select, aten.unique_dim}
"""Operations whose result, or the shape of it, is known only when the device has come to them."""


class Waits(TorchDispatchMode):
    """Notes the operations that would wait for the device, or fail on it, and answers with ones.

    Attributes:
        noted: Names of the operations since the last look.
    """

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, unless it needs values that are not there."""
        kwargs = kwargs or {}
        tensors = [part for part in tree_leaves((args, kwargs)) if isinstance(part, Tensor)]
        on_device = [tensor for tensor in tensors if tensor.device == META]
        name, packet = str(func), func.overloadpacket
        if packet in (aten._to_copy, aten.copy_):
            return self._copied(func, args, kwargs)
        # Numbers on the host go with the launch of a kernel; a tensor is copied, or refused.
        if on_device and any(tensor.device != META and tensor.ndim for tensor in tensors):
            self.noted.append(f"{name} of tensors on host and device")
        if on_device and (packet in VALUES or _by_mask(packet, args)):
            self.noted.append(name)
            args, kwargs = tree_map_only(Tensor, _ones, (args, kwargs))
            return tree_map_only(Tensor, lambda found: found.to(META), func(*args, **kwargs))
        return func(*args, **kwargs)

    def _copied(self, func: Any, args: Any, kwargs: Any) -> Any:
        copies = func.overloadpacket is aten._to_copy
        source, target = (args[0], kwargs.get("device") or args[0].device) if copies else (args[1], args[0].device)
        if source.device == target:
            return func(*args, **kwargs)
        non_blocking = kwargs.get("non_blocking") or (not copies and len(args) > 2 and args[2])
        if target != META or not non_blocking:
            self.noted.append(f"{func} from {source.device} to {target}")
        if target == META:
            return func(*args, **kwargs)
        ones = _ones(source)
        return func(ones, **kwargs) if copies else func(args[0], ones)

    def look(self) -> list[str]:
        """What was noted since the last look."""
        noted, self.noted = self.noted, []
        return noted


def _ones(tensor: Tensor) -> Tensor:
    return torch.ones(tensor.shape, dtype=tensor.dtype)


def _by_mask(packet: Any, args: Any) -> bool:
    return packet is aten.index and any(index is not None and index.dtype == torch.bool for index in args[1])


class Valueless(Accelerator):
    """Lightning's view of the device."""

    def setup_device(self, device: torch.device) -> None:
        """Nothing to do."""

    def teardown(self) -> None:
        """Nothing to do."""

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """There are none."""
        return {}

    @staticmethod
    def parse_devices(devices: Any) -> Any:
        """One."""
        return devices

    @staticmethod
    def get_parallel_devices(devices: Any) -> list[torch.device]:
        """The one."""
        return [META]

    @staticmethod
    def auto_device_count() -> int:
        """One."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Always."""
        return True

    @staticmethod
    def name() -> str:
        """Of the device."""
        return "meta"


class OneValueless(SingleDeviceStrategy):
    """Training on the device."""

    def __init__(self, **options: Any) -> None:
        super().__init__(META, Valueless())


@contextmanager
def valueless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waits]:
    """Let a Trainer take accelerator and strategy "meta", and note what waits for that device."""
    autocast, tensor = torch.autocast, torch.tensor

    def from_host(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        made = tensor(data, **kwargs)
        return made if device is None else made.to(device)

    def without_meta(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return nullcontext() if device_type == "meta" else autocast(device_type, *args, **kwargs)

    monkeypatch.setattr(torch, "tensor", from_host)  # as it does on other devices
    monkeypatch.setattr(torch, "autocast", without_meta)  # torch has none for the device
    monkeypatch.setattr(torch, "meta", SimpleNamespace(manual_seed=lambda seed: None), raising=False)
    monkeypatch.setitem(AcceleratorRegistry, "meta", AcceleratorRegistry["cpu"] | {"accelerator": Valueless})
    monkeypatch.setitem(StrategyRegistry, "meta", {"strategy": OneValueless, "init_params": {}})
    with Waits() as waits:
        yield waits
