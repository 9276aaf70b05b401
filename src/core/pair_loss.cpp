#include "pair_loss.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ilhash {

PairLoss::PairLoss(SignedGraph pairs) : pairs_(std::move(pairs)) {
  pairs_.visit([this](const auto& graph) {
    const size_t sizes[2] = {graph.attract.begin[graph.n], graph.repel.begin[graph.n]};
    for (int side = 0; side < 2; ++side) {
      agreement_[side] = Buffer<int32_t>(sizes[side]);
      weight_[side] = Buffer<int32_t>(sizes[side]);
      std::fill_n(agreement_[side].data(), sizes[side], 0);
    }
  });
}

void PairLoss::add(const int8_t* z) {
  if (n_bits_ >= kMostBits) throw std::invalid_argument("there are too many bits");
  change(z, 1);
  ++n_bits_;
}

void PairLoss::remove(const int8_t* z) {
  if (n_bits_ == 0) throw std::invalid_argument("there is no bit to remove");
  change(z, -1);
  --n_bits_;
}

void PairLoss::change(const int8_t* z, int32_t times) {
  pairs_.visit([&](const auto& graph) {
    for (int side = 0; side < 2; ++side) {
      const auto& arcs = side == 0 ? graph.attract : graph.repel;
      const auto* const target = arcs.target.data();
      int32_t* const agreement = agreement_[side].data();
      for (uint32_t n = 0; n < graph.n; ++n) {
        const int32_t own = (side == 0 ? times : -times) * z[n];
        for (uint32_t a = arcs.begin[n]; a < arcs.end[n]; ++a) agreement[a] += own * z[target[a]];
      }
    }
  });
}

double PairLoss::value() const {
  const auto b = static_cast<int64_t>(n_bits_);
  int64_t total = 0;
  size_t n_pairs = 0;
  for (const Buffer<int32_t>& agreement : agreement_) {
    const int32_t* const t = agreement.data();
    for (size_t a = 0; a < agreement.size(); ++a) total += (b - t[a]) * (b - t[a]);
    n_pairs += agreement.size();
  }
  return static_cast<double>(total) / (static_cast<double>(b) * static_cast<double>(b)) / static_cast<double>(n_pairs);
}

ZStepResult PairLoss::lower(uint32_t n_bits, ZStepOptions options, int8_t* z) {
  if (n_bits <= n_bits_ || n_bits > kMostBits)
    throw std::invalid_argument("n_bits must count the codes' bits and one more");
  const auto b = static_cast<int32_t>(n_bits);
  int32_t smallest = 1;
  for (int side = 0; side < 2; ++side)
    for (size_t a = 0; a < agreement_[side].size(); ++a) {
      weight_[side][a] = b - agreement_[side][a];
      smallest = std::min(smallest, weight_[side][a]);
    }
  // A flow through a capacity below zero would not end.
  if (smallest < 1) throw std::invalid_argument("the bits that were removed must be bits that were added");
  options.attract_weight = weight_[0].data();
  options.repel_weight = weight_[1].data();
  return alternate(pairs_, pairs_.block(), options, z);
}

}  // namespace ilhash
