// Tests of graphs, z-step and vector kernels without Python, to be run under AddressSanitizer and UBSan
// (`make test-core`).
//
// Graphs are looked at from outside only: the energy before any sweep is a quadratic form, and four of its values give
// the coupling of a pair.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "check.hpp"
#include "digits.hpp"
#include "graph.hpp"
#include "pair_loss.hpp"
#include "random.hpp"
#include "vector.hpp"
#include "zstep.hpp"

using namespace ilhash;

namespace {

using Bits = std::vector<int8_t>;
using Blocks = std::vector<uint32_t>;
using Matrix = std::vector<std::vector<double>>;

// ------------------------------------------------------------------------------------------ twins

template <class Graph>
double energy_before_any_sweep(const Graph& graph, const Blocks& block, Bits z, const double* field = nullptr) {
  ZStepOptions options;
  options.max_sweeps = 0;
  options.field = field;
  return alternate(graph, block, options, z.data()).energies.at(0);
}

// w_ij = -(E(z) + E(both flipped) - E(i flipped) - E(j flipped)) / 8 at z = all +1.
template <class Graph>
Matrix couplings_of(const Graph& graph) {
  const uint32_t n = static_cast<uint32_t>(graph.n());
  const Blocks block = graph.block().empty() ? Blocks(grow_blocks(graph)) : Blocks(graph.block());
  const auto energy = [&](uint32_t i, uint32_t j) {
    Bits z(n, 1);
    if (i < n) z[i] = -1;
    if (j < n) z[j] = -1;
    return energy_before_any_sweep(graph, block, z);
  };
  std::vector<double> one(n);
  for (uint32_t i = 0; i < n; ++i) one[i] = energy(i, n);
  const double none = energy(n, n);
  Matrix w(n, std::vector<double>(n, 0.0));
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t j = 0; j < i; ++j) w[i][j] = w[j][i] = -(none + energy(i, j) - one[i] - one[j]) / 8.0;
  return w;
}

double direct_energy(const Matrix& w, const Bits& z, const std::vector<double>& field) {
  double energy = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    for (size_t j = 0; j < w.size(); ++j) energy -= w[i][j] * z[i] * z[j];
    if (!field.empty()) energy -= 2 * field[i] * z[i];
  }
  return energy;
}

// The lowest energy over all assignments of one block while the others stay.
double lowest_over_block(const Matrix& w, Bits z, const std::vector<double>& field, const Blocks& block, uint32_t c) {
  std::vector<size_t> inside;
  for (size_t i = 0; i < z.size(); ++i)
    if (block[i] == c) inside.push_back(i);
  double lowest = direct_energy(w, z, field);
  for (uint32_t state = 0; state < (1u << inside.size()); ++state) {
    for (size_t k = 0; k < inside.size(); ++k) z[inside[k]] = (state >> k) & 1 ? 1 : -1;
    lowest = std::min(lowest, direct_energy(w, z, field));
  }
  return lowest;
}

// ------------------------------------------------------------------------------------------ z-step

void check_blocks(const Matrix& w, const Blocks& block) {
  for (size_t i = 0; i < w.size(); ++i)
    for (size_t j = 0; j < w.size(); ++j) CHECK(block[i] != block[j] || w[i][j] >= 0);
  const std::set<uint32_t> used(block.begin(), block.end());
  CHECK(used.empty() || *used.rbegin() + 1 == used.size());
}

