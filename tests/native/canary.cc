// SPDX-License-Identifier: Apache-2.0
//
// One deliberate mistake of each kind that the sanitizers are there to find. A run that is silent
// about these says nothing about the rest.
//
// canary use-after-free|overflow|undefined|leak|race
#include <climits>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

int UseAfterFree() {
  const int* gone = nullptr;
  {
    const std::vector<int> values(4, 1);
    gone = values.data();
  }
  return *gone;
}

int Overflow(int index) {
  std::vector<char> bytes(8);
  return bytes.data()[index];
}

int Undefined(int large) { return large + INT_MAX; }

int Leak() {
  static std::vector<std::string>* kept = nullptr;
  kept = new std::vector<std::string>(3);
  const int size = static_cast<int>(kept->size());
  kept = nullptr;
  return size;
}

int Race() {
  int shared = 0;
  std::thread other([&] { ++shared; });
  ++shared;
  other.join();
  return shared;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string kind = count == 2 ? arguments[1] : "";
  if (kind == "use-after-free") return UseAfterFree();
  if (kind == "overflow") return Overflow(8);
  if (kind == "undefined") return Undefined(count);
  if (kind == "leak") return Leak() == 3 ? 0 : 1;
  if (kind == "race") return Race() == 2 ? 0 : 1;
  std::fprintf(stderr, "usage: canary use-after-free|overflow|undefined|leak|race\n");
  return 2;
}
