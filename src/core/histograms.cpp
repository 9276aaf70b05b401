// Histograms of distances, for evaluation.
#include <algorithm>
#include <cstring>

#include "scan.hpp"
#include "scan_queries.hpp"

namespace ilhash {

namespace {

// How many of some distances have each value. Two neighbours at a time make one index: half the counting.
class PairCounts {
 public:
  PairCounts() : pairs_(65536) {}

  void clear() { std::fill(pairs_.begin(), pairs_.end(), 0); }

  void add(const uint8_t* distances, size_t n, int64_t* odd) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, distances + i, 8);
      ++pairs_[eight & 0xFFFF];
      ++pairs_[(eight >> 16) & 0xFFFF];
      ++pairs_[(eight >> 32) & 0xFFFF];
      ++pairs_[eight >> 48];
    }
    for (; i < n; ++i) ++odd[distances[i]];
  }

  void flush(size_t n_bits, int64_t* counts) const {
    for (size_t a = 0; a <= n_bits; ++a)
      for (size_t b = 0; b <= n_bits; ++b) {
        counts[a] += pairs_[a << 8 | b];
        counts[b] += pairs_[a << 8 | b];
      }
  }

 private:
  std::vector<uint32_t> pairs_;
};

struct QueryCounts {
  int64_t begin, end;      // the codes that are hits
  int64_t *misses, *hits;  // [n_bits + 1]
};

// Calls count(first, n, is_hit) for the up to three runs of codes [first, first + n) that are hits or misses alike.
template <class Count>
void for_each_run(const QueryCounts& query, size_t first_code, size_t n_codes, const Count& count) {
  const auto first = static_cast<int64_t>(first_code), n = static_cast<int64_t>(n_codes);
  const int64_t begin = std::clamp(query.begin - first, int64_t{0}, n);
  const int64_t end = std::clamp(query.end - first, begin, n);
  count(int64_t{0}, begin, false);
  count(begin, end - begin, true);
  count(end, n - end, false);
}

constexpr size_t kHistogramBlock = 1024;  // codes whose distances to four queries lie in the first cache

void count_narrow(const CodeBase& base, const Queries::Group& group, const QueryCounts* queries,
                  PairCounts (*pairs)[2]) {
  uint8_t distances[kQueryGroup][kHistogramBlock];
  uint8_t* const out[kQueryGroup] = {distances[0], distances[1], distances[2], distances[3]};
  for (size_t q = 0; q < group.n; ++q)
    for (int hit = 0; hit < 2; ++hit) pairs[q][hit].clear();
  for (size_t first = 0; first < base.n_codes; first += kHistogramBlock) {
    const size_t n = std::min(kHistogramBlock, base.n_codes - first);
    scan_kernels().distances(base.tiles + first * base.m, (n + kTile - 1) / kTile, base.m, group.n_kernel, group.tables,
                             out);
    for (size_t q = 0; q < group.n; ++q)
      for_each_run(queries[q], first, n, [&](int64_t at, int64_t many, bool hit) {
        pairs[q][hit].add(distances[q] + at, static_cast<size_t>(many), hit ? queries[q].hits : queries[q].misses);
      });
  }
  for (size_t q = 0; q < group.n; ++q) {
    pairs[q][0].flush(base.n_bits, queries[q].misses);
    pairs[q][1].flush(base.n_bits, queries[q].hits);
  }
}

void count_wide(const CodeBase& base, const Queries::Group& group, const QueryCounts* queries) {
  uint16_t distances[kQueryGroup][kHistogramBlock];
  uint16_t* const out[kQueryGroup] = {distances[0], distances[1], distances[2], distances[3]};
  for (size_t first = 0; first < base.n_codes; first += kHistogramBlock) {
    const size_t n = std::min(kHistogramBlock, base.n_codes - first);
    scan_kernels().distances_wide(base.tiles + first * base.m, (n + kTile - 1) / kTile, base.m, group.n_kernel,
                                  group.tables, out);
    for (size_t q = 0; q < group.n; ++q)
      for_each_run(queries[q], first, n, [&](int64_t at, int64_t many, bool hit) {
        int64_t* const counts = hit ? queries[q].hits : queries[q].misses;
        for (int64_t i = 0; i < many; ++i) ++counts[distances[q][at + i]];
      });
  }
}

}  // namespace

void distance_histograms(const CodeBase& base, const uint8_t* queries, size_t n_queries, const int64_t* begin,
                         const int64_t* end, size_t n_threads, int64_t* counts, int64_t* hits) {
  const size_t width = base.n_bits + 1;
  const int64_t n_codes = base.n_codes;
  std::fill(counts, counts + n_queries * width, 0);
  std::fill(hits, hits + n_queries * width, 0);
  in_parallel((n_queries + kQueryGroup - 1) / kQueryGroup, sensible_threads(n_threads), [&](size_t group) {
    const size_t first = group * kQueryGroup, n = std::min(kQueryGroup, n_queries - first);
    const Queries four(queries + first * base.m, n, base.n_bits);
    QueryCounts query[kQueryGroup];
    for (size_t q = 0; q < n; ++q)
      query[q] = {std::clamp(begin[first + q], int64_t{0}, n_codes), std::clamp(end[first + q], int64_t{0}, n_codes),
                  counts + (first + q) * width, hits + (first + q) * width};
    if (base.m < kNarrowBytes) {
      static thread_local PairCounts pairs[kQueryGroup][2];
      count_narrow(base, four.group(0), query, pairs);
    } else {
      count_wide(base, four.group(0), query);
    }
    for (size_t q = 0; q < n; ++q)
      for (size_t d = 0; d < width; ++d) query[q].misses[d] += query[q].hits[d];
  });
}

}  // namespace ilhash