// Small whole or dyadic weights only: all sums are exact, so that equality means equality.
template <class Graph>
void check_alternation(const Graph& graph, const Matrix& w, const Blocks& block, uint64_t seed, bool with_field) {
  const size_t n = w.size();
  Random random(seed);
  Bits start(n);
  for (auto& bit : start) bit = random.below(2) ? 1 : -1;
  std::vector<double> field;
  for (size_t i = 0; with_field && i < n; ++i) field.push_back((static_cast<int>(random.below(41)) - 20) / 4.0);

  for (const bool shuffle : {false, true}) {
    Bits z = start;
    ZStepOptions options;
    options.seed = seed;
    options.shuffle_blocks = shuffle;
    options.field = with_field ? field.data() : nullptr;
    const ZStepResult result = alternate(graph, block, options, z.data());
    CHECK(result.converged);
    CHECK(result.energies.front() == direct_energy(w, start, field));
    CHECK(result.energies.back() == direct_energy(w, z, field));
    for (size_t s = 1; s < result.energies.size(); ++s) CHECK(result.energies[s] <= result.energies[s - 1]);
    const uint32_t n_blocks = n ? *std::max_element(block.begin(), block.end()) + 1 : 0;
    CHECK(result.n_blocks == n_blocks);
    for (uint32_t c = 0; c < n_blocks; ++c) CHECK(lowest_over_block(w, z, field, block, c) == result.energies.back());
    CHECK(std::all_of(z.begin(), z.end(), [](int8_t bit) { return bit == 1 || bit == -1; }));

    Bits again = z;  // a result stays
    CHECK(alternate(graph, block, options, again.data()).converged);
    CHECK(again == z);

    options.max_sweeps = 1;
    Bits once = start;
    const ZStepResult cut_short = alternate(graph, block, options, once.data());
    CHECK(cut_short.energies.size() == 2);
    CHECK(cut_short.energies[1] == result.energies[1]);
    CHECK(cut_short.energies[1] == direct_energy(w, once, field));
  }
}

template <class Graph>
void check_graph(const Graph& graph, const Matrix& w, uint64_t seed) {
  const Blocks grown = grow_blocks(graph);
  check_blocks(w, grown);
  Blocks alone(w.size());
  std::iota(alone.begin(), alone.end(), 0);
  for (const bool with_field : {false, true}) {
    check_alternation(graph, w, grown, seed, with_field);
    check_alternation(graph, w, alone, seed, with_field);  // coordinate descent: no arc inside any block
    if (!graph.block().empty()) {
      check_blocks(w, Blocks(graph.block()));
      check_alternation(graph, w, Blocks(graph.block()), seed, with_field);
    }
  }
}

struct Csr {
  std::vector<uint32_t> row_begin{0}, columns;
  std::vector<double> couplings;

  explicit Csr(const Matrix& w) {
    for (size_t i = 0; i < w.size(); ++i) {
      for (size_t j = 0; j < w.size(); ++j)
        if (w[i][j] != 0) {
          columns.push_back(static_cast<uint32_t>(j));
          couplings.push_back(w[i][j]);
        }
      row_begin.push_back(static_cast<uint32_t>(columns.size()));
    }
  }
};

void test_couplings() {
  for (uint64_t seed = 0; seed < 160; ++seed) {
    Random random(seed);
    const uint32_t n = 1 + random.below(10), density = 1 + random.below(10);
    const int most_negative = seed % 4 == 0 ? 0 : 12;
    Matrix w(n, std::vector<double>(n, 0.0));
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t j = 0; j < i; ++j)
        if (random.below(10) < density)
          w[i][j] = w[j][i] = (static_cast<int>(random.below(17 + most_negative)) - most_negative) / 8.0;
    const Csr csr(w);
    const auto graph = graph_from_couplings(csr.row_begin.data(), csr.columns.data(), csr.couplings.data(), n);
    CHECK(graph.n() == n);
    CHECK(couplings_of(graph) == w);
    check_graph(graph, w, seed);
  }
}

void test_weights_of_any_size() {
  for (const int exponent : {-900, -60, 0, 60, 900}) {
    const double unit = std::ldexp(1.0, exponent);
    const Matrix w = {{0, 3 * unit, 0}, {3 * unit, 0, -unit}, {0, -unit, 0}};
    const Csr csr(w);
    const auto graph = graph_from_couplings(csr.row_begin.data(), csr.columns.data(), csr.couplings.data(), 3);
    Bits z = {1, -1, -1};
    const ZStepResult result = alternate(graph, grow_blocks(graph), ZStepOptions{}, z.data());
    CHECK(result.energies.front() == 8 * unit);
    CHECK(result.energies.back() == -8 * unit);
    CHECK(z[0] == z[1] && z[1] == -z[2]);
  }
}

