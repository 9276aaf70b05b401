// Exact search in Hamming space by looking at every code, fast.
//
// Codes lie in tiles of 64: byte j of all 64 codes stands together, so that one vector instruction looks up the
// distances of many codes at once, and four queries share the loads (scan_kernels.inc). Distances are small whole
// numbers: the k nearest are found by counting how many lie at each distance, never by a heap.
//
// A base holds distinct codes. The items (rows) that share a code are its posting list, in ascending order, so equal
// codes cost one distance. The order of answers is (distance, row).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scan_kernels.hpp"

namespace ilhash {

constexpr size_t kMostBits = 65535;  // distances are added up in 16 bits

// Blocks of codes that lie in a range of distances from a pivot: a query whose own distance to the pivot is far outside
// of it cannot be near any code of the block (the triangle inequality). See pivots.cpp.
constexpr size_t kRangeCodes = 256;  // codes per block
struct PivotRange {
  uint16_t pivot, nearest, farthest;  // number of the pivot, and distances between which the codes lie from it
};
struct PivotRanges {
  const uint8_t* pivots = nullptr;  // n_pivots codes of m bytes; nullptr: no ranges
  size_t n_pivots = 0;
  const PivotRange* blocks = nullptr;  // ceil(n_codes / 256)
};

struct CodeBase {
  const uint8_t* tiles;  // ceil(n_codes / 64) tiles of m x 64 bytes
  uint32_t n_codes;      // distinct ones
  size_t m;              // bytes per code
  size_t n_bits;
  const uint32_t* offsets;  // posting list of code c: rows[offsets[c] .. offsets[c + 1]); nullptr: one row per code
  const uint32_t* rows;     // nullptr: code c is row c
  bool ordered;             // do the first rows of the posting lists ascend, and is no list empty?
  PivotRanges ranges;

  size_t n_items() const { return offsets ? offsets[n_codes] : n_codes; }
  size_t n_items(uint32_t code) const {
    if (!offsets) return 1;
    const uint32_t begin = offsets[code], end = offsets[code + 1];
    if (begin > end || end > offsets[n_codes]) throw_broken_list();  // or a damaged file would be read outside its rows
    return end - begin;
  }
  uint32_t first_row(uint32_t code) const { return rows ? rows[offsets ? offsets[code] : code] : code; }

 private:
  [[noreturn]] static void throw_broken_list();  // std::invalid_argument
};

struct Matches {  // of one query, in the order (distance, row)
  std::vector<int32_t> distances;
  std::vector<uint32_t> rows;
};

// Codes as rows of m bytes, rearranged into tiles; the last tile is filled up with zeros. `rows` names the rows to
// take, in their order; nullptr: all.
void fill_tiles(const uint8_t* codes, const uint32_t* rows, size_t n_codes, size_t m, uint8_t* tiles);
void read_tiles(const uint8_t* tiles, const uint32_t* codes, size_t n_codes, size_t m, uint8_t* out);

// Equal codes together: representative[c] is the first row with code c (ascending), and the posting lists.
struct Groups {
  std::vector<uint32_t> representative, offsets, rows;
};
Groups group_codes(const uint8_t* codes, size_t n, size_t m);

// An order of the distinct codes (the given rows) in which neighbours stand together, with its pivots and ranges; empty
// where a trial on a sample says that ranges would not spare half of the distances.
struct PivotOrder {
  std::vector<uint32_t> order;
  std::vector<uint8_t> pivots;
  std::vector<PivotRange> ranges;
};
PivotOrder order_by_pivots(const uint8_t* codes, const uint32_t* rows, size_t n_codes, size_t m, size_t n_bits);

// The k nearest items of each query that are not farther than max_distance (>= 0).
std::vector<Matches> nearest(const CodeBase& base, const uint8_t* queries, size_t n_queries, size_t k,
                             int32_t max_distance, size_t n_threads);

// The same where a bit that differs from the query counts as much as its weight, a number >= 0 of which each query has
// n_bits. Order: (distance, row), the distance as the float that is returned.
struct WeightedMatches {
  std::vector<float> distances;
  std::vector<uint32_t> rows;
};
std::vector<WeightedMatches> nearest_weighted(const CodeBase& base, const uint8_t* queries, const float* weights,
                                              size_t n_queries, size_t k, size_t n_threads);

// counts[q, d] = codes at distance d of query q, hits[q, d] = those among them in [begin[q], end[q]).
void distance_histograms(const CodeBase& base, const uint8_t* queries, size_t n_queries, const int64_t* begin,
                         const int64_t* end, size_t n_threads, int64_t* counts, int64_t* hits);

}  // namespace ilhash
