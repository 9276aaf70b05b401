// Codes put in order by pivots. Only thousands of them are, so an input takes a hundred times as long as elsewhere.
#include "input.hpp"
#include "random.hpp"
#include "scan.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

// Codes around few centres, so that pivots pay.
void order(Input& in) {
  const size_t n_bits = 1 + in.below(40), m = (n_bits + 7) / 8, n = 8192 + in.below(300);
  Random random(in.take<uint64_t>());
  const std::vector<uint8_t> centres = in.many<uint8_t>(4 * m);
  const unsigned padding = (1u << (8 * m - n_bits)) - 1;
  std::vector<uint8_t> codes(n * m);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint8_t>(centres[random.below(4) * m + i % m] ^ (random.next() & random.next() & 0x11));
    if (i % m == m - 1) codes[i] = static_cast<uint8_t>(codes[i] & ~padding);
  }
  std::vector<uint32_t> rows(n);
  for (uint32_t i = 0; i < n; ++i) rows[i] = i;
  in.spoil(codes);
  in.spoil(rows);
  const size_t asked = in.take<uint8_t>() ? n_bits : in.take<size_t>();
  check_codes_to_order({codes.data(), codes.size() / m, m}, span(rows), asked);
  const PivotOrder found = order_by_pivots(codes.data(), rows.data(), rows.size(), m, asked);
  std::vector<bool> seen(rows.size(), false);
  for (const uint32_t code : found.order) {
    expect(!seen[code], "no code comes twice");
    seen[code] = true;
  }
  expect(found.order.empty() || found.order.size() == rows.size(), "every code comes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] { order(in); });
}