// A path of bottlenecks between a strong excess and a strong deficit: many waves, flows that are taken back.
void test_long_ways() {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const uint32_t n = 12;
    Matrix w(n, std::vector<double>(n, 0.0));
    for (uint32_t i = 0; i + 1 < n; ++i) w[i][i + 1] = w[i + 1][i] = 1 + random.below(6);
    for (int extra = 0; extra < 4; ++extra) {
      const uint32_t i = random.below(n), j = random.below(n);
      if (i != j) w[i][j] = w[j][i] = 1 + random.below(4);
    }
    std::vector<double> field(n, 0.0);
    for (uint32_t i = 0; i < 3; ++i) {
      field[i] = 1 + random.below(9);
      field[n - 1 - i] = -1.0 - random.below(9);
    }
    const Csr csr(w);
    const auto graph = graph_from_couplings(csr.row_begin.data(), csr.columns.data(), csr.couplings.data(), n);
    Bits z(n, seed % 2 ? 1 : -1);
    ZStepOptions options;
    options.field = field.data();
    const ZStepResult result = alternate(graph, Blocks(n, 0), options, z.data());
    CHECK(result.energies.back() == lowest_over_block(w, z, field, Blocks(n, 0), 0));
    CHECK(result.n_blocks == 1);
  }
}

// ------------------------------------------------------------------------------------------ graphs from labels

void check_signs(const Matrix& w, const std::vector<std::vector<bool>>& alike, uint32_t similar, uint32_t dissimilar) {
  const size_t n = w.size();
  for (size_t i = 0; i < n; ++i) {
    size_t n_alike = 0, attract = 0, repel = 0;
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      n_alike += alike[i][j];
      CHECK(w[i][j] == 0 || w[i][j] == (alike[i][j] ? 1 : -1));
      CHECK(w[i][j] == w[j][i]);
      attract += w[i][j] > 0;
      repel += w[i][j] < 0;
    }
    CHECK(attract >= std::min<size_t>(similar, n_alike));
    CHECK(repel >= std::min<size_t>(dissimilar, n - 1 - n_alike));
  }
}

void test_classes() {
  const std::vector<std::vector<uint32_t>> all_sizes = {{1},       {2},       {1, 1},       {1, 4},    {2, 2},
                                                        {3, 1, 2}, {5, 5, 3}, {1, 1, 1, 1}, {4, 1, 6}, {7, 4}};
  for (const auto& sizes : all_sizes)
    for (const uint32_t similar : {0u, 1u, 3u, 100u})
      for (const uint32_t dissimilar : {0u, 1u, 2u, 100u})
        for (uint64_t seed = 0; seed < 2; ++seed) {
          const auto graph = graph_from_classes(sizes, similar, dissimilar, seed);
          std::vector<uint32_t> label;
          for (uint32_t c = 0; c < sizes.size(); ++c) label.insert(label.end(), sizes[c], c);
          CHECK(graph.n() == label.size());
          CHECK(Blocks(graph.block()) == label);
          std::vector<std::vector<bool>> alike(label.size(), std::vector<bool>(label.size()));
          for (size_t i = 0; i < label.size(); ++i)
            for (size_t j = 0; j < label.size(); ++j) alike[i][j] = label[i] == label[j];
          const Matrix w = couplings_of(graph);
          check_signs(w, alike, similar, dissimilar);
          if (similar == 100 && dissimilar == 100) CHECK(Blocks(grow_blocks(graph)) == label);
          check_graph(graph, w, seed + similar);
          CHECK(couplings_of(graph_from_classes(sizes, similar, dissimilar, seed)) == w);
        }
}

void test_label_sets() {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const uint32_t n = 1 + random.below(9), n_labels = 1 + random.below(4);
    std::vector<uint32_t> row_begin{0}, labels;
    std::vector<std::set<uint32_t>> sets(n);
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t label = 0; label < n_labels; ++label)
        if (random.below(3) == 0) {
          labels.push_back(label);
          sets[i].insert(label);
        }
      row_begin.push_back(static_cast<uint32_t>(labels.size()));
    }
    std::vector<std::vector<bool>> alike(n, std::vector<bool>(n));
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t j = 0; j < n; ++j)
        alike[i][j] = std::any_of(sets[i].begin(), sets[i].end(), [&](uint32_t l) { return sets[j].count(l) > 0; });
    const uint32_t similar = random.below(4), dissimilar = seed % 3 == 0 ? 100 : random.below(4);
    const auto graph = graph_from_label_sets(row_begin.data(), labels.data(), n, n_labels, similar, dissimilar, seed);
    CHECK(graph.n() == n);
    const Matrix w = couplings_of(graph);
    check_signs(w, alike, similar, dissimilar);
    check_graph(graph, w, seed);
  }
}

