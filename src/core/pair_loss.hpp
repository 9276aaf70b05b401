// The loss of KSH, sum over pairs of (z_n'z_m - b y_nm)^2 with y = +1 or -1, for codes that change bit by bit.
//
// Every pair keeps its agreement t_nm = y_nm z_n'z_m, so the loss is the sum of (b - t_nm)^2. In one more bit, of b in
// all, it is -2 sum y_nm (b - t_nm) z_n z_m plus a constant. As t <= b - 1, the weights b - t are positive: signs and
// blocks of the z-step are those of y for every bit, and only the weights are made anew.
#pragma once
#include <cstdint>

#include "buffer.hpp"
#include "graph.hpp"
#include "zstep.hpp"

namespace ilhash {

class PairLoss {
 public:
  static constexpr uint32_t kMostBits = 1u << 24;  // what the flow between two points needs stays below 2^31

  explicit PairLoss(SignedGraph pairs);  // a graph from signs

  uint32_t n_points() const { return pairs_.n(); }
  uint32_t n_bits() const { return n_bits_; }
  void add(const int8_t* z);     // the codes have one bit more
  void remove(const int8_t* z);  // that bit is taken out
  double value() const;          // the mean over pairs of (z_n'z_m / b - y_nm)^2

  // Lowers the loss over one more bit, of n_bits > n_bits() in all, from z as given to z as found; the codes stay.
  ZStepResult lower(uint32_t n_bits, ZStepOptions options, int8_t* z);

 private:
  void change(const int8_t* z, int32_t times);

  SignedGraph pairs_;
  Buffer<int32_t> agreement_[2], weight_[2];  // by arc: of the attracting, then of the repelling ones
  uint32_t n_bits_ = 0;
};

}  // namespace ilhash
