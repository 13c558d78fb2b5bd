/* Products of pairs of whole numbers of 16 bits: they are exact, and the same with every processor. */
#ifndef SPARSEDEPTH_PAIRS_H
#define SPARSEDEPTH_PAIRS_H

#include "lanes.h"

typedef int16_t Shorts __attribute__((vector_size(4 * HELD), aligned(2), may_alias));

#if defined(__AVX2__)
#include <immintrin.h>
/* Multiply numbers, and add up each product with the next one. */
static inline Flags multiply_pairs(Shorts one, Shorts other) {
    return (Flags)_mm256_madd_epi16((__m256i)one, (__m256i)other);
}
#elif defined(__SSE2__)
#include <emmintrin.h>
static inline Flags multiply_pairs(Shorts one, Shorts other) {
    return (Flags)_mm_madd_epi16((__m128i)one, (__m128i)other);
}
#elif defined(__aarch64__)
#include <arm_neon.h>
static inline Flags multiply_pairs(Shorts one, Shorts other) {
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)one), vget_low_s16((int16x8_t)other));
    return (Flags)vpaddq_s32(low, vmull_high_s16((int16x8_t)one, (int16x8_t)other));
}
#else
static inline Flags multiply_pairs(Shorts one, Shorts other) {
    Flags sums = {0};
    for (int at = 0; at < HELD; at++) sums[at] = one[2 * at] * other[2 * at] + one[2 * at + 1] * other[2 * at + 1];
    return sums;
}
#endif

/* Repeat a pair of numbers. */
static inline Shorts pair_of(const int16_t *pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, sizeof both);
    return (Shorts)((Flags){0} + both);
}

#endif