void test_neighbours() {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const uint32_t n = 2 + random.below(9), k = 1 + random.below(n - 1);
    const uint32_t dissimilar = seed % 3 == 0 ? 100 : random.below(4);
    std::vector<uint32_t> neighbours;
    std::vector<std::vector<bool>> chosen(n, std::vector<bool>(n));
    for (uint32_t i = 0; i < n; ++i) {
      std::vector<uint32_t> others;
      for (uint32_t j = 0; j < n; ++j)
        if (j != i) others.push_back(j);
      for (uint32_t a = 0; a < k; ++a) std::swap(others[a], others[a + random.below(n - 1 - a)]);
      neighbours.insert(neighbours.end(), others.begin(), others.begin() + k);
      for (uint32_t a = 0; a < k; ++a) chosen[i][others[a]] = true;
    }
    const auto graph = graph_from_neighbours(neighbours.data(), n, k, dissimilar, seed);
    const Matrix w = couplings_of(graph);
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t j = 0; j < n; ++j) {
        if (i == j) continue;
        CHECK((w[i][j] == 1) == (chosen[i][j] || chosen[j][i]));
        CHECK(w[i][j] == 1 || w[i][j] == 0 || w[i][j] == -1);
        CHECK(dissimilar < n || w[i][j] != 0);
      }
    check_graph(graph, w, seed);
  }
}

// Larger label graphs, where only the energies can be checked: the last block cut in a fixed order, and descent.
void test_large_classes() {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const std::vector<uint32_t> sizes = {300, 1, 150, 220};
    const auto graph = graph_from_classes(sizes, 20, 20, seed);
    Random random(seed);
    Bits z(graph.n());
    for (auto& bit : z) bit = random.below(2) ? 1 : -1;
    ZStepOptions options;
    options.seed = seed;
    const ZStepResult result = alternate(graph, Blocks(graph.block()), options, z.data());
    CHECK(result.converged);
    CHECK(result.n_blocks == sizes.size());
    for (size_t s = 1; s < result.energies.size(); ++s) CHECK(result.energies[s] <= result.energies[s - 1]);
    CHECK(result.energies.back() == energy_before_any_sweep(graph, Blocks(graph.block()), z));
    const std::vector<double> zeros(graph.n(), 0.0);  // the other arithmetic: 64-bit flows
    CHECK(result.energies.back() == energy_before_any_sweep(graph, Blocks(graph.block()), z, zeros.data()));
  }
}

// ------------------------------------------------------------------------------------------ randomness

void test_permutation() {
  for (uint64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4096, 5000})
    for (uint64_t seed : {0ull, 1ull, ~0ull}) {
      const Permutation permutation(n, seed);
      std::vector<bool> seen(n, false);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t image = permutation(i);
        CHECK(image < n);
        if (image < n) {
          CHECK(!seen[image]);
          seen[image] = true;
        }
      }
    }
  for (uint64_t n : {uint64_t{1} << 32, (uint64_t{1} << 40) + 1, uint64_t{1} << 62, ~uint64_t{0}}) {
    const Permutation permutation(n, 3);
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < 100; ++i) {
      CHECK(permutation(i) < n);
      images.insert(permutation(i));
      CHECK(permutation(n - 1 - i) < n);
    }
    CHECK(images.size() == 100);
  }
}

void test_random() {
  Random a(5), b(5), c(6);
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.next();
    CHECK(x == b.next());
    same += x == c.next();
  }
  CHECK(same == 0);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 7000; ++i) {
    uint32_t first, second;
    a.below_twice(7, first, second);
    CHECK(first < 7 && second < 7);
    ++counts[first];
    ++counts[second];
    ++counts[a.below(7)];
  }
  for (const int count : counts) CHECK(count > 2750 && count < 3250);  // 3000, give or take five deviations
  CHECK(a.below(1) == 0);
}

// ------------------------------------------------------------------------------------------ memory

