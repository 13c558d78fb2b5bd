/* Logarithm and exponential of doubles in plain arithmetic, by so many terms of series: loops over them are vectorised. */
#ifndef SPARSEDEPTH_LOGARITHM_H
#define SPARSEDEPTH_LOGARITHM_H

#include <stdint.h>

enum { MOST_POWERS = 13, EXACT_LOG = 10, EXACT_EXP = 13, NINE_DIGITS_LOG = 5, NINE_DIGITS_EXP = 8 };
/* Terms of the logarithm and of the exponential, for all digits and for nine. */

static const double LOG_2 = 0.6931471805599453, LOG_2_HIGH = 0.6931471787393093, LOG_2_LOW = 1.8206359985041462e-09;
static const double SHIFT = 6755399441055744.0; /* 1.5 * 2^52: what is added to it is rounded */
static const double INVERSE_FACTORIALS[MOST_POWERS + 1] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

typedef union { double number; uint64_t bits; } Bits;

/* Compute the logarithm of a positive normal number: of its power of two, and of the rest by 2 artanh(s). */
static inline double log_of(double number, int terms) {
    const uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000, bits = ((Bits){number}).bits;
    const uint64_t power = (bits - root_half + one) >> 52;
    const double rest = ((Bits){.bits = bits - (power << 52) + one}).number;
    const double exponent = ((Bits){.bits = ((Bits){SHIFT}).bits + power}).number - SHIFT - 1023;
    const double s = (rest - 1) / (rest + 1), square = s * s;
    double sum = 1.0 / (2 * terms + 1);
    for (int term = terms - 1; term >= 0; term--) sum = sum * square + 1.0 / (2 * term + 1);
    return exponent * LOG_2 + 2 * s * sum;
}

/* Compute exp(x) within the range of normal numbers. */
static inline double exp_of(double x, int terms) {
    const double held = x < -700 ? -700 : x > 700 ? 700 : x, shifted = held * (1 / LOG_2) + SHIFT, power = shifted - SHIFT;
    const double rest = (held - power * LOG_2_HIGH) - power * LOG_2_LOW;
    double sum = INVERSE_FACTORIALS[terms];
    for (int term = terms - 1; term >= 0; term--) sum = sum * rest + INVERSE_FACTORIALS[term];
    return sum * ((Bits){.bits = (((Bits){shifted}).bits - ((Bits){SHIFT}).bits + 1023) << 52}).number;
}

#endif
