/* Vectors that fit the registers of the processor. Sixteen lanes are computed in two registers or four, with equal
 * bits. */
#ifndef SPARSEDEPTH_LANES_H
#define SPARSEDEPTH_LANES_H

#include <stdint.h>

enum { LANES = 16 };
#if defined(__AVX__)
enum { HELD = 8 };
#else
enum { HELD = 4 };
#endif
enum { PARTS = LANES / HELD };
/* LANES: sums are added up in so many parts. HELD: numbers in a register. */

typedef float Lanes __attribute__((vector_size(4 * HELD), aligned(4), may_alias));
typedef int32_t Flags __attribute__((vector_size(4 * HELD), aligned(4), may_alias));
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

/* Add up sixteen numbers, in pairs. */
static inline float sum_lanes(const float *sums) {
    const Four *four = (const Four *)sums;
    const Four added = (four[0] + four[2]) + (four[1] + four[3]);
    return (added[0] + added[2]) + (added[1] + added[3]);
}

#endif