template <class Work>
bool throws_bad_alloc(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

void test_block_cache() {
  // Many sizes around the limits of what is kept, several alive at once: no two may share memory.
  Random random(1);
  const size_t mib = size_t{1} << 20;
  std::vector<Buffer<uint8_t>> alive;
  std::vector<uint8_t> marks;
  for (int round = 0; round < 120; ++round) {
    const size_t sizes[] = {0, 1, 100, mib - 1, mib, mib + 1, 2 * mib, 3 * mib, 5 * mib, random.below(4 * 1024 * 1024)};
    Buffer<uint8_t> fresh(sizes[random.below(10)]);
    CHECK(fresh.empty() == (fresh.size() == 0));
    const auto mark = static_cast<uint8_t>(round + 1);
    std::fill_n(fresh.data(), fresh.size(), mark);
    if (alive.size() < 12) {
      alive.push_back(std::move(fresh));
      marks.push_back(mark);
    } else {
      const uint32_t k = random.below(12);
      alive[k] = std::move(fresh);
      marks[k] = mark;
    }
    for (size_t k = 0; k < alive.size(); ++k)
      if (alive[k].size()) {
        const Buffer<uint8_t>& buffer = alive[k];
        CHECK(buffer[0] == marks[k]);
        CHECK(buffer[buffer.size() / 2] == marks[k]);
        CHECK(buffer[buffer.size() - 1] == marks[k]);
      }
  }
  Buffer<double> first(mib), second;
  first[0] = 3.0;
  first[mib - 1] = 4.0;
  second = std::move(first);
  Buffer<double> third(std::move(second));
  CHECK(third.size() == mib && third[0] == 3.0 && third[mib - 1] == 4.0);

  // Given up in another thread than the one that asked for it.
  Buffer<int> elsewhere;
  std::thread worker([&] { elsewhere = Buffer<int>(mib); });
  worker.join();
  elsewhere[mib - 1] = 7;
  CHECK(elsewhere[mib - 1] == 7);
  std::thread another([&] { Buffer<int> taken(std::move(elsewhere)); });
  another.join();
  CHECK(elsewhere.size() == 0);

  // A thread keeps some of what it gives up, never more than its share.
  for (const size_t each : {30, 100, 200, 300}) {
    std::vector<Buffer<uint8_t>> many(1 + 300 / each);
    for (auto& buffer : many) buffer = Buffer<uint8_t>(each * mib);
    many.clear();
    CHECK(BlockCache::bytes_kept() <= BlockCache::kMostBytes);
    CHECK(each > 200 || BlockCache::bytes_kept() >= each * mib);
  }
  CHECK(throws_bad_alloc([] { Buffer<double> none(SIZE_MAX / 4); }));
  CHECK(throws_bad_alloc([] { Buffer<uint8_t> none(SIZE_MAX - 5); }));
}

// ------------------------------------------------------------------------------------------ vectors

float uniform(Random& random) { return static_cast<float>(random.below(20001)) / 10000.0f - 1.0f; }

template <class T>
void check_gather(void (*kernel)(Rows<const T>, const int64_t*, const int32_t*, const float*, Rows<float>, float*,
                                 double*, double*),
                  size_t n, size_t d) {
  Random random(n * 100 + d);
  const size_t stride = d + 3, n_drawn = 2 * n + 1;
  std::vector<T> x(n * stride);
  for (auto& value : x)
    value = sizeof(T) == 1 ? static_cast<T>(random.below(256)) : static_cast<T>(uniform(random) * 10);
  std::vector<int64_t> rows(n_drawn);
  for (auto& row : rows) row = random.below(static_cast<uint32_t>(n));
  std::vector<int32_t> some;
  for (size_t j = 0; j < d; j += 2) some.push_back(static_cast<int32_t>(d - 1 - j));
  for (const bool all : {true, false}) {
    const size_t n_columns = all ? d : some.size();
    std::vector<float> origin(n_columns), out(n_drawn * (n_columns + 1), 77.0f), scratch(2 * n_columns);
    for (auto& value : origin) value = uniform(random);
    std::vector<double> sum(n_columns, 0.0), squares(n_columns, 0.0);
    kernel({x.data(), stride, n, d}, rows.data(), all ? nullptr : some.data(), origin.data(),
           {out.data(), n_columns + 1, n_drawn, n_columns}, scratch.data(), sum.data(), squares.data());
    for (size_t j = 0; j < n_columns; ++j) {
      double total = 0, total_squares = 0;
      for (size_t i = 0; i < n_drawn; ++i) {
        const T value = x[static_cast<size_t>(rows[i]) * stride + (all ? j : static_cast<size_t>(some[j]))];
        const auto wanted = static_cast<float>(static_cast<double>(value) - static_cast<double>(origin[j]));
        CHECK(out[i * (n_columns + 1) + j] == wanted);
        total += wanted;
        total_squares += double{wanted} * wanted;
      }
      CHECK(std::abs(sum[j] - total) <= 1e-4 * (1 + total_squares));
      CHECK(std::abs(squares[j] - total_squares) <= 1e-4 * (1 + total_squares));
    }
    for (size_t i = 0; i < n_drawn; ++i) CHECK(out[i * (n_columns + 1) + n_columns] == 77.0f);  // what lies beside
  }
}

void test_gather(const VectorKernels& kernels) {
  for (const size_t n : {1, 31, 33, 70})
    for (const size_t d : {1, 2, 15, 16, 33}) {
      check_gather<float>(kernels.gather_f32, n, d);
      check_gather<double>(kernels.gather_f64, n, d);
      check_gather<uint8_t>(kernels.gather_u8, n, d);
    }
}

void test_rescale(const VectorKernels& kernels) {
  Random random(2);
  const size_t n = 9, d = 19, stride = 23;
  std::vector<float> x(n * stride), shift(d), factor(d);
  for (auto& value : x) value = uniform(random);
  for (auto& value : shift) value = uniform(random);
  for (auto& value : factor) value = uniform(random);
  const std::vector<float> before = x;
  kernels.rescale({x.data(), stride, n, d}, shift.data(), factor.data());
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < stride; ++j) {
      const float old = before[i * stride + j];
      CHECK(x[i * stride + j] == (j < d ? (old - shift[j]) * factor[j] : old));
    }
}

