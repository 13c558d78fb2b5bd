/* Ranks and means of the neighbours of each pixel, a row of pixels at a time. */
#include "kernels.h"

#define REAL float
#define NAME(name) name##_float
#include "box.h"
#include "range.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_double
#include "box.h"
#include "range.h"
#undef REAL
#undef NAME

/* Average the distances of each pixel of a row to the two nearest, in depth, of its neighbours.
 *
 * depth: the row within a map with a border of `radius` pixels; rows are `pitch` apart; infinite = missing.
 */
static void nearest_of_row(int64_t width, int64_t pitch, int64_t radius, const float *depth, float *first, float *second,
                           float *out) {
    for (int64_t at = 0; at < width; at++) first[at] = second[at] = __builtin_inff();
    for (int64_t down = -radius; down <= radius; down++)
        for (int64_t right = -radius; right <= radius; right++) {
            const float *other = depth + down * pitch + right;
            if (!down && !right) continue;
            for (int64_t at = 0; at < width; at++) {
                const float apart = other[at] - depth[at], distance = apart < 0 ? -apart : apart;
                second[at] = least(second[at], most(first[at], distance));
                first[at] = least(first[at], distance);
            }
        }
    for (int64_t at = 0; at < width; at++) {
        const float last = second[at] < __builtin_inff() ? second[at] : first[at];
        const int lonely = !(first[at] < __builtin_inff()) || !(depth[at] < __builtin_inff());
        out[at] = lonely ? 0 : (first[at] + last) / 2;
    }
}

/* Average, for each pixel, the distances to the two nearest in depth of its neighbours; 0 where it or they are missing.
 *
 * depth: (n, height + 2 radius, width + 2 radius), infinite = missing. scratch: (2, width). out: (n, height, width).
 */
KERNEL void neighbours_nearest(int64_t n, int64_t height, int64_t width, int64_t radius, const float *depth,
                               float *scratch, float *out) {
    const int64_t pitch = width + 2 * radius;
    for (int64_t map = 0; map < n; map++, depth += pitch * (height + 2 * radius))
        for (int64_t row = 0; row < height; row++, out += width)
            nearest_of_row(width, pitch, radius, depth + (row + radius) * pitch + radius, scratch, scratch + width, out);
}

/* Sort rows by exchanges: of each pair, the smaller numbers go to the first row. */
static void exchange(int64_t width, int64_t exchanges, const int64_t *pairs, float *const *rows) {
    for (int64_t pair = 0; pair < exchanges; pair++) {
        float *low = rows[pairs[2 * pair]], *high = rows[pairs[2 * pair + 1]];
        for (int64_t at = 0; at < width; at++) {
            const float one = low[at], other = high[at];
            low[at] = least(one, other);
            high[at] = most(one, other);
        }
    }
}

/* Compute the ninth of the sixteen numbers on a grid around each pixel, in ascending order.
 *
 * values: (n, height + 2 reach, width + 2 reach). offsets: four, of rows and of columns. pairs: of the exchanges that
 * sort four numbers, then of those that merge four sorted runs of four. scratch: (20, width + 2 reach). out: (n, height,
 * width).
 */
KERNEL void neighbours_grid_median(int64_t n, int64_t height, int64_t width, int64_t reach, const int64_t *offsets,
                                   int64_t sorting, int64_t merging, const int64_t *pairs, const float *values,
                                   float *scratch, float *out) {
    enum { SIDE = 4, ALL = SIDE * SIDE };
    const int64_t pitch = width + 2 * reach;
    float *rows[SIDE + ALL];
    for (int64_t one = 0; one < SIDE + ALL; one++) rows[one] = scratch + one * pitch;
    for (int64_t map = 0; map < n; map++, values += pitch * (height + 2 * reach))
        for (int64_t row = 0; row < height; row++, out += width) {
            for (int64_t one = 0; one < SIDE; one++)
                for (int64_t at = 0; at < pitch; at++)
                    rows[one][at] = values[(row + reach + offsets[one]) * pitch + at];
            exchange(pitch, sorting, pairs, rows);
            for (int64_t one = 0; one < ALL; one++)
                for (int64_t at = 0; at < width; at++)
                    rows[SIDE + one][at] = rows[one % SIDE][at + reach + offsets[one / SIDE]];
            exchange(width, merging, pairs + 2 * sorting, rows + SIDE);
            for (int64_t at = 0; at < width; at++) out[at] = rows[SIDE + ALL / 2][at];
        }
}

