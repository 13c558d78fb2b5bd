/* Connected components of pixels with nearly equal values. */
#include "kernels.h"

/* Find the root of a node; on the way, every other node is led to its grandparent. */
static inline int32_t root_of(int32_t *parents, int32_t node) {
    while (parents[node] != node) node = parents[node] = parents[parents[node]];
    return node;
}

/* Join two sets; the smaller root leads. */
static inline void join(int32_t *parents, int32_t one, int32_t other) {
    one = root_of(parents, one);
    other = root_of(parents, other);
    if (one < other) parents[other] = one;
    else parents[one] = other;
}

#define REAL float
#define NAME(name) name##_float
#include "components.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_double
#include "components.h"