void test_hinge(const VectorKernels& kernels) {
  for (const size_t n : {0, 1, 15, 16, 17, 100}) {
    Random random(n);
    std::vector<float> f(n), y(n), along(n), slack(n), pull(n);
    std::vector<uint8_t> active(n);
    for (size_t i = 0; i < n; ++i) {
      f[i] = 2 * uniform(random);
      y[i] = random.below(2) ? 1.0f : -1.0f;
      along[i] = uniform(random);
    }
    double total = 0;
    const double loss = kernels.hinge(f.data(), y.data(), n, slack.data(), pull.data(), active.data());
    for (size_t i = 0; i < n; ++i) {
      const float s = 1.0f - y[i] * f[i], positive = std::max(s, 0.0f);
      CHECK(slack[i] == s);
      CHECK(pull[i] == -y[i] * positive);
      CHECK(active[i] == (s > 0.0f));
      total += double{positive} * positive;
    }
    CHECK(std::abs(loss - total) <= 1e-9 * (1 + total));
    for (const float t : {0.0f, 0.7f, 5.0f}) {
      double slope = 0, curvature = 0, wanted_slope = 0, wanted_curvature = 0;
      kernels.hinge_slope(slack.data(), y.data(), along.data(), n, t, &slope, &curvature);
      for (size_t i = 0; i < n; ++i) {
        const float v = y[i] * along[i], r = slack[i] - t * v;
        if (r <= 0.0f) continue;
        wanted_slope -= double{r} * v;
        wanted_curvature += double{v} * v;
      }
      CHECK(std::abs(slope - wanted_slope) <= 1e-5 * (1 + std::abs(wanted_slope)));
      CHECK(std::abs(curvature - wanted_curvature) <= 1e-5 * (1 + wanted_curvature));
    }
  }
}

