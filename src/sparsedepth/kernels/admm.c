/* Element-wise steps of ADMM between its matrix products, in one pass over a block that stays in the cache. */
#include "kernels.h"

enum { GROWTH_NONE, GROWTH_SQUARE, GROWTH_ROOT };

/* Sums are added up in so many parts, so that compilers may add them at once. */
#define LANES 8

#define REAL float
#define NAME(name) name##_float
#define SQUARE_ROOT __builtin_sqrtf
#include "admm_steps.h"
#undef REAL
#undef NAME
#undef SQUARE_ROOT

#define REAL double
#define NAME(name) name##_double
#define SQUARE_ROOT __builtin_sqrt
#include "admm_steps.h"
