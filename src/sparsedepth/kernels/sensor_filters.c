/* Filters of a frame counted in standard deviations: slopes, blurs, total variation and a tilted bilateral filter. */
#include "exponential.h"
#include "kernels.h"

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Return the index that a reflected map has outside: d c b a | a b c d | d c b a. */
static int64_t reflected(int64_t at, int64_t length) {
    const int64_t within = ((at % (2 * length)) + 2 * length) % (2 * length);
    return within < length ? within : 2 * length - 1 - within;
}

/* Add rows or shifted rows at one distance to both sides, times a weight. */
static inline void add_both(int64_t n, float weight, const float *before, const float *after, float *sums) {
    for (int64_t at = 0; at < n; at++) sums[at] += weight * (before[at] + after[at]);
}

/* Blur a map by a symmetric kernel, along columns and then along rows; the map is reflected at its borders.
 *
 * weights: (radius + 1,), from the centre on. scratch: width + 2 * radius numbers and one row.
 */
KERNEL void sensor_blur(int64_t height, int64_t width, int64_t radius, const float *weights, const float *values,
                        float *scratch, float *blurred) {
    float *padded = scratch, *sums = scratch + width + 2 * radius;
    for (int64_t row = 0; row < height; row++) {
        float *target = blurred + row * width;
        for (int64_t at = 0; at < width; at++) sums[at] = weights[0] * values[row * width + at];
        for (int64_t away = 1; away <= radius; away++)
            add_both(width, weights[away], values + reflected(row - away, height) * width,
                     values + reflected(row + away, height) * width, sums);
        for (int64_t at = 0; at < width; at++) padded[radius + at] = sums[at];
        for (int64_t at = 1; at <= radius; at++) {
            padded[radius - at] = sums[reflected(-at, width)];
            padded[radius + width - 1 + at] = sums[reflected(width - 1 + at, width)];
        }
        for (int64_t at = 0; at < width; at++) target[at] = weights[0] * padded[radius + at];
        for (int64_t away = 1; away <= radius; away++)
            add_both(width, weights[away], padded + radius - away, padded + radius + away, target);
    }
}

/* Compute the rise at one pixel of three rows, between the columns beside it. */
static inline void rise_at(const float *above, const float *here, const float *below, int64_t left, int64_t at,
                           int64_t right, float *down, float *across) {
    const float before = above[left] + 2 * here[left] + below[left];
    const float after = above[right] + 2 * here[right] + below[right];
    const float top = above[left] + 2 * above[at] + above[right];
    const float bottom = below[left] + 2 * below[at] + below[right];
    across[at] = (after - before) * 0.125f;
    down[at] = (bottom - top) * 0.125f;
}

/* Compute the rise a pixel along columns and along rows by Sobel's operator; border pixels count twice. */
KERNEL void sensor_rises(int64_t height, int64_t width, const float *values, float *restrict down,
                         float *restrict across) {
    for (int64_t row = 0; row < height; row++) {
        const float *above = values + larger(row - 1, 0) * width, *here = values + row * width;
        const float *below = values + smaller(row + 1, height - 1) * width;
        float *fall = down + row * width, *flow = across + row * width;
        rise_at(above, here, below, 0, 0, smaller(1, width - 1), fall, flow);
        for (int64_t at = 1; at < width - 1; at++) rise_at(above, here, below, at - 1, at, at + 1, fall, flow);
        rise_at(above, here, below, larger(width - 2, 0), width - 1, width - 1, fall, flow);
    }
}

/* Compute a row of the primal picture from the dual ones, times a factor. */
static void primal_row(int64_t width, int64_t row, float weight, float factor, const float *values, const float *across,
                       const float *down, float *restrict primal) {
    const float *data = values + row * width, *flow = across + row * width, *fall = down + row * width;
    const float *above = fall - (row > 0 ? width : 0), kept = row > 0 ? 1 : 0;
    primal[0] = (data[0] + weight * (flow[0] + (fall[0] - kept * above[0]))) * factor;
    for (int64_t at = 1; at < width; at++)
        primal[at] = (data[at] + weight * (flow[at] + (fall[at] - kept * above[at]) - flow[at - 1])) * factor;
}

/* Move the dual pictures of a row along the differences of the primal one, back into the unit disc, and ahead. */
static void dual_row(int64_t width, float push, const float *right, const float *low, float *restrict across,
                     float *restrict down, float *restrict ahead_across, float *restrict ahead_down) {
    for (int64_t at = 0; at < width; at++) {
        const float x = ahead_across[at] + right[at], y = ahead_down[at] + low[at];
        const float norm = most(__builtin_sqrtf(x * x + y * y), 1);
        const float new_x = x / norm, new_y = y / norm;
        ahead_across[at] = new_x + push * (new_x - across[at]);
        ahead_down[at] = new_y + push * (new_y - down[at]);
        across[at] = new_x;
        down[at] = new_y;
    }
}

/* Subtract a row from another one. */
static void difference(int64_t n, const float *row, const float *other, float *restrict away) {
    for (int64_t at = 0; at < n; at++) away[at] = other[at] - row[at];
}

