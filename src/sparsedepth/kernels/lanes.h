/* Vectors that fit the registers of the processor. Eight lanes are computed in one register or in two, with equal bits. */
#ifndef SPARSEDEPTH_LANES_H
#define SPARSEDEPTH_LANES_H

#include <stdint.h>

enum { LANES = 8 };
#ifdef __AVX__
enum { HELD = 8 };
#else
enum { HELD = 4 };
#endif
enum { PARTS = LANES / HELD };
/* LANES: sums are added up in so many parts. HELD: numbers in a register. */

typedef float Lanes __attribute__((vector_size(4 * HELD), aligned(4), may_alias));
typedef int32_t Flags __attribute__((vector_size(4 * HELD), aligned(4), may_alias));

/* Add up eight numbers, in pairs. */
static inline float sum_lanes(const float *sums) {
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

#endif
