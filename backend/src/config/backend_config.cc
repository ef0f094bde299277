// SPDX-License-Identifier: Apache-2.0
#include "config/backend_config.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

// Settings that Triton passes to every backend.
constexpr std::string_view kOfTriton[] = {"auto-complete-config", "backend-directory",
                                          "default-max-batch-size", "min-compute-capability"};

}  // namespace

void CheckBackendConfig(std::string_view json) {
  const auto config = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("cmdline")) return;
  for (const auto& [name, value] : config["cmdline"].items()) {
    if (std::find(std::begin(kOfTriton), std::end(kOfTriton), name) != std::end(kOfTriton))
      continue;
    ThrowInvalid("--backend-config=ctranslate2," + name + "=" + Quote(value.get<std::string>()) +
                 " is not known: the backend takes no settings there; set parameters in the "
                 "config.pbtxt of each model");
  }
}

}  // namespace ct2triton
