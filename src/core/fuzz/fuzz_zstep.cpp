// z-steps on any graph, and the loss over pairs under any sequence of calls: energies never rise.
#include <cmath>

#include "graphs.hpp"
#include "pair_loss.hpp"
#include "zstep.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

std::vector<int8_t> bits(Input& in, size_t n) {
  std::vector<int8_t> z(n);
  for (int8_t& bit : z) bit = in.flag() ? 1 : -1;
  in.spoil(z);
  check_bits(span(z), n, "length", "values");
  return z;
}

void examine(const ZStepResult& result, const std::vector<int8_t>& z) {
  for (size_t i = 1; i < result.energies.size(); ++i)
    expect(result.energies[i] <= result.energies[i - 1], "energies do not rise");
  for (const int8_t bit : z) expect(bit == 1 || bit == -1, "bits are bits");
}

void lower_graph(Input& in) {
  const SignedGraph graph = any_graph(in);
  std::vector<int8_t> z = bits(in, graph.n());
  std::vector<double> field;
  ZStepOptions options;
  options.seed = in.take<uint64_t>();
  options.shuffle_blocks = in.flag();
  options.max_sweeps = in.take<uint8_t>();
  if (in.flag()) {
    field = in.many<double>(graph.n());
    for (double& u : field)
      if (in.flag()) u = std::round(std::fmod(u, 100.0));
    in.spoil(field);
    check_field(span(field), graph.n());
    options.field = field.data();
  }
  const ZStepResult result =
      alternate(graph, graph.block().empty() ? grow_blocks(graph) : graph.block(), options, z.data());
  examine(result, z);
}

void lower_pairs(Input& in) {
  PairLoss loss(signed_pairs(in));
  for (size_t calls = in.below(12); calls > 0; --calls) {
    std::vector<int8_t> z = bits(in, loss.n_points());
    unless_refused([&] {
      switch (in.take<uint8_t>() % 4) {
        case 0: return loss.remove(z.data());
        case 1: {
          ZStepOptions options;
          options.seed = in.take<uint64_t>();
          options.max_sweeps = in.take<uint8_t>();
          const uint32_t n_bits = in.flag() ? in.take<uint32_t>() : loss.n_bits() + 1;
          return examine(loss.lower(n_bits, options, z.data()), z);
        }
        case 2: return void(loss.value());
        default: loss.add(z.data());
      }
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] { in.flag() ? lower_pairs(in) : lower_graph(in); });
}
