// An order of codes in which neighbours stand together.
//
// Learned codes crowd around few centres. A handful of pivots is found in a sample (the bitwise majority of the codes
// nearest to each, again and again), all codes are sorted by (nearest pivot, distance to it), and each block of 256
// remembers between which distances from its pivot its codes lie. A search looks only at blocks whose range of
// distances can hold something near enough. Whatever the pivots, this is exact; good pivots only spare more.
#include <algorithm>
#include <vector>

#include "scan.hpp"
#include "scan_queries.hpp"

namespace ilhash {

namespace {

constexpr size_t kPivots = 32;
constexpr size_t kSample = 8192;
constexpr size_t kRounds = 4;
constexpr size_t kTrials = 32, kTrialNeighbours = 10;
constexpr double kWorthIt = 0.4;  // share of codes that may remain to be looked at

// Distances of codes (row-major) to some others, by the kernels: out[other][code].
std::vector<std::vector<uint16_t>> distances_between(const uint8_t* others, size_t n_others, const uint8_t* codes,
                                                     const uint32_t* rows, size_t n_codes, size_t m) {
  const size_t n_tiles = (n_codes + kTile - 1) / kTile;
  std::vector<uint8_t> tiles(n_tiles * kTile * m);
  fill_tiles(codes, rows, n_codes, m, tiles.data());
  std::vector<std::vector<uint16_t>> out((n_others + 3) / 4 * 4, std::vector<uint16_t>(n_tiles * kTile));
  const Queries queries(others, n_others, 8 * m);
  for (size_t g = 0; g < queries.n_groups(); ++g) {
    const Queries::Group group = queries.group(g);
    uint16_t* to[kQueryGroup];
    for (size_t q = 0; q < kQueryGroup; ++q) to[q] = out[group.first + q].data();
    scan_kernels().distances_wide(tiles.data(), n_tiles, m, group.n_kernel, group.tables, to);
  }
  return out;
}

struct Nearby {
  uint16_t pivot, distance;
};

std::vector<Nearby> nearest_pivots(const std::vector<uint8_t>& pivots, const uint8_t* codes, const uint32_t* rows,
                                   size_t n_codes, size_t m) {
  const auto distances = distances_between(pivots.data(), kPivots, codes, rows, n_codes, m);
  std::vector<Nearby> out(n_codes);
  for (size_t c = 0; c < n_codes; ++c) out[c] = {0, distances[0][c]};
  for (size_t p = 1; p < kPivots; ++p)
    for (size_t c = 0; c < n_codes; ++c)
      if (distances[p][c] < out[c].distance) out[c] = {static_cast<uint16_t>(p), distances[p][c]};
  return out;
}

// Each pivot becomes the bitwise majority of its codes.
void move_pivots(std::vector<uint8_t>& pivots, const std::vector<uint8_t>& sample, const std::vector<Nearby>& nearby,
                 size_t m) {
  std::vector<int32_t> votes(kPivots * 8 * m, 0);
  std::vector<bool> used(kPivots, false);
  for (size_t c = 0; c < nearby.size(); ++c) {
    used[nearby[c].pivot] = true;
    for (size_t bit = 0; bit < 8 * m; ++bit)
      votes[size_t{nearby[c].pivot} * 8 * m + bit] += (sample[c * m + bit / 8] >> (7 - bit % 8) & 1) ? 1 : -1;
  }
  for (size_t p = 0; p < kPivots; ++p)
    for (size_t bit = 0; used[p] && bit < 8 * m; ++bit) {
      const auto mask = static_cast<uint8_t>(128 >> bit % 8);
      uint8_t& byte = pivots[p * m + bit / 8];
      byte = static_cast<uint8_t>(votes[p * 8 * m + bit] > 0 ? byte | mask : byte & ~mask);
    }
}

// Share of the sample that ranges would leave to be looked at, for queries like the sample.
double share_left(const std::vector<uint8_t>& pivots, const std::vector<uint8_t>& sample,
                  const std::vector<Nearby>& nearby, size_t m) {
  const size_t n = nearby.size();
  std::vector<uint8_t> queries;
  for (size_t q = 0; q < kTrials; ++q) {
    const uint8_t* const code = sample.data() + (q * n / kTrials + n / (2 * kTrials)) * m;
    queries.insert(queries.end(), code, code + m);
  }
  const auto to_sample = distances_between(queries.data(), kTrials, sample.data(), nullptr, n, m);
  const auto to_pivots = distances_between(queries.data(), kTrials, pivots.data(), nullptr, kPivots, m);
  size_t left = 0;
  for (size_t q = 0; q < kTrials; ++q) {
    std::vector<uint16_t> sorted(to_sample[q].begin(), to_sample[q].begin() + static_cast<std::ptrdiff_t>(n));
    std::nth_element(sorted.begin(), sorted.begin() + kTrialNeighbours, sorted.end());  // the first is the query itself
    const int32_t limit = sorted[kTrialNeighbours];
    for (size_t c = 0; c < n; ++c)
      left += std::abs(int32_t{to_pivots[q][nearby[c].pivot]} - int32_t{nearby[c].distance}) <= limit;
  }
  return static_cast<double>(left) / static_cast<double>(n * kTrials);
}

// The order (pivot, distance to it), by counting.
std::vector<uint32_t> sorted_by_pivot(const std::vector<Nearby>& nearby, size_t n_bits) {
  const auto key = [&](const Nearby& code) { return size_t{code.pivot} * (n_bits + 1) + code.distance; };
  std::vector<uint32_t> next(kPivots * (n_bits + 1) + 1, 0), order(nearby.size());
  for (const Nearby& code : nearby) ++next[key(code) + 1];
  for (size_t i = 0; i + 1 < next.size(); ++i) next[i + 1] += next[i];
  for (size_t c = 0; c < nearby.size(); ++c) order[next[key(nearby[c])]++] = static_cast<uint32_t>(c);
  return order;
}

// A block's pivot is that of its middle code; the range holds all of its codes, whichever pivot is nearest to them.
std::vector<PivotRange> ranges_of(const std::vector<uint8_t>& pivots, const std::vector<uint32_t>& order,
                                  const std::vector<Nearby>& nearby, const uint8_t* codes, const uint32_t* rows,
                                  size_t m) {
  std::vector<PivotRange> out;
  for (size_t first = 0; first < order.size(); first += kRangeCodes) {
    const size_t last = std::min(first + kRangeCodes, order.size());
    const uint16_t pivot = nearby[order[first + (last - first) / 2]].pivot;
    PivotRange range{pivot, UINT16_MAX, 0};
    for (size_t i = first; i < last; ++i) {
      uint16_t distance = nearby[order[i]].distance;
      if (nearby[order[i]].pivot != pivot) {
        distance = 0;
        const uint8_t* const code = codes + size_t{rows[order[i]]} * m;
        for (size_t j = 0; j < m; ++j)
          for (unsigned bits = code[j] ^ unsigned{pivots[pivot * m + j]}; bits; bits &= bits - 1) ++distance;
      }
      range.nearest = std::min(range.nearest, distance);
      range.farthest = std::max(range.farthest, distance);
    }
    out.push_back(range);
  }
  return out;
}

}  // namespace

PivotOrder order_by_pivots(const uint8_t* codes, const uint32_t* rows, size_t n_codes, size_t m, size_t n_bits) {
  PivotOrder out;
  if (n_codes < kSample) return out;
  std::vector<uint8_t> sample(kSample * m), pivots(kPivots * m);
  for (size_t i = 0; i < kSample; ++i) {
    const uint8_t* const code = codes + size_t{rows[i * n_codes / kSample]} * m;
    std::copy(code, code + m, sample.begin() + static_cast<std::ptrdiff_t>(i * m));
  }
  for (size_t p = 0; p < kPivots; ++p)
    std::copy_n(sample.begin() + static_cast<std::ptrdiff_t>(p * kSample / kPivots * m), m,
                pivots.begin() + static_cast<std::ptrdiff_t>(p * m));
  std::vector<Nearby> of_sample;
  for (size_t round = 0; round <= kRounds; ++round) {
    of_sample = nearest_pivots(pivots, sample.data(), nullptr, kSample, m);
    if (round < kRounds) move_pivots(pivots, sample, of_sample, m);
  }
  if (share_left(pivots, sample, of_sample, m) > kWorthIt) return out;
  std::vector<Nearby> nearby;
  nearby.reserve(n_codes);
  for (size_t first = 0; first < n_codes; first += kSample) {
    const auto some = nearest_pivots(pivots, codes, rows + first, std::min(kSample, n_codes - first), m);
    nearby.insert(nearby.end(), some.begin(), some.end());
  }
  out.order = sorted_by_pivot(nearby, n_bits);
  out.ranges = ranges_of(pivots, out.order, nearby, codes, rows, m);
  out.pivots = std::move(pivots);
  return out;
}

}  // namespace ilhash
