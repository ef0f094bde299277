// SPDX-License-Identifier: Apache-2.0
#include "engine/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

namespace ct2triton {
namespace {

constexpr size_t kMostProcessors = size_t{1} << 20;

// Numbers of the processors that the process may run on; empty if the system does not tell.
std::vector<size_t> AllowedProcessors() {
  for (size_t room = CPU_SETSIZE; room <= kMostProcessors; room *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(room), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(room);
    if (mask == nullptr) return {};
    if (sched_getaffinity(0, bytes, mask.get()) != 0) {
      if (errno == EINVAL) continue;  // the system has more processors than the mask has room for
      return {};
    }
    std::vector<size_t> allowed;
    for (size_t processor = 0; processor < room; ++processor) {
      if (CPU_ISSET_S(processor, bytes, mask.get())) allowed.push_back(processor);
    }
    return allowed;
  }
  return {};
}

// Hyperthreads of a core list each other, the lowest number first.
size_t PhysicalCores(const std::string& root, const std::vector<size_t>& processors) {
  std::set<size_t> first_threads;
  for (const size_t processor : processors) {
    std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                       "/topology/thread_siblings_list");
    size_t first = 0;
    first_threads.insert(file >> first ? first : processor);
  }
  return first_threads.size();
}

// Number of cores of a quota, rounded up; SIZE_MAX: no quota.
size_t Worth(double quota_us, double period_us) {
  if (!(quota_us > 0) || !(period_us > 0)) return SIZE_MAX;
  return static_cast<size_t>(std::ceil(std::min(quota_us / period_us, 1e9)));
}

// Version 2: "200000 100000", or "max 100000" for no limit.
size_t QuotaOfVersion2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota_us = 0, period_us = 0;
  return file >> quota_us >> period_us ? Worth(quota_us, period_us) : SIZE_MAX;
}

// Version 1: a number in each of two files, a quota of -1 for no limit.
size_t QuotaOfVersion1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota_us = 0, period_us = 0;
  const bool given = quota_file >> quota_us && period_file >> period_us;
  return given ? Worth(quota_us, period_us) : SIZE_MAX;
}

// The smallest quota of a group and of those above it. A container may see its own group as the
// topmost one, under a path that does not exist.
template <typename Quota>
size_t LeastQuota(const std::string& mount, std::string group, const Quota& quota) {
  size_t least = quota(mount);
  while (group.size() > 1 && group.find("/..") == std::string::npos) {
    least = std::min(least, quota(mount + group));
    group.erase(group.rfind('/'));
  }
  return least;
}

bool Has(const std::string& controllers, const std::string& name) {
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

// A line of /proc/self/cgroup is "0::/system.slice/a.service" or "4:cpu,cpuacct:/a".
size_t QuotaCores(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::string group_2, group_1;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream parts(line);
    std::string number, controllers, group;
    std::getline(parts, number, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, group);
    if (controllers.empty()) group_2 = group;
    if (Has(controllers, "cpu")) group_1 = group;
  }
  return std::min({LeastQuota(mount, group_2, QuotaOfVersion2),
                   LeastQuota(mount + "/cpu", group_1, QuotaOfVersion1),
                   LeastQuota(mount + "/cpu,cpuacct", group_1, QuotaOfVersion1)});
}

}  // namespace

Cores CoresOfProcess(const std::string& root) {
  const auto allowed = AllowedProcessors();
  Cores cores;
  cores.threads = std::max<size_t>(1, std::min(allowed.size(), QuotaCores(root)));
  cores.physical = std::clamp<size_t>(PhysicalCores(root, allowed), 1, cores.threads);
  return cores;
}

}  // namespace ct2triton