/* Sum maps of small whole numbers above and to the left of each place, the maps padded with zeros.
 *
 * values: (n, height, width). table: (n, height + 2 radius + 1, width + 2 radius + 1).
 */
KERNEL void neighbours_table(int64_t n, int64_t height, int64_t width, int64_t radius, const int8_t *values,
                             int32_t *table) {
    const int64_t pitch = width + 2 * radius + 1, rows = height + 2 * radius + 1, before = radius + 1;
    for (int64_t map = 0; map < n; map++, values += height * width)
        for (int64_t row = 0; row < rows; row++, table += pitch) {
            const int inside = row >= before && row < before + height;
            int32_t sum = 0;
            for (int64_t at = 0; at < pitch; at++) table[at] = 0;
            if (inside)
                for (int64_t at = 0; at < width; at++) table[before + at] = sum += values[(row - before) * width + at];
            for (int64_t at = before + width; at < pitch; at++) table[at] = sum;
            if (row)
                for (int64_t at = 0; at < pitch; at++) table[at] += table[at - pitch];
        }
}

/* Take from each pixel of a map the least range of the four squares of 2x2 pixels that hold it; infinite where none is
 * without missing pixels. scratch: (2, width + 1). out: (height, width). */
KERNEL void neighbours_blocks(int64_t n, int64_t height, int64_t width, const float *values, float *scratch, float *out) {
    float *rows[2] = {scratch, scratch + width + 1};
    for (int64_t map = 0; map < n; map++, values += height * width, out += height * width) {
        for (int64_t at = 0; at <= width; at++) rows[0][at] = __builtin_inff();
        for (int64_t row = 0; row < height; row++) {
            const float *here = values + row * width, *below = here + width;
            float *above_me = rows[row % 2], *below_me = rows[(row + 1) % 2];
            for (int64_t at = 0; at <= width; at++) below_me[at] = __builtin_inff();
            if (row + 1 < height)
                for (int64_t at = 1; at < width; at++) {
                    const float up = most(most(here[at - 1], here[at]), most(below[at - 1], below[at]));
                    const float low = least(least(here[at - 1], here[at]), least(below[at - 1], below[at]));
                    const float sum = here[at - 1] + here[at] + below[at - 1] + below[at];
                    below_me[at] = sum == sum ? up - low : __builtin_inff();
                }
            for (int64_t at = 0; at < width; at++)
                out[row * width + at] =
                    least(least(above_me[at], above_me[at + 1]), least(below_me[at], below_me[at + 1]));
        }
    }
}

/* Count the eight neighbours of each pixel that differ from it by no more than a step; NaN differs. */
KERNEL void neighbours_similar(int64_t height, int64_t width, const float *values, float step, int8_t *counts) {
    for (int64_t at = 0; at < height * width; at++) counts[at] = 0;
    for (int64_t row = 0; row < height; row++)
        for (int64_t down = row ? -1 : 0; down <= (row + 1 < height); down++)
            for (int64_t right = -1; right <= 1; right++) {
                const float *here = values + row * width, *there = here + down * width + right;
                int8_t *mine = counts + row * width;
                if (!down && !right) continue;
                for (int64_t at = right < 0; at < width - (right > 0); at++) {
                    const float apart = there[at] - here[at];
                    mine[at] += (int8_t)((apart < 0 ? -apart : apart) <= step);
                }
            }
}
