/* Averages of a map at halved sizes, as surfaces fills missing pixels from (pull-push).
 *
 * Of an even number of pixels, pairs are added up; of an odd one, each second pixel and half of its neighbours.
 */
#include "kernels.h"

static int64_t half_of(int64_t size) { return (size + 1) / 2; }

/* Add up the pixels of a column or a row that belong to one of half as many; `size` pixels lie `step` apart. */
static inline double add_near(const double *values, int64_t size, int64_t step, int64_t at) {
    const int64_t from = 2 * at;
    if (size == 1) return values[0];
    if (size % 2 == 0) return values[from * step] + values[(from + 1) * step];
    const double before = from > 0 ? values[(from - 1) * step] / 2 : 0;
    return values[from * step] + before + (from + 1 < size ? values[(from + 1) * step] / 2 : 0);
}

/* Halve the size of a map: add pixels up along columns, then along rows. scratch: width numbers. */
KERNEL void pyramid_halve(int64_t height, int64_t width, const double *values, double *scratch, double *half) {
    for (int64_t row = 0; row < half_of(height); row++) {
        for (int64_t at = 0; at < width; at++) scratch[at] = add_near(values + at, height, width, row);
        for (int64_t at = 0; at < half_of(width); at++) *half++ = add_near(scratch, width, 1, at);
    }
}

/* Interpolate pixel `at` of `size` from half as many, `step` apart. */
static inline double between(const double *half, int64_t size, int64_t step, int64_t at) {
    const int64_t near = at / 2, last = half_of(size) - 1;
    if (size % 2 == 0) {
        const int64_t other = at % 2 ? near + 1 : near - 1, held = other < 0 ? 0 : other > last ? last : other;
        return 0.75 * half[near * step] + 0.25 * half[held * step];
    }
    return at % 2 ? (half[(near + 1) * step] + half[near * step]) / 2 : half[near * step];
}

/* Average sums by their weights; where the weight is below one, blend with a map of half the size.
 *
 * coarse: the averages of that map. scratch: width numbers. sums: receives the averages.
 */
KERNEL void pyramid_blend(int64_t height, int64_t width, const double *coarse, const double *weights, double *scratch,
                          double *sums) {
    const int64_t half = half_of(width);
    for (int64_t row = 0; row < height; row++, weights += width, sums += width) {
        for (int64_t at = 0; at < half; at++) scratch[at] = between(coarse + at, height, half, row);
        for (int64_t at = 0; at < width; at++) {
            const double far = between(scratch, width, 1, at), weight = weights[at];
            const double mean = weight > 0 ? sums[at] / weight : 0;
            sums[at] = weight >= 1 ? mean : far + weight * (mean - far);
        }
    }
}

/* Add the valid pixels of a row to sums, and their number to weights, times a factor. */
static void add_valid(int64_t width, const double *values, double factor, double *sums, double *weights) {
    for (int64_t at = 0; at < width; at++) {
        const int valid = values[at] - values[at] == 0;
        sums[at] += valid ? factor * values[at] : 0;
        weights[at] += valid ? factor : 0;
    }
}

/* Halve the size of a map with missing pixels, as `pyramid_halve` does. scratch: (2, width). */
KERNEL void pyramid_first(int64_t height, int64_t width, const double *values, double *scratch, double *half_sums,
                          double *half_weights) {
    const double aside = height % 2 ? 0.5 : 1;
    for (int64_t row = 0; row < height; row += 2) {
        for (int64_t at = 0; at < 2 * width; at++) scratch[at] = 0;
        add_valid(width, values + row * width, 1, scratch, scratch + width);
        if (row > 0 && height % 2) add_valid(width, values + (row - 1) * width, aside, scratch, scratch + width);
        if (row + 1 < height) add_valid(width, values + (row + 1) * width, aside, scratch, scratch + width);
        for (int64_t at = 0; at < half_of(width); at++) {
            *half_sums++ = add_near(scratch, width, 1, at);
            *half_weights++ = add_near(scratch + width, width, 1, at);
        }
    }
}

/* Fill missing pixels from a map of half the size. scratch: width numbers. */
KERNEL void pyramid_last(int64_t height, int64_t width, const double *values, const double *coarse, double *scratch,
                         double *filled) {
    const int64_t half = half_of(width);
    for (int64_t row = 0; row < height; row++, values += width, filled += width) {
        for (int64_t at = 0; at < half; at++) scratch[at] = between(coarse + at, height, half, row);
        for (int64_t at = 0; at < width; at++)
            filled[at] = values[at] - values[at] == 0 ? values[at] : between(scratch, width, 1, at);
    }
}
