// Elastic deformations of small grey images: image i of an endless set, from (seed, i) alone.
//
// All arithmetic is on whole numbers, so that the bytes are the same on every machine, compiler and instruction set.
#pragma once
#include <cstdint>
#include <vector>

#include "random.hpp"

namespace ilhash {

constexpr int kTicks = 1024;    // lengths are counted in 1/1024 pixel
constexpr int kUnit = 1 << 16;  // ratios in 1/65536

struct Deformation {
  int32_t side;            // images are side x side pixels, 2 .. 256
  int32_t amplitude;       // knots of the displacement field lie in -amplitude .. +amplitude, in ticks
  int32_t spacing;         // between knots, in ticks, at least one pixel
  int32_t shift;           // of the whole image, at most, in ticks
  int32_t margin;          // within it, displacements across the border fade to none; in ticks
  int32_t tan_half_angle;  // tangent of half the largest rotation, in units
  int32_t scale;           // the largest change of size, in units
};

const char* fault_of(const Deformation& deformation);  // nullptr if the limits hold within which nothing overflows

// Which of n sources image i is made from: each pass over all of them is a fresh permutation.
uint64_t source_of(uint64_t n, uint64_t seed, uint64_t i);

// Makes images one after the other; its memory is scratch, so each thread needs its own.
class Deformer {
 public:
  explicit Deformer(const Deformation& deformation);

  // Where each pixel of image i takes its grey from, relative to where it stands, in ticks: rightwards and downwards.
  void field(uint64_t seed, uint64_t i, int32_t* right, int32_t* down);

  void image(const uint8_t* source, uint64_t seed, uint64_t i, uint8_t* out);

 private:
  struct Taps {  // the four knots around a pixel along one axis, and their parts in it (of 4096)
    int32_t first;
    int32_t weight[4];
  };

  void draw_affine(Random& random);
  void draw_taps(Random& random, std::vector<Taps>& taps) const;
  void draw_knots(Random& random);
  void spread(int direction, int32_t* out);

  Deformation limits_;
  int32_t n_knots_;              // along one axis
  std::vector<int32_t> fading_;  // of displacements across the border, by column or row of pixels, of kTicks
  int64_t turn_[2][2];           // the linear map of rotation and size, less the identity, in units
  int32_t shift_[2];             // rightwards, downwards
  std::vector<int32_t> knots_[2];
  std::vector<Taps> columns_, rows_;
  std::vector<int32_t> strip_;  // what one row of pixels takes from the knots, still by columns of knots
  std::vector<int32_t> field_[2];
};

}  // namespace ilhash
