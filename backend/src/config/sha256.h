// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ct2triton {

// SHA-256 (FIPS 180-4) of bytes that are added in several parts.
class Sha256 {
 public:
  void Add(std::string_view bytes);
  // The digest of all bytes added, in lower-case hexadecimal. Nothing may be added afterwards.
  std::string HexDigest();

 private:
  static constexpr size_t kBlockBytes = 64;

  void AddBlock(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlockBytes> block_{};
  size_t in_block_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ct2triton
