"""Reads what GPUs do through NVML: opened at the first question, kept open, silent where there is no driver.

Samplers call it. A replica has its devices to itself, so a device's numbers are the replica's. It never
raises: a driver that stops answering costs the numbers and one line in the server's log.
"""

import ctypes
import importlib
import logging
from collections.abc import Sequence
from typing import Any

from trainshed.core.metrics import GpuUse

_log = logging.getLogger(__name__)


class Gpus:
    def __init__(self, nvml: Any = None) -> None:
        self._nvml = nvml
        self._opened = False
        self._failed = False
        self._handles: dict[str, Any] = {}

    def use(self, devices: Sequence[str]) -> tuple[GpuUse, ...]:
        if not devices or self._failed:
            return ()
        if not self._opened and not self._open():
            return ()
        try:
            return tuple(self._look(device) for device in devices)
        except self._nvml.NVMLError as error:
            return self._give_up(str(error))

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._handles.clear()
            try:
                self._nvml.nvmlShutdown()
            except self._nvml.NVMLError as error:
                self._give_up(str(error))

    def _open(self) -> bool:
        try:
            if self._nvml is None:
                ctypes.CDLL("libnvidia-ml.so.1")
                self._nvml = importlib.import_module("pynvml")
        except (OSError, ImportError) as error:
            self._give_up(str(error))
            return False
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            self._give_up(str(error))
            return False
        self._opened = True
        return True

    def _look(self, device: str) -> GpuUse:
        handle = self._handles.get(device)
        if handle is None:
            handle = self._handles[device] = self._nvml.nvmlDeviceGetHandleByIndex(int(device))
        share = int(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return GpuUse(device=device, share=share, memory=int(memory.used), memory_size=int(memory.total))

    def _give_up(self, why: str) -> tuple[GpuUse, ...]:
        self._failed = True
        _log.warning("the NVIDIA driver does not tell what its GPUs do: %s", why)
        return ()
