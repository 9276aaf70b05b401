// Label graphs without arcs, their kernels and their z-step, against plain loops and the graph with arcs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <vector>

#include "bits.hpp"
#include "check.hpp"
#include "graph.hpp"
#include "label_graph.hpp"
#include "label_kernels.hpp"
#include "random.hpp"
#include "vector.hpp"
#include "zstep.hpp"

using namespace ilhash;

namespace {

struct Case {
  std::vector<uint32_t> sizes;
  uint32_t similar, dissimilar;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{{1}, 1, 1},
                                        {{1, 1, 1}, 1, 1},
                                        {{64, 64}, 20, 30},
                                        {{65, 63, 1, 200}, 30, 20},
                                        {{130, 7, 90, 90}, 100, 200},
                                        {{90, 200, 70}, 2, 12},      // cuts are mixed
                                        {{300, 20, 400, 33}, 9, 2},  // choices are kept as numbers
                                        {{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 3, 4}};
  return all;
}

std::vector<int8_t> random_bits(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<int8_t> z(n);
  for (auto& bit : z) bit = random.below(2) ? 1 : -1;
  return z;
}

void test_symmetrise() {
  for (const size_t n : {1, 63, 64, 65, 200}) {
    Random random(n);
    const size_t n_words = words_for(n) + 1;
    std::vector<uint64_t> rows(n * n_words, 0);
    std::vector<std::vector<bool>> wanted(n, std::vector<bool>(n));
    for (size_t k = 0; k < 7 * n; ++k) {
      const uint32_t i = random.below(static_cast<uint32_t>(n)), j = random.below(static_cast<uint32_t>(n));
      set_bit(rows.data() + i * n_words, j);
      wanted[i][j] = wanted[j][i] = true;
    }
    label_kernels().symmetrise(rows.data(), n, n_words);
    std::vector<uint64_t> plus(n_words, ~uint64_t{0});
    std::vector<uint32_t> count(n), n_plus(n);
    label_kernels().count_rows(rows.data(), n, n_words, plus.data(), count.data(), n_plus.data());
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) CHECK(has_bit(rows.data() + i * n_words, j) == wanted[i][j]);
      CHECK(count[i] == static_cast<uint32_t>(std::count(wanted[i].begin(), wanted[i].end(), true)));
      CHECK(count[i] == n_plus[i]);
    }
  }
}

// Bits and counts of a label graph against the arcs of the same graph.
void test_tally(const Case& problem, uint64_t seed) {
  CHECK(LabelGraph::suits(problem.sizes, problem.similar, problem.dissimilar));
  const LabelGraph labels(problem.sizes, problem.similar, problem.dissimilar, seed);
  const SignedGraph graph = graph_from_classes(problem.sizes, problem.similar, problem.dissimilar, seed);
  CHECK(graph.labels() != nullptr);
  const std::vector<int8_t> z = random_bits(labels.n, seed);
  const ClassTally tally(labels, z.data());
  const size_t n_classes = labels.n_classes();
  graph.visit([&](const auto& arcs) {
    CHECK(arcs.block == labels.block);
    for (uint32_t i = 0; i < labels.n; ++i) {
      std::vector<uint32_t> count(n_classes), n_plus(n_classes);
      for (uint32_t a = arcs.repel.begin[i]; a < arcs.repel.end[i]; ++a) {
        const uint32_t m = arcs.repel.target[a];
        ++count[labels.block[m]];
        n_plus[labels.block[m]] += z[m] > 0;
      }
      for (size_t c = 0; c < n_classes; ++c) {
        CHECK(tally.count[i * n_classes + c] == count[c]);
        CHECK(tally.n_plus[i * n_classes + c] == n_plus[c]);
      }
      const uint32_t c = labels.block[i], first = labels.class_begin[c];
      const uint64_t* const row = labels.attract.data() + labels.rows_begin[c] + (i - first) * labels.n_words_of(c);
      uint32_t own = 0;
      for (uint32_t j = 0; j < labels.size(c); ++j) own += has_bit(row, j);
      CHECK(own == arcs.attract.end[i] - arcs.attract.begin[i]);
      for (uint32_t a = arcs.attract.begin[i]; a < arcs.attract.end[i]; ++a)
        CHECK(has_bit(row, uint32_t{arcs.attract.target[a]} - first));
    }
  });
}

// A field of zeros asks for the general path.
void test_zstep(const Case& problem, uint64_t seed) {
  const SignedGraph graph = graph_from_classes(problem.sizes, problem.similar, problem.dissimilar, seed);
  const std::vector<double> zeros(graph.n(), 0.0);
  for (const uint32_t most : {1u, 1000u}) {
    std::vector<int8_t> z = random_bits(graph.n(), seed + 1), wanted = z;
    ZStepOptions options;
    options.seed = seed;
    options.max_sweeps = most;
    const ZStepResult found = alternate(graph, graph.block(), options, z.data());
    options.field = zeros.data();
    const ZStepResult general = alternate(graph, graph.block(), options, wanted.data());
    CHECK(z == wanted);
    CHECK(found.energies == general.energies);
    CHECK(found.converged == general.converged);
    CHECK(found.n_blocks == general.n_blocks);
  }
}

void test_what_suits() {
  CHECK(!LabelGraph::suits({}, 5, 5));
  CHECK(!LabelGraph::suits({10, 10}, 0, 5));
  CHECK(!LabelGraph::suits({10, 10}, 5, 0));
  CHECK(!LabelGraph::suits({40000, 40000}, 100, 100));
  CHECK(!LabelGraph::suits({10000}, 5, 5));
  CHECK(!LabelGraph::suits(std::vector<uint32_t>(600, 2), 5, 5));
  CHECK(LabelGraph::suits({10, 10}, 1, 1));
}

}  // namespace

int main() {
  std::printf("label kernels: %s\n", vector_level());
  test_symmetrise();
  test_what_suits();
  for (const Case& problem : cases())
    for (uint64_t seed = 0; seed < 4; ++seed) {
      test_tally(problem, seed);
      test_zstep(problem, seed);
    }
  return testing::all_passed("labels");
}
