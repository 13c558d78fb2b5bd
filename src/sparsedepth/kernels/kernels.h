/* What all kernels share. No kernel allocates memory or calls a library: the caller owns all arrays. */
#ifndef SPARSEDEPTH_KERNELS_H
#define SPARSEDEPTH_KERNELS_H

#include <stdint.h>

#ifdef _WIN32
#define KERNEL __declspec(dllexport)
#else
#define KERNEL __attribute__((visibility("default")))
#endif

/* Disparities, pixels and atoms are padded to a multiple of this, so that their loops fill the registers. */
enum { BLOCK = 16 };

static inline float least(float a, float b) { return a < b ? a : b; }
static inline float most(float a, float b) { return a > b ? a : b; }

#endif
