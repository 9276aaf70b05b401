// Boosting of any binned features: the trees are without fault, and give the margins that came with them.
#include <cmath>

#include "boosting.hpp"
#include "input.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] {
    const size_t n_features = in.below(5), n_rows = in.below(30);
    std::vector<uint32_t> edge_begin{0};
    std::vector<double> edges;
    std::vector<uint8_t> bins;
    for (size_t j = 0; j < n_features; ++j) {
      const size_t own = in.flag() ? in.take<uint8_t>() : in.below(5);
      for (size_t e = 0; e < own; ++e) edges.push_back(static_cast<double>(e) + 0.5);
      edge_begin.push_back(static_cast<uint32_t>(edges.size()));
      for (size_t i = 0; i < n_rows; ++i) bins.push_back(static_cast<uint8_t>(in.below(own + 1)));
    }
    std::vector<int8_t> z(n_rows);
    for (int8_t& bit : z) bit = in.flag() ? 1 : -1;
    std::vector<float> x(n_rows * n_features);
    for (size_t j = 0; j < n_features; ++j)
      for (size_t i = 0; i < n_rows; ++i) x[i * n_features + j] = bins[j * n_rows + i];
    const bool plain = in.flag();
    if (!plain) {
      in.spoil(edge_begin);
      in.spoil(edges);
      in.spoil(z);
      if (!bins.empty() && in.flag()) bins[in.below(bins.size())] = in.take<uint8_t>();
    }
    BoostingOptions options;
    options.n_trees = static_cast<uint32_t>(in.below(6));
    options.depth = in.flag() ? in.take<uint32_t>() : 3;
    options.n_tried = in.flag() ? in.take<uint32_t>() : 1;
    options.rate = in.flag() ? in.take<double>() : 0.2;
    options.penalty = in.flag() ? in.take<double>() : 0.1;
    options.seed = in.take<uint64_t>();
    const BinnedFeatures binned =
        check_boosting({bins.data(), n_features, n_rows}, span(edge_begin), span(edges), span(z), options);
    std::vector<double> margins(n_rows);
    const TreeTable table = boost(binned, z.data(), options, margins.data());
    check_trees(table, std::max<size_t>(n_features, 1), options.depth);
    std::vector<float> found(n_rows);
    if (n_features == 0) return;
    tree_margins(table, {x.data(), n_features, n_rows, n_features}, found.data());
    for (size_t i = 0; i < n_rows; ++i) {
      expect(std::isfinite(margins[i]), "margins are numbers");
      expect(!plain || found[i] == static_cast<float>(margins[i]), "the margins of the trees");
    }
  });
}
