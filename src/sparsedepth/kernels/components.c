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

static inline float size_of(float value) { return value < 0 ? -value : value; }

#define REAL float
#define NAME(name) name##_float
#include "components.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_double
#include "components.h"

/* Join a pixel of a mask to those before it among its eight neighbours; the one above touches all the others. */
static inline void join_before(const uint8_t *mask, int64_t row, int64_t column, int64_t width, int32_t *parents) {
    const int64_t here = row * width + column, above = here - width;
    const int left = column > 0, right = column + 1 < width;
    int32_t *mine = parents + here;
    if (row && mask[above]) *mine = parents[above];
    else {
        if (left && mask[here - 1]) *mine = parents[here - 1];
        else *mine = row && left && mask[above - 1] ? parents[above - 1] : (int32_t)here;
        if (row && right && mask[above + 1]) join(parents, (int32_t)here, (int32_t)(above + 1));
    }
}

/* Mark the pixels that differ from their four neighbours by no more than a step, and what large connected sets of them
 * reach: their pixels and the four neighbours of these.
 *
 * values: (height, width); NaN differs. most_px: pixels of the largest set that is not large. parents, sizes: (height *
 * width,), scratch.
 */
KERNEL void components_interior(int64_t height, int64_t width, const float *values, float step, int64_t most_px,
                                int32_t *parents, int32_t *sizes, uint8_t *interior, uint8_t *reached) {
    const int64_t n = height * width;
    for (int64_t at = 0; at < n; at++) interior[at] = reached[at] = 0, sizes[at] = 0;
    for (int64_t row = 1; row + 1 < height; row++)
        for (int64_t column = 1; column + 1 < width; column++) {
            const float *here = values + row * width + column;
            const float worst = most(most(size_of(here[-1] - *here), size_of(here[1] - *here)),
                                     most(size_of(here[-width] - *here), size_of(here[width] - *here)));
            const float sum = here[-1] + here[1] + here[-width] + here[width] + *here;
            interior[row * width + column] = worst <= step && sum == sum;
        }
    for (int64_t row = 1; row + 1 < height; row++)
        for (int64_t column = 1; column + 1 < width; column++)
            if (interior[row * width + column]) join_before(interior, row, column, width, parents);
    for (int64_t at = 0; at < n; at++)
        if (interior[at]) sizes[parents[at] = root_of(parents, (int32_t)at)]++;
    for (int64_t at = width; at + width < n; at++)
        if (interior[at] && sizes[parents[at]] > most_px)
            reached[at] = reached[at - 1] = reached[at + 1] = reached[at - width] = reached[at + width] = 1;
}
