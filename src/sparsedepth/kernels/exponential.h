/* The exponential function in plain arithmetic: the same bits with every compiler and C library. */
#ifndef SPARSEDEPTH_EXPONENTIAL_H
#define SPARSEDEPTH_EXPONENTIAL_H

#include "lanes.h"

/* Compute exp(x) of a number up to 0, to 1e-7 of it; one below -80 counts as -80. */
static inline float exp_of(float x) {
    const float held = x > -80.0f ? x : -80.0f;
    const int32_t halvings = (int32_t)(0.5f - held * 1.44269504f);
    const float rest = (held + (float)halvings * 0.693359375f) - (float)halvings * 2.12194440e-4f;
    const float square = rest * rest;
    const float even = 0.5f + square * (4.1666668e-2f + square * 1.3888889e-3f);
    const float odd = 1.6666667e-1f + square * (8.3333338e-3f + square * 1.9841270e-4f);
    union {
        uint32_t bits;
        float value;
    } power = {(uint32_t)(127 - halvings) << 23};
    return power.value * (1.0f + (rest + square * (even + rest * odd)));
}

/* Compute the same of the numbers of a register. */
static inline Lanes exp_of_lanes(Lanes x) {
    const Flags above = x > -80.0f;
    const Lanes held = (Lanes)((above & (Flags)x) | (~above & (Flags)((Lanes){0} - 80.0f)));
    const Flags halvings = __builtin_convertvector(0.5f - held * 1.44269504f, Flags);
    const Lanes whole = __builtin_convertvector(halvings, Lanes);
    const Lanes rest = (held + whole * 0.693359375f) - whole * 2.12194440e-4f;
    const Lanes square = rest * rest;
    const Lanes even = 0.5f + square * (4.1666668e-2f + square * 1.3888889e-3f);
    const Lanes odd = 1.6666667e-1f + square * (8.3333338e-3f + square * 1.9841270e-4f);
    const Lanes power = (Lanes)((127 - halvings) << 23);
    return power * (1.0f + (rest + square * (even + rest * odd)));
}

#endif
