"""A library that answers as NVIDIA's driver does, for servers of tests on machines without a GPU.

`env(folder, count)` compiles it, and is the environment in which a server loads it. GPU n, from 0 on, is busy
for n + 1 tenths of the time and has n + 1 of its 16 GiB in use.
"""

import subprocess
from pathlib import Path

NAME = "Tesla T4"

_SOURCE = """
#include <stdint.h>
#include <string.h>
typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
int nvmlInitWithFlags(unsigned int flags) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "pretended"; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = COUNT; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int number, void **device) {
  if (number >= COUNT) return 2;
  *device = (void *)(uintptr_t)(number + 1);
  return 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned int length) {
  strncpy(name, "NAME", length);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, Utilization *use) {
  use->gpu = use->memory = 10 * (unsigned int)(uintptr_t)device;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
  memory->total = 16ULL << 30;
  memory->used = (unsigned long long)(uintptr_t)device << 30;
  memory->free = memory->total - memory->used;
  return 0;
}
"""


def env(folder: Path, count: int) -> dict[str, str]:
    source = folder / "nvml.c"
    source.write_text(_SOURCE.replace("COUNT", str(count)).replace("NAME", NAME))
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
