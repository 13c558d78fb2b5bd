/* Rounding to the nearest whole number, ties to even, without a library; for numbers below 2^51. */
#ifndef SPARSEDEPTH_ROUNDING_H
#define SPARSEDEPTH_ROUNDING_H

#include <stdint.h>

static inline int32_t round_to_int(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: the next numbers are one apart */
    return (int32_t)((x + shift) - shift);
}

#endif
