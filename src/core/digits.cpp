#include "digits.hpp"

#include <algorithm>

namespace ilhash {

namespace {

constexpr int kWeightBits = 12;
constexpr int64_t kWhole = 1 << kWeightBits;
constexpr int32_t kLongest = 256 * kTicks;

// Streams of random numbers; never change them, the images would change.
constexpr uint64_t kSourceStream = 0xD1B54A32D192ED03ULL;
constexpr uint64_t kImageStream = 0x8CB92BA72F3D8DD7ULL;

uint64_t seed_of(uint64_t stream, uint64_t seed, uint64_t i) { return mix64(seed ^ stream) + i; }

// v / 2^bits to the nearest whole number, halves upwards. (Shifts of negative numbers keep the sign on every compiler.)
template <class Int>
Int rounded_shift(Int v, int bits) {
  return (v + (Int{1} << (bits - 1))) >> bits;
}

int32_t within(Random& random, int32_t limit) {
  return static_cast<int32_t>(random.below(2 * static_cast<uint32_t>(limit) + 1)) - limit;
}

}  // namespace

const char* fault_of(const Deformation& d) {
  const auto outside = [](int32_t value, int32_t low, int32_t high) { return value < low || value > high; };
  if (outside(d.side, 2, 256)) return "side must lie in 2 .. 256";
  if (outside(d.amplitude, 0, kLongest)) return "amplitude must lie in 0 .. 2^18";
  if (outside(d.spacing, kTicks, kLongest)) return "spacing must lie in 2^10 .. 2^18";
  if (outside(d.shift, 0, kLongest)) return "shift must lie in 0 .. 2^18";
  if (outside(d.margin, 1, kLongest)) return "margin must lie in 1 .. 2^18";
  if (outside(d.tan_half_angle, 0, kUnit)) return "tan_half_angle must lie in 0 .. 2^16";
  if (outside(d.scale, 0, kUnit)) return "scale must lie in 0 .. 2^16";
  return nullptr;
}

uint64_t source_of(uint64_t n, uint64_t seed, uint64_t i) {
  return Permutation(n, seed_of(kSourceStream, seed, i / n))(i % n);
}

Deformer::Deformer(const Deformation& deformation) : limits_(deformation) {
  const int32_t side = limits_.side;
  // The last pixel under the largest offset of the grid, and the four knots around it.
  n_knots_ = ((side - 1) * kTicks + kTicks / 2 + limits_.spacing - 1) / limits_.spacing + 4;
  for (int32_t x = 0; x < side; ++x) {
    const int64_t from_border = int64_t{std::min(x, side - 1 - x)} * kTicks + kTicks / 2;
    fading_.push_back(static_cast<int32_t>(std::min<int64_t>(kTicks, from_border * kTicks / limits_.margin)));
  }
  columns_.resize(static_cast<size_t>(side));
  rows_.resize(static_cast<size_t>(side));
  strip_.resize(static_cast<size_t>(n_knots_));
  for (int direction = 0; direction < 2; ++direction) {
    knots_[direction].resize(static_cast<size_t>(n_knots_) * static_cast<size_t>(n_knots_));
    field_[direction].resize(static_cast<size_t>(side) * static_cast<size_t>(side));
  }
}

// Rotation by angle a and change of size by 1 + s. With t = tan(a / 2), the cosine is (1 - t^2) / (1 + t^2) and the
// sine 2 t / (1 + t^2): no transcendental function, whose last bit would depend on the machine.
void Deformer::draw_affine(Random& random) {
  constexpr int64_t one = int64_t{kUnit} * kUnit;
  const int64_t t = within(random, limits_.tan_half_angle);
  const int64_t size = kUnit + within(random, limits_.scale);
  const int64_t cosine = (one - t * t) * kUnit / (one + t * t);
  const int64_t sine = 2 * t * one / (one + t * t);
  turn_[0][0] = turn_[1][1] = rounded_shift(cosine * size, 16) - kUnit;
  turn_[1][0] = rounded_shift(sine * size, 16);
  turn_[0][1] = -turn_[1][0];
  for (int32_t& shift : shift_) shift = within(random, limits_.shift);
}

// Cubic B-splines: four weights, none negative, that sum to one, so the field is smooth and never exceeds the
// amplitude. The grid has a random offset: without it, the field would be calmest in the same places of every image.
void Deformer::draw_taps(Random& random, std::vector<Taps>& taps) const {
  constexpr int64_t sixth = 6 * kWhole * kWhole;
  const auto part = [](int64_t cubic) { return static_cast<int32_t>((cubic + sixth / 2) / sixth); };
  const auto spacing = static_cast<uint32_t>(limits_.spacing);
  uint32_t position = random.below(spacing) + kTicks / 2;
  for (Taps& tap : taps) {
    const int64_t f = int64_t{position % spacing} * kWhole / spacing, rest = kWhole - f;
    tap.first = static_cast<int32_t>(position / spacing);
    tap.weight[0] = part(rest * rest * rest);
    tap.weight[1] = part(3 * f * f * f - 6 * f * f * kWhole + 4 * kWhole * kWhole * kWhole);
    tap.weight[3] = part(f * f * f);
    tap.weight[2] = static_cast<int32_t>(kWhole) - tap.weight[0] - tap.weight[1] - tap.weight[3];
    position += kTicks;
  }
}

void Deformer::draw_knots(Random& random) {
  const uint32_t n_values = 2 * static_cast<uint32_t>(limits_.amplitude) + 1;
  for (size_t k = 0; k < knots_[0].size(); ++k) {
    uint32_t right, down;
    random.below_twice(n_values, right, down);
    knots_[0][k] = static_cast<int32_t>(right) - limits_.amplitude;
    knots_[1][k] = static_cast<int32_t>(down) - limits_.amplitude;
  }
}

// The field in one direction: knots spread over the pixels, plus rotation, size and shift, faded towards the two
// borders that it points at. The frame is so mapped onto itself, and no part of a digit is pushed out of it.
void Deformer::spread(int direction, int32_t* out) {
  const int32_t side = limits_.side;
  const auto spline = [](const int32_t* knot, std::ptrdiff_t stride, const int32_t* weight) {
    return rounded_shift(
        weight[0] * knot[0] + weight[1] * knot[stride] + weight[2] * knot[2 * stride] + weight[3] * knot[3 * stride],
        kWeightBits);
  };
  const auto from_centre = [side](int32_t x) { return int64_t{2 * x - (side - 1)} * (kTicks / 2); };
  for (int32_t y = 0; y < side; ++y) {
    const int32_t* const above = knots_[direction].data() + std::ptrdiff_t{rows_[y].first} * n_knots_;
    for (int32_t k = 0; k < n_knots_; ++k) strip_[k] = spline(above + k, n_knots_, rows_[y].weight);
    for (int32_t x = 0; x < side; ++x) {
      const int32_t elastic = spline(strip_.data() + columns_[x].first, 1, columns_[x].weight);
      const int64_t turned = turn_[direction][0] * from_centre(x) + turn_[direction][1] * from_centre(y);
      const int32_t affine = static_cast<int32_t>(rounded_shift(turned, 16)) + shift_[direction];
      *out++ = rounded_shift((elastic + affine) * fading_[direction == 0 ? x : y], 10);
    }
  }
}

void Deformer::field(uint64_t seed, uint64_t i, int32_t* right, int32_t* down) {
  Random random(seed_of(kImageStream, seed, i));
  draw_affine(random);
  draw_taps(random, columns_);
  draw_taps(random, rows_);
  draw_knots(random);
  spread(0, right);
  spread(1, down);
}

void Deformer::image(const uint8_t* source, uint64_t seed, uint64_t i, uint8_t* out) {
  field(seed, i, field_[0].data(), field_[1].data());
  const int32_t side = limits_.side;
  const int32_t *right = field_[0].data(), *down = field_[1].data();
  const auto place = [side](int32_t from) { return std::clamp(from, 0, (side - 1) * kTicks); };
  for (int32_t y = 0; y < side; ++y)
    for (int32_t x = 0; x < side; ++x) {  // bilinear interpolation between the four pixels around the place
      const int32_t px = place(x * kTicks + *right++), py = place(y * kTicks + *down++);
      const int32_t x0 = std::min(px / kTicks, side - 2), y0 = std::min(py / kTicks, side - 2);
      const int32_t fx = px - x0 * kTicks, fy = py - y0 * kTicks;
      const uint8_t* const p = source + std::ptrdiff_t{y0} * side + x0;
      const int32_t upper = p[0] * (kTicks - fx) + p[1] * fx;
      const int32_t lower = p[side] * (kTicks - fx) + p[side + 1] * fx;
      *out++ = static_cast<uint8_t>(rounded_shift(upper * (kTicks - fy) + lower * fy, 20));
    }
}

}  // namespace ilhash