/* Minimise |p - values|^2 / 2 + weight * TV(p) by the fast gradient projection of Beck and Teboulle.
 *
 * pushes: (steps,), how far each step goes ahead. scratch: 4 pictures, zero at first, and 4 rows.
 */
KERNEL void sensor_variation(int64_t height, int64_t width, const float *values, float weight, int64_t steps,
                             const float *pushes, float *scratch, float *smooth) {
    const int64_t n = height * width;
    float *across = scratch, *down = scratch + n, *ahead_across = scratch + 2 * n, *ahead_down = scratch + 3 * n;
    float *primal = scratch + 4 * n, *below = primal + width, *right = below + width, *low = right + width;
    const float factor = 1 / (8 * weight);
    for (int64_t step = 0; step < steps; step++) {
        primal_row(width, 0, weight, factor, values, ahead_across, ahead_down, primal);
        for (int64_t row = 0; row < height; row++) {
            const int64_t at = row * width;
            const int last = row + 1 == height;
            if (!last) primal_row(width, row + 1, weight, factor, values, ahead_across, ahead_down, below);
            difference(width - 1, primal, primal + 1, right);
            right[width - 1] = 0;
            difference(width, primal, last ? primal : below, low);
            dual_row(width, pushes[step], right, low, across + at, down + at, ahead_across + at, ahead_down + at);
            float *next = below;
            below = primal;
            primal = next;
        }
    }
    for (int64_t row = 0; row < height; row++)
        primal_row(width, row, weight, 1, values, across, down, smooth + row * width);
}

/* What a row of pixels is compared with: the pixels at one offset. */
typedef struct {
    const float *pilot, *down, *across, *weight, *shown;
    float *total, *sums, *squares;
    float half_rows, half_columns, spatial, narrow;
    int64_t offset;
} Compared;

/* Read and write the numbers of a register. */
static inline Lanes lanes_of(const float *from) { return *(const Lanes *)from; }

/* Add the pixels at one offset to the sums of a register of pixels, by how near they are to the tilted surface. */
static inline void add_lanes(const Compared *c, int64_t at) {
    const int64_t there = at + c->offset;
    const Lanes rise = (lanes_of(c->down + at) + lanes_of(c->down + there)) * c->half_rows +
                       (lanes_of(c->across + at) + lanes_of(c->across + there)) * c->half_columns;
    const Lanes away = lanes_of(c->pilot + there) - lanes_of(c->pilot + at) - rise;
    const Lanes part = exp_of_lanes(away * away * c->narrow) * c->spatial * lanes_of(c->weight + there);
    *(Lanes *)(c->total + at) += part;
    *(Lanes *)(c->sums + at) += part * (lanes_of(c->shown + there) - rise);
    *(Lanes *)(c->squares + at) += part * part;
}

/* Add the pixel at one offset to the sums of one pixel. */
static inline void add_one(const Compared *c, int64_t at) {
    const int64_t there = at + c->offset;
    const float rise = (c->down[at] + c->down[there]) * c->half_rows + (c->across[at] + c->across[there]) * c->half_columns;
    const float away = c->pilot[there] - c->pilot[at] - rise;
    const float part = exp_of(away * away * c->narrow) * c->spatial * c->weight[there];
    c->total[at] += part;
    c->sums[at] += part * (c->shown[there] - rise);
    c->squares[at] += part * part;
}

/* Sum pixels of the same tilted surface, for rows from `first` to before `end`.
 *
 * pilot: the smooth version that decides. down, across: its slopes. weight: of each pixel, 0 or 1. shown: values, 0
 * where the weight is. offsets: n pairs (rows, columns), spatial: their weights. narrow: factor of the squared distance
 * in the exponent. total, sums, squares: receive the sums of weights, of weighted values and of squared weights, with
 * the pixel itself.
 */
KERNEL void sensor_tilted(int64_t height, int64_t width, int64_t first, int64_t end, const float *pilot,
                          const float *down, const float *across, const float *weight, const float *shown,
                          const int64_t *offsets, const float *spatial, int64_t n, float narrow, float *total,
                          float *sums, float *squares) {
    Compared c = {pilot, down, across, weight, shown, total, sums, squares, 0, 0, 0, narrow, 0};
    for (int64_t row = first; row < end; row++) {
        const int64_t start = row * width;
        for (int64_t at = start; at < start + width; at++) {
            total[at] = squares[at] = weight[at];
            sums[at] = shown[at];
        }
        for (int64_t one = 0; one < n; one++) {
            const int64_t rows = offsets[2 * one], columns = offsets[2 * one + 1];
            if (row + rows < 0 || row + rows >= height) continue;
            const int64_t right = start + smaller(width, width - columns);
            int64_t at = start + larger(0, -columns);
            c.half_rows = 0.5f * (float)rows;
            c.half_columns = 0.5f * (float)columns;
            c.spatial = spatial[one];
            c.offset = rows * width + columns;
            for (; at + HELD <= right; at += HELD) add_lanes(&c, at);
            for (; at < right; at++) add_one(&c, at);
        }
    }
}
