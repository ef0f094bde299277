// SPDX-License-Identifier: Apache-2.0
#include "engine/device.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <fstream>

#include "ctranslate2_api.h"
#include "error.h"

namespace ct2triton {

std::string Device::Name() const {
  return kind == Kind::kCpu ? "CPU" : "GPU " + std::to_string(index);
}

int GpuCount() {
  try {
    return ctranslate2::get_device_count(ctranslate2::Device::CUDA);
  } catch (const std::exception&) {
    return 0;  // a driver that does not answer is no driver to us
  }
}

void RequireDevice(const Device& device) {
  if (device.kind == Device::Kind::kCpu) return;
  const int count = GpuCount();
  if (device.index < count) return;
  const std::string found =
      count == 0 ? "CTranslate2 finds no GPU on this machine"
                 : "CTranslate2 finds " + std::to_string(count) + " GPU(s), numbered from 0";
  throw Error(ErrorCode::kInvalidArgument, "instance_group asks for " + device.Name() + ", but " +
                                               found +
                                               "; write kind: KIND_CPU (and a compute_type that a "
                                               "CPU has), or name a GPU that is there");
}

namespace {

// Cores that the control group's quota is worth; 0 = no quota.
size_t QuotaCores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota_us = 0;
  double period_us = 0;
  if (!(file >> quota_us >> period_us) || period_us <= 0) return 0;  // "max": no number, no quota
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(quota_us / period_us)));
}

}  // namespace

size_t UsableCores() {
  cpu_set_t mask;
  size_t cores = 1;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    cores = std::max<size_t>(1, static_cast<size_t>(CPU_COUNT(&mask)));
  }
  const size_t quota = QuotaCores();
  return quota == 0 ? cores : std::min(cores, quota);
}

}  // namespace ct2triton