void test_project_subsets(const VectorKernels& kernels) {
  for (const size_t n : {1, 31, 32, 33, 65}) {
    Random random(n);
    const size_t n_columns = 11, stride = 13, n_bits = 5, d = 4, out_stride = 6;
    std::vector<float> x(n * stride), weights(n_bits * d), bias(n_bits), out(n * out_stride, 77.0f);
    std::vector<float> tile(n_columns * kProjectTile, 0.0f);
    std::vector<int32_t> columns(n_bits * d);
    for (auto& value : x) value = uniform(random);
    for (auto& value : weights) value = uniform(random);
    for (auto& value : bias) value = uniform(random);
    for (auto& column : columns) column = static_cast<int32_t>(random.below(n_columns));
    kernels.project_subsets({x.data(), stride, n, n_columns}, weights.data(), columns.data(), bias.data(), n_bits, d,
                            tile.data(), {out.data(), out_stride, n, n_bits});
    for (size_t i = 0; i < n; ++i) {
      for (size_t b = 0; b < n_bits; ++b) {
        double wanted = bias[b];
        for (size_t j = 0; j < d; ++j)
          wanted += double{weights[b * d + j]} * x[i * stride + static_cast<size_t>(columns[b * d + j])];
        CHECK(std::abs(out[i * out_stride + b] - wanted) <= 1e-5);
      }
      CHECK(out[i * out_stride + n_bits] == 77.0f);
    }
  }
}

// ------------------------------------------------------------------------------------------ loss over pairs

// Bits with kept blocks and whole weights against a new graph of real couplings; also beyond 16 bits per target.
void test_pair_loss(uint32_t n, uint32_t n_pairs, uint32_t n_classes, uint32_t n_bits) {
  Random random(n + n_classes);
  std::vector<std::set<std::pair<uint32_t, int8_t>>> partners(n);
  for (uint32_t p = 0; p < n_pairs; ++p) {
    const uint32_t i = random.below(n), j = random.below(n);
    // classes give blocks that no attraction leaves; otherwise signs are random, by pair
    const bool alike = n_classes ? i % n_classes == j % n_classes : mix64(uint64_t{i} * j + i + j) % 2 == 0;
    const auto sign = static_cast<int8_t>(alike ? 1 : -1);
    if (i == j) continue;
    partners[i].insert({j, sign});
    partners[j].insert({i, sign});
  }
  std::vector<uint32_t> begin{0}, columns;
  std::vector<int8_t> signs;
  for (const auto& row : partners) {
    for (const auto& [j, sign] : row) {
      columns.push_back(j);
      signs.push_back(sign);
    }
    begin.push_back(static_cast<uint32_t>(columns.size()));
  }
  PairLoss loss(graph_from_signs(begin.data(), columns.data(), signs.data(), n));
  std::vector<Bits> bits;
  for (uint32_t bit = 0; bit < n_bits; ++bit) {
    std::vector<double> couplings(columns.size());
    double wanted_loss = 0;
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t a = begin[i]; a < begin[i + 1]; ++a) {
        int product = 0;
        for (const Bits& z : bits) product += z[i] * z[columns[a]];
        couplings[a] = static_cast<double>(n_bits) * signs[a] - product;
        if (bit) wanted_loss += std::pow(product / static_cast<double>(bit) - signs[a], 2);
      }
    if (bit) CHECK(std::abs(loss.value() * static_cast<double>(columns.size()) - wanted_loss) <= 1e-9 * wanted_loss);
    const SignedGraph graph = graph_from_couplings(begin.data(), columns.data(), couplings.data(), n);
    ZStepOptions options;
    options.seed = bit;
    Bits found(n, 1), wanted(n, 1);
    for (uint32_t i = 0; i < n; ++i) found[i] = wanted[i] = random.below(2) ? 1 : -1;
    const ZStepResult result = loss.lower(n_bits, options, found.data());
    const ZStepResult twin = alternate(graph, grow_blocks(graph), options, wanted.data());
    CHECK(found == wanted);
    CHECK(result.n_blocks == twin.n_blocks && result.converged == twin.converged);
    CHECK(result.energies.size() == twin.energies.size());
    CHECK(std::abs(result.energies.back() - twin.energies.back()) <= 1e-9 * std::abs(twin.energies.back()));
    loss.add(found.data());
    loss.remove(found.data());
    loss.add(found.data());
    bits.push_back(found);
  }
}

