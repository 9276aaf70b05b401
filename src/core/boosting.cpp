#include "boosting.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "interruption.hpp"
#include "random.hpp"

namespace ilhash {
namespace {

constexpr int64_t kOne = int64_t{1} << 24;
constexpr double kUnit = 1.0 / static_cast<double>(kOne);

// First and second derivative of the loss in the margin, of a row or summed over rows, in units of 2^-24.
struct Slope {
  int64_t first = 0, second = 0;

  Slope& operator+=(const Slope& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
  friend Slope operator-(const Slope& a, const Slope& b) { return {a.first - b.first, a.second - b.second}; }
  bool empty() const { return first == 0 && second == 0; }
};

// e^x for |x| <= 30 to some 1e-15: 2^k times the series of what is left. The libraries' exp differ in the last bit.
double exponential(double x) {
  constexpr double kInverse[] = {0,      1,      1. / 2, 1. / 3,  1. / 4,  1. / 5,  1. / 6,
                                 1. / 7, 1. / 8, 1. / 9, 1. / 10, 1. / 11, 1. / 12, 1. / 13};
  const auto k = static_cast<int64_t>(x * 1.4426950408889634 + 1024.5) - 1024;
  const double rest = x - static_cast<double>(k) * 0.6931471805599453;
  double series = 1.0;
  for (int n = 13; n > 0; --n) series = 1.0 + series * (rest * kInverse[n]);
  const int64_t bits = (k + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return series * power;
}

Slope slope_of(double margin, int8_t z) {
  const double p = 1.0 / (1.0 + exponential(std::clamp(-margin, -30.0, 30.0)));
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative, and the trees hang on this very rounding
  const auto whole = static_cast<int64_t>(p * static_cast<double>(kOne) + 0.5);
  return {whole - (z > 0 ? kOne : 0), (whole * (kOne - whole)) >> 24};
}

struct Split {
  double score;
  uint32_t feature = 0, bin = 0;  // rows up to this bin go left
  bool found = false;
};

class Booster {
 public:
  Booster(const BinnedFeatures& x, const int8_t* z, const BoostingOptions& options, double* margins)
      : x_(x), z_(z), options_(options), margins_(margins), random_(options.seed) {
    rows_.resize(x.n_rows);
    waiting_.resize(x.n_rows);
    slope_.resize(x.n_rows);
    here_.resize(x.n_rows);
    for (uint32_t j = 0; j < x.n_features; ++j)
      if (n_edges(j) > 0) pool_.push_back(j);
  }

  TreeTable run() {
    int64_t total = 0;
    for (uint32_t i = 0; i < x_.n_rows; ++i) total += z_[i];
    table_.bias = 2.0 * static_cast<double>(total) / x_.n_rows;
    std::fill_n(margins_, x_.n_rows, table_.bias);
    for (uint32_t tree = 0; tree < options_.n_trees; ++tree) {
      check_interruption();
      grow();
    }
    return std::move(table_);
  }

 private:
  static constexpr uint32_t kTogether = 8;

  struct Range {
    uint32_t begin, end, depth;  // of rows_
  };

  uint32_t n_edges(uint32_t feature) const { return x_.edge_begin[feature + 1] - x_.edge_begin[feature]; }

  void grow() {
    for (uint32_t i = 0; i < x_.n_rows; ++i) slope_[i] = slope_of(margins_[i], z_[i]);
    std::iota(rows_.begin(), rows_.end(), 0u);
    const size_t root = table_.size();
    table_.roots.push_back(static_cast<int32_t>(root));
    ranges_.clear();
    open({0, x_.n_rows, 0});
    for (size_t k = 0; k < ranges_.size(); ++k) {
      const Range range = ranges_[k];
      const size_t node = root + k;
      Slope total;
      for (uint32_t i = range.begin; i < range.end; ++i) total += here_[i] = slope_[rows_[i]];
      const Split split = range.depth < options_.depth ? best_split(range, total) : Split{0};
      if (!split.found) {
        settle(node, range, total);
        continue;
      }
      const uint32_t middle = part(range, split);
      table_.feature[node] = static_cast<int32_t>(split.feature);
      table_.threshold[node] = x_.edges[x_.edge_begin[split.feature] + split.bin];
      table_.left[node] = open({range.begin, middle, range.depth + 1});
      table_.right[node] = open({middle, range.end, range.depth + 1});
    }
  }

  // A new node, a leaf until it is split.
  int32_t open(const Range& range) {
    if (table_.size() >= INT32_MAX) throw std::length_error("the trees of a bit must have fewer than 2^31 nodes");
    const auto node = static_cast<int32_t>(table_.size());
    table_.feature.push_back(0);
    table_.threshold.push_back(0.0);
    table_.left.push_back(node);
    table_.right.push_back(node);
    table_.value.push_back(0.0);
    ranges_.push_back(range);
    return node;
  }

  void settle(size_t node, const Range& range, const Slope& total) {
    const double first = static_cast<double>(total.first) * kUnit, second = static_cast<double>(total.second) * kUnit;
    table_.value[node] = -options_.rate * (first / (second + options_.penalty));
    for (uint32_t i = range.begin; i < range.end; ++i) margins_[rows_[i]] += table_.value[node];
  }

  double score(const Slope& sum) const {
    const double first = static_cast<double>(sum.first) * kUnit, second = static_cast<double>(sum.second) * kUnit;
    return first * first / (second + options_.penalty);
  }

  // A side without rows scores nothing, so a split that leaves one is no better than none.
  Split best_split(const Range& range, const Slope& total) {
    Split best{score(total)};
    const auto n_pool = static_cast<uint32_t>(pool_.size());
    const uint32_t n_tried = std::min(options_.n_tried, n_pool);
    for (uint32_t k = 0; k < n_tried; ++k) draw_feature(k, n_pool);
    const uint32_t n_groups = (n_tried + kTogether - 1) / kTogether;
    for (uint32_t k = 0, group = 0; group < n_groups; ++group) {  // of nearly the same size
      const uint32_t n = (n_tried - k) / (n_groups - group);
      try_features(range, total, k, n, best);
      k += n;
    }
    for (uint32_t k = n_tried; k < n_pool && !best.found; ++k) {
      draw_feature(k, n_pool);
      try_features(range, total, k, 1, best);
    }
    return best;
  }

  void draw_feature(uint32_t k, uint32_t n_pool) { std::swap(pool_[k], pool_[k + random_.below(n_pool - k)]); }

  void try_features(const Range& range, const Slope& total, uint32_t first, uint32_t n, Split& best) {
    switch (n) {
      case 8: fill_histograms<8>(range, first); break;
      case 7: fill_histograms<7>(range, first); break;
      case 6: fill_histograms<6>(range, first); break;
      case 5: fill_histograms<5>(range, first); break;
      case 4: fill_histograms<4>(range, first); break;
      case 3: fill_histograms<3>(range, first); break;
      case 2: fill_histograms<2>(range, first); break;
      default: fill_histograms<1>(range, first);
    }
    for (uint32_t k = 0; k < n; ++k) find_cut(total, pool_[first + k], histogram_[k], best);
  }

  void find_cut(const Slope& total, uint32_t feature, const Slope* histogram, Split& best) const {
    Slope left;
    for (uint32_t b = 0, n_cuts = n_edges(feature); b < n_cuts; ++b) {
      if (histogram[b].empty()) continue;
      left += histogram[b];
      const double found = score(left) + score(total - left);
      if (found > best.score) best = {found, feature, b, true};
    }
  }

  // Several features at once: the sums of one feature often wait for each other, as most rows may be in one bin.
  template <uint32_t kN>
  void fill_histograms(const Range& range, uint32_t first) {
    const uint8_t* bin[kN];
    for (uint32_t k = 0; k < kN; ++k) {
      bin[k] = x_.bin + size_t{pool_[first + k]} * x_.n_rows;
      std::fill_n(histogram_[k], n_edges(pool_[first + k]) + 1, Slope{});
    }
    for (uint32_t i = range.begin; i < range.end; ++i) {
      const uint32_t row = rows_[i];
      const Slope own = here_[i];
      for (uint32_t k = 0; k < kN; ++k) histogram_[k][bin[k][row]] += own;
    }
  }

  // Both parts keep the order of the rows, so that later passes go through memory forwards.
  uint32_t part(const Range& range, const Split& split) {
    const uint8_t* const bin = x_.bin + size_t{split.feature} * x_.n_rows;
    uint32_t n_left = range.begin, n_right = 0;
    for (uint32_t i = range.begin; i < range.end; ++i) {
      const uint32_t row = rows_[i];
      const bool goes_left = bin[row] <= split.bin;
      rows_[n_left] = row;
      waiting_[n_right] = row;
      n_left += goes_left;
      n_right += !goes_left;
    }
    std::copy_n(waiting_.begin(), n_right, rows_.begin() + n_left);
    return n_left;
  }

  const BinnedFeatures& x_;
  const int8_t* z_;
  const BoostingOptions& options_;
  double* margins_;
  Random random_;
  TreeTable table_;
  std::vector<Range> ranges_;             // of the nodes of the tree at hand
  std::vector<uint32_t> pool_;            // features that can split at all
  std::vector<uint32_t> rows_, waiting_;  // node by node
  std::vector<Slope> slope_, here_;       // by row, and in the order of rows_
  Slope histogram_[kTogether][256 + 12];  // not a power of two apart: they would share lines of the cache
};

}  // namespace

// Blocks of rows, so that their cache lines serve all features; the search has no branch that depends on the data.
void place_in_bins(Rows<const float> x, const uint32_t* edge_begin, const double* edges, uint8_t* bin) {
  constexpr size_t kBlock = 64;
  for (size_t first = 0; first < x.n_rows; first += kBlock) {
    const size_t n = std::min(kBlock, x.n_rows - first);
    for (size_t j = 0; j < x.n_columns; ++j) {
      const double* const own = edges + edge_begin[j];
      const uint32_t n_edges = edge_begin[j + 1] - edge_begin[j];
      const float* const column = x.data + first * x.row_stride + j;
      uint8_t* const out = bin + j * x.n_rows + first;
      for (size_t i = 0; i < n; ++i) {
        const double value = column[i * x.row_stride];
        uint32_t below = 0;
        for (uint32_t left = n_edges; left > 0;) {
          const uint32_t half = (left + 1) / 2;
          below += own[below + half - 1] < value ? half : 0;
          left -= half;
        }
        out[i] = static_cast<uint8_t>(below);
      }
    }
  }
}

TreeTable boost(const BinnedFeatures& x, const int8_t* z, const BoostingOptions& options, double* margins) {
  return Booster(x, z, options, margins).run();
}

}  // namespace ilhash
