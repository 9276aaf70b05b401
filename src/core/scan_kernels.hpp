// The inner loops of the scan. One source (scan_kernels.inc) is compiled once per instruction set; dispatch.cpp picks
// at run time. No part of the standard library that could be instantiated is included here (see vector_avx2.cpp).
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace ilhash {

constexpr size_t kTile = 64;         // codes per tile
constexpr size_t kQueryGroup = 4;    // queries that share the loads of a tile, at most
constexpr size_t kNarrowBytes = 32;  // up to this width a distance fits a byte, but for 256 (see scan_kernels.inc)
constexpr size_t kCollectSlack = 4;  // entries that `collect` may write behind the last one

// Queries come in groups of 1, 2 or 4: one query by its single table, or queries 2i and 2i + 1 by the pair table i.
// A table has 32 bytes for each byte of a code: 16 entries for its low half, 16 for its high half.
struct ScanKernels {
  // The single table of a query: the Hamming distances of each half byte to 0 .. 15. A pair table is
  // first | second << 4, entry by entry.
  void (*prepare)(const uint8_t* query, size_t m, uint8_t* table);

  // The codes with distance <= limit[q], written to found[q] as distance << 32 | code in the order of the codes (the
  // first has the number first_code); n_found tells how many. found[q] has room for n_codes + kCollectSlack entries.
  // Without `queries` the one table may hold any weights, and distances saturate at 255.
  void (*collect)(const uint8_t* tiles, size_t n_codes, size_t m, size_t n_queries, const uint8_t* const* tables,
                  const uint8_t* const* queries, const int32_t* limit, uint32_t first_code, uint64_t* const* found,
                  size_t* n_found);

  // Distances of whole tiles; m < kNarrowBytes only.
  void (*distances)(const uint8_t* tiles, size_t n_tiles, size_t m, size_t n_queries, const uint8_t* const* tables,
                    uint8_t* const* out);
  // The same for any width.
  void (*distances_wide)(const uint8_t* tiles, size_t n_tiles, size_t m, size_t n_queries, const uint8_t* const* tables,
                         uint16_t* const* out);
};

const ScanKernels& scan_kernels();  // of the instruction set that vector_level() names

}  // namespace ilhash