void test_pair_losses() {
  for (uint32_t n = 2; n < 40; n += 3)
    for (const uint32_t n_classes : {0, 1, 3}) test_pair_loss(n, n * 4, n_classes, 5);
  test_pair_loss(300, 6000, 0, 3);
  test_pair_loss(300, 6000, 4, 3);
  test_pair_loss(SignedGraph::kMostPointsFor16Bits + 5, 200000, 3, 2);
}

// ------------------------------------------------------------------------------------------ infinite digits

// The ends of all limits at once, so that an overflow or a read outside the source would be met here.
void test_digits_at_their_limits() {
  for (const int32_t side : {2, 3, 8, 28, 256})
    for (const int32_t longest : {0, 1 << 18})
      for (const int32_t spacing : {kTicks, 3 * kTicks + 1, 1 << 18})
        for (const int32_t ratio : {0, kUnit})
          for (const int32_t margin : {1, 5 * kTicks, 1 << 18}) {
            const Deformation limits{side, longest, spacing, longest, margin, ratio, ratio};
            CHECK(fault_of(limits) == nullptr);
            const size_t pixels = static_cast<size_t>(side) * static_cast<size_t>(side);
            std::vector<uint8_t> source(pixels, 255), out(pixels, 7);
            std::vector<int32_t> right(pixels), down(pixels);
            Deformer deformer(limits);
            for (const uint64_t i : {uint64_t{0}, ~uint64_t{0}}) {
              deformer.image(source.data(), ~uint64_t{0}, i, out.data());
              CHECK(out == source);  // a plain area stays what it is, wherever its pixels come from
              deformer.field(~uint64_t{0}, i, right.data(), down.data());
              const int32_t farthest = 2 * longest + (ratio ? 4 * side * kTicks : 0);
              for (size_t p = 0; p < pixels; ++p) CHECK(std::max(std::abs(right[p]), std::abs(down[p])) <= farthest);
            }
          }
  for (const Deformation& wrong :
       {Deformation{1, 0, kTicks, 0, 1, 0, 0}, Deformation{257, 0, kTicks, 0, 1, 0, 0},
        Deformation{2, -1, kTicks, 0, 1, 0, 0}, Deformation{2, 0, kTicks - 1, 0, 1, 0, 0},
        Deformation{2, 0, kTicks, (1 << 18) + 1, 1, 0, 0}, Deformation{2, 0, kTicks, 0, 0, 0, 0},
        Deformation{2, 0, kTicks, 0, 1, kUnit + 1, 0}, Deformation{2, 0, kTicks, 0, 1, 0, -1}})
    CHECK(fault_of(wrong) != nullptr);
}

void test_digits_of_no_strength_are_copies() {
  const Deformation none{28, 0, 8 * kTicks, 0, 5 * kTicks, 0, 0};
  Random random(3);
  std::vector<uint8_t> source(784), out(784);
  for (auto& pixel : source) pixel = static_cast<uint8_t>(random.below(256));
  Deformer(none).image(source.data(), 1, 2, out.data());
  CHECK(out == source);
}

void test_digit_sources() {
  for (const uint64_t n : {1, 2, 7, 1797}) {
    std::vector<std::vector<uint64_t>> passes(3);
    for (uint64_t i = 0; i < 3 * n; ++i) passes[i / n].push_back(source_of(n, 5, i));
    for (auto pass : passes) {
      std::sort(pass.begin(), pass.end());
      for (uint64_t k = 0; k < n; ++k) CHECK(pass[k] == k);
    }
    if (n > 100) CHECK(passes[0] != passes[1] && passes[1] != passes[2]);
    CHECK(source_of(n, 5, ~uint64_t{0}) < n);
  }
}

}  // namespace

int main() {
  test_permutation();
  test_random();
  test_block_cache();
  test_couplings();
  test_weights_of_any_size();
  test_long_ways();
  test_classes();
  test_label_sets();
  test_neighbours();
  test_large_classes();
  test_pair_losses();
  const VectorKernels& kernels = vector_kernels();
  std::printf("vector kernels: %s\n", vector_level());
  test_gather(kernels);
  test_rescale(kernels);
  test_hinge(kernels);
  test_project_subsets(kernels);
  test_digits_at_their_limits();
  test_digits_of_no_strength_are_copies();
  test_digit_sources();
  return testing::all_passed("core");
}
