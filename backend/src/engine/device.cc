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

// Time on all cores that a group may use in each period.
struct Quota {
  double quota_us = 0;  // not above 0: no limit
  double period_us = 0;
};

// Version 2: "200000 100000", or "max 100000" for no limit.
Quota QuotaOfVersion2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  Quota quota;
  if (!(file >> quota.quota_us >> quota.period_us)) return {};
  return quota;
}

// Version 1: a number in each of two files, a quota of -1 for no limit.
Quota QuotaOfVersion1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  Quota quota;
  if (!(quota_file >> quota.quota_us) || !(period_file >> quota.period_us)) return {};
  return quota;
}

// Cores that the smallest quota is worth, a part of one counted as one; 0 = no quota.
size_t QuotaCores(const std::string& folder) {
  size_t cores = 0;
  for (const Quota& quota : {QuotaOfVersion2(folder), QuotaOfVersion1(folder + "/cpu"),
                             QuotaOfVersion1(folder + "/cpu,cpuacct")}) {
    if (quota.quota_us <= 0 || quota.period_us <= 0) continue;
    const auto worth = static_cast<size_t>(std::ceil(quota.quota_us / quota.period_us));
    cores = cores == 0 ? worth : std::min(cores, worth);
  }
  return cores;
}

}  // namespace

size_t UsableCores(const std::string& control_group) {
  cpu_set_t mask;
  size_t cores = 1;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    cores = std::max<size_t>(1, static_cast<size_t>(CPU_COUNT(&mask)));
  }
  const size_t quota = QuotaCores(control_group);
  return quota == 0 ? cores : std::min(cores, quota);
}

}  // namespace ct2triton
