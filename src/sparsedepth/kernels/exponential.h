/* The exponential function in plain arithmetic: the same bits with every compiler and C library. */
#ifndef SPARSEDEPTH_EXPONENTIAL_H
#define SPARSEDEPTH_EXPONENTIAL_H

#include <stdint.h>

/* Compute exp(x) of a number up to 0, to 1e-7 of it; 0 below -80. */
static inline float exp_of(float x) {
    if (!(x > -80.0f)) return 0.0f;
    const int32_t halvings = (int32_t)(0.5f - x * 1.44269504f);
    const float rest = (x + (float)halvings * 0.693359375f) - (float)halvings * 2.12194440e-4f;
    const float square = rest * rest;
    const float even = 0.5f + square * (4.1666668e-2f + square * 1.3888889e-3f);
    const float odd = 1.6666667e-1f + square * (8.3333338e-3f + square * 1.9841270e-4f);
    union {
        uint32_t bits;
        float value;
    } power = {(uint32_t)(127 - halvings) << 23};
    return power.value * (1.0f + (rest + square * (even + rest * odd)));
}

#endif
