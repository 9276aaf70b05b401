// Codes grouped, put into tiles and taken out again; and infinite digits.
#include <cstring>

#include "digits.hpp"
#include "input.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

void group(Input& in) {
  const size_t n = in.below(200), m = in.below(12);
  std::vector<uint8_t> codes = in.many<uint8_t>(n * m);
  const uint8_t mask = in.take<uint8_t>();
  for (uint8_t& byte : codes) byte = static_cast<uint8_t>(byte & mask);
  check_codes({codes.data(), n, m});
  const Groups groups = group_codes(codes.data(), n, m);
  const bool all_distinct = groups.representative.size() == n;
  expect(groups.rows.size() == (all_distinct ? 0 : n), "every row is in a list");
  for (size_t c = 0; !all_distinct && c < groups.representative.size(); ++c) {
    expect(groups.rows[groups.offsets[c]] == groups.representative[c], "lists begin with the representative");
    for (uint32_t i = groups.offsets[c]; i < groups.offsets[c + 1]; ++i)
      expect(std::memcmp(codes.data() + groups.rows[i] * m, codes.data() + groups.representative[c] * m, m) == 0,
             "a list has equal codes");
  }
}

void tile(Input& in) {
  const size_t n = in.below(150), m = in.below(9);
  const std::vector<uint8_t> codes = in.many<uint8_t>(n * m);
  std::vector<uint32_t> rows(in.below(150));
  for (uint32_t& row : rows) row = n ? static_cast<uint32_t>(in.below(n)) : 0;
  in.spoil(rows);
  const bool some = in.flag();
  const size_t n_codes = some ? rows.size() : n, n_tiles = in.take<uint8_t>() ? (n_codes + 63) / 64 : in.below(4);
  std::vector<uint8_t> tiles(n_tiles * m * kTile);
  const TileArray array{tiles.data(), n_tiles, m, kTile};
  check_to_tiles({codes.data(), n, m}, some ? Maybe<Span<uint32_t>>(span(rows)) : std::nullopt, array);
  fill_tiles(codes.data(), some ? rows.data() : nullptr, n_codes, m, tiles.data());
  std::vector<uint32_t> wanted(in.below(40));
  for (uint32_t& code : wanted) code = n_codes ? static_cast<uint32_t>(in.below(n_codes)) : 0;
  const bool plain = in.flag();
  if (!plain) in.spoil(wanted);
  std::vector<uint8_t> out(wanted.size() * m);
  check_from_tiles(array, span(wanted), wanted.size(), m);
  read_tiles(tiles.data(), wanted.data(), wanted.size(), m, out.data());
  for (size_t i = 0; plain && n_codes && i < wanted.size(); ++i) {
    const size_t row = some ? rows[wanted[i]] : wanted[i];
    expect(m == 0 || std::memcmp(out.data() + i * m, codes.data() + row * m, m) == 0, "codes come out as they went in");
  }
}

void digits(Input& in) {
  Deformation limits{8, 2 * kTicks, 3 * kTicks, kTicks, 4 * kTicks, 8000, 6000};
  int32_t* const fields[] = {&limits.side,   &limits.amplitude,      &limits.spacing, &limits.shift,
                             &limits.margin, &limits.tan_half_angle, &limits.scale};
  for (int32_t* const field : fields)
    if (in.flag()) *field = in.flag() ? in.take<int32_t>() : static_cast<int32_t>(in.take<uint32_t>() >> 14);
  limits.side = std::min(limits.side, 40);
  require_no_fault(fault_of(limits));
  const uint64_t n = in.flag() ? in.take<uint64_t>() : 3, i = in.take<uint64_t>(), seed = in.take<uint64_t>();
  check_sources(n, 1);
  expect(source_of(n, seed, i) < n, "sources are sources");
  const auto pixels = static_cast<size_t>(limits.side) * static_cast<size_t>(limits.side);
  const std::vector<uint8_t> source = in.many<uint8_t>(pixels);
  std::vector<uint8_t> out(pixels);
  Deformer(limits).image(source.data(), seed, i, out.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] {
    switch (in.take<uint8_t>() % 3) {
      case 0: return group(in);
      case 1: return tile(in);
      default: digits(in);
    }
  });
}
