// The k nearest items where each bit of a query has a weight: how much it counts when it differs.
//
// Bytes cannot hold such distances, but they can hold a bound: weights are scaled and rounded down so that whatever
// lies within the limit stays within 250 steps. The kernel finds all codes whose bound is small enough, and their
// distances are then computed in double precision and rounded to floats once. The answer is exact; the bounds only
// decide how many codes are looked at twice.
#include <algorithm>
#include <cmath>
#include <limits>

#include "scan.hpp"
#include "scan_queries.hpp"

namespace ilhash {

namespace {

constexpr double kSteps = 250;

struct Candidate {
  float distance;
  uint32_t rank;  // orders codes by their first rows
  uint32_t code;
};

class WeightedQuery {
 public:
  WeightedQuery(const CodeBase& base, const uint8_t* query, const float* weights, size_t k)
      : base_(&base), k_(k), exact_(32 * base.m, 0.0), rounded_(32 * base.m, 0) {
    for (size_t j = 0; j < base.m; ++j)
      for (unsigned v = 0; v < 16; ++v) {
        exact_[32 * j + v] = half_byte(query[j] & 15u, v, weights, 8 * j + 4);
        exact_[32 * j + 16 + v] = half_byte(query[j] >> 4, v, weights, 8 * j);
      }
  }

  void look_at(size_t first, size_t n, std::vector<uint64_t>& scratch) {
    if (limit_ == std::numeric_limits<float>::infinity()) {
      for (size_t c = first; c < first + n; ++c) take(static_cast<uint32_t>(c));
    } else {
      const uint8_t* const table = rounded_.data();
      uint64_t* const found = scratch.data();
      const int32_t limit = limit_ > 0 ? static_cast<int32_t>(kSteps) + 1 : 0;
      size_t n_found = 0;
      scan_kernels().collect(base_->tiles + first * base_->m, n, base_->m, 1, &table, nullptr, &limit,
                             static_cast<uint32_t>(first), &found, &n_found);
      for (size_t i = 0; i < n_found; ++i) take(static_cast<uint32_t>(found[i]));
    }
    if (kept_.size() >= n_after_cut_ + std::max<size_t>(k_, 64)) cut();
  }

  WeightedMatches matches() {
    cut();
    WeightedMatches out;
    std::vector<uint32_t> codes;
    for (size_t i = 0; i < kept_.size() && out.rows.size() < k_;) {
      const float distance = kept_[i].distance;
      for (codes.clear(); i < kept_.size() && kept_[i].distance == distance; ++i) codes.push_back(kept_[i].code);
      append_rows(*base_, codes.data(), codes.data() + codes.size(), k_ - out.rows.size(), out.rows);
      out.distances.resize(out.rows.size(), distance);
    }
    return out;
  }

 private:
  static bool nearer(const Candidate& a, const Candidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.rank < b.rank;
  }

  // Bits first_bit .. first_bit + 3 of a code are the half byte's bits 8, 4, 2, 1; there is no weight beyond n_bits.
  double half_byte(unsigned query, unsigned value, const float* weights, size_t first_bit) const {
    double sum = 0;
    for (size_t i = 0; i < 4 && first_bit + i < base_->n_bits; ++i)
      if ((query ^ value) & (8u >> i)) sum += double{weights[first_bit + i]};
    return sum;
  }

  void take(uint32_t code) {
    if (base_->n_items(code) == 0) return;
    const uint8_t* const at = base_->tiles + code / kTile * base_->m * kTile + code % kTile;
    double sum = 0;
    for (size_t j = 0; j < base_->m; ++j)
      sum += exact_[32 * j + (at[j * kTile] & 15)] + exact_[32 * j + 16 + (at[j * kTile] >> 4)];
    const auto distance = static_cast<float>(sum);
    if (distance <= limit_) kept_.push_back({distance, base_->ordered ? code : base_->first_row(code), code});
  }

  // Drops what cannot be among the first k, and draws the limit closer. Of the codes at the limit itself as many are
  // enough as items are missing, those whose lists begin with the smallest rows: else a query whose distances are all
  // alike would keep, and sort again and again, the whole base.
  void cut() {
    std::sort(kept_.begin(), kept_.end(), nearer);
    for (size_t n = 0, items = 0; n < kept_.size() && items < k_;) {
      const size_t first = n, missing = k_ - items;
      const float distance = kept_[first].distance;
      for (; n < kept_.size() && kept_[n].distance == distance; ++n) items += base_->n_items(kept_[n].code);
      if (items >= k_) {
        kept_.resize(first + std::min(n - first, missing));
        draw_limit(distance);
      }
    }
    n_after_cut_ = kept_.size();
  }

  void draw_limit(float distance) {
    if (distance == limit_) return;
    limit_ = distance;
    if (!(limit_ > 0.8 * rounded_for_)) round_tables();
  }

  void round_tables() {
    rounded_for_ = limit_;
    for (size_t i = 0; i < exact_.size(); ++i) {
      const double steps = limit_ > 0 ? std::floor(exact_[i] * (kSteps / rounded_for_)) : (exact_[i] > 0 ? 255.0 : 0.0);
      rounded_[i] = static_cast<uint8_t>(std::min(steps, 255.0));
    }
  }

  const CodeBase* base_;
  size_t k_;
  std::vector<double> exact_;     // what each value of a half byte costs
  std::vector<uint8_t> rounded_;  // the same in steps of rounded_for_ / 250, rounded down
  float limit_ = std::numeric_limits<float>::infinity();
  double rounded_for_ = std::numeric_limits<double>::infinity();
  std::vector<Candidate> kept_;
  size_t n_after_cut_ = 0;
};

}  // namespace

std::vector<WeightedMatches> nearest_weighted(const CodeBase& base, const uint8_t* queries, const float* weights,
                                              size_t n_queries, size_t k, size_t n_threads) {
  constexpr size_t kBatch = 16;
  std::vector<WeightedMatches> out(n_queries);
  k = std::min(k, base.n_items());
  if (k == 0) return out;
  in_parallel((n_queries + kBatch - 1) / kBatch, sensible_threads(n_threads), [&](size_t batch) {
    const size_t first_query = batch * kBatch, many = std::min(kBatch, n_queries - first_query);
    std::vector<WeightedQuery> states;
    for (size_t q = first_query; q < first_query + many; ++q)
      states.emplace_back(base, queries + q * base.m, weights + q * base.n_bits, k);
    std::vector<uint64_t> scratch(block_codes(base.m) + kCollectSlack);
    walk(base, 0, base.n_codes, many, [&](size_t first, size_t n, size_t q) { states[q].look_at(first, n, scratch); });
    for (size_t q = 0; q < many; ++q) out[first_query + q] = states[q].matches();
  });
  return out;
}

}  // namespace ilhash
