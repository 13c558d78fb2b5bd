/* Semi-global matching (Hirschmüller 2008): the cheapest paths to each pixel from eight sides, summed, and their least.
 *
 * Volumes are (height, width, stride): the loops over disparities are contiguous. Paths are 16-bit integers: a cost
 * and a penalty are together at most 8191, so the sum of eight paths has 16 bits too.
 */
#include "kernels.h"

enum { BESIDE = 24000 }; /* Path cost of labels outside the range: no path comes from there. */

typedef struct {
    int64_t width, n_channels, n, stride;
    uint8_t jump; /* Of colours: an edge. */
    const int16_t *penalties; /* (2, 3): of a step and of a jump, by the number of views that have an edge. */
} Shape;

/* What was found in the row before, of one direction: paths (width + 2, stride + 2) and the least of each pixel. */
typedef struct {
    int16_t *paths, *least;
} Row;

static inline int16_t lower(int16_t a, int16_t b) { return a < b ? a : b; }

/* Extend the paths of all labels by one pixel; return the least. Both path arrays have a label outside at each end. */
static int16_t extend(int64_t stride, const int16_t *restrict before, int16_t base, const int16_t *restrict costs,
                      const int16_t *restrict step, const int16_t *restrict jump, int16_t *restrict paths,
                      uint16_t *restrict total) {
    int16_t found = INT16_MAX;
    for (int64_t d = 0; d < stride; d++) {
        const int16_t beside = lower(before[d], before[d + 2]);
        const int16_t moved = lower((int16_t)(beside + step[d]), (int16_t)(base + jump[d]));
        const int16_t path = (int16_t)(lower(before[d + 1], moved) - base + costs[d]);
        paths[d + 1] = path;
        total[d] = (uint16_t)(total[d] + (uint16_t)path);
        found = lower(found, path);
    }
    return found;
}

static inline uint8_t differs(uint8_t a, uint8_t b, uint8_t jump) {
    return (uint8_t)((a > b ? a - b : b - a) > jump);
}

/* Find where colours differ by more than a jump from the pixel before, which is aside in the row before. */
static void find_edges(int64_t width, int64_t n_channels, uint8_t jump, const uint8_t *row, const uint8_t *before,
                       int64_t aside, uint8_t *restrict edges) {
    const int64_t begin = aside < 0 ? 1 : 0, end = aside > 0 ? width - 1 : width;
    for (int64_t x = 0; x < width; x++) edges[x] = 0;
    for (int64_t channel = 0; channel < n_channels; channel++) {
        const uint8_t *here = row + channel * width, *there = before + channel * width;
        if (begin) edges[0] |= differs(here[0], there[0], jump);
        if (end < width) edges[end] |= differs(here[end], there[end], jump);
        for (int64_t x = begin; x < end; x++) edges[x] |= differs(here[x], there[x + aside], jump);
    }
}

/* Look up the penalties of a row, (left edge, step and jump, width), from the edges of the other view. */
static void fill_penalties(const Shape *shape, const uint8_t *edges, int16_t *penalties) {
    const int64_t wide = shape->width + shape->stride - 1;
    for (int64_t left = 0; left < 2; left++) {
        for (int64_t kind = 0; kind < 2; kind++) {
            const int16_t *by_count = shape->penalties + 3 * kind + left;
            int16_t *row = penalties + (2 * left + kind) * wide;
            for (int64_t x = 0; x < wide; x++) row[x] = by_count[edges[x]];
        }
    }
}

/* Prepare a direction in a row: the edges of the left view, and the penalties by those of the right one. */
static void prepare(const Shape *shape, const uint8_t *left, const uint8_t *left_before, const uint8_t *right,
                    const uint8_t *right_before, int64_t dx, uint8_t *edges, int16_t *penalties) {
    const int64_t wide = shape->width + shape->stride - 1;
    find_edges(wide, shape->n_channels, shape->jump, right, right_before, dx, edges);
    for (int64_t x = shape->width; x < wide; x++) edges[x] = edges[shape->width - 1];
    fill_penalties(shape, edges, penalties);
    find_edges(shape->width, shape->n_channels, shape->jump, left, left_before, -dx, edges);
}

/* Sweep one row along one direction; from: the paths that are extended, one pixel dx before in the row of from. */
static void sweep_row(const Shape *shape, const uint8_t *edges, const int16_t *penalties, const int16_t *costs,
                      Row from, Row to, int64_t dx, int64_t order, uint16_t *total) {
    const int64_t width = shape->width, stride = shape->stride, wide = width + stride - 1;
    for (int64_t k = 0; k < width; k++) {
        const int64_t x = order > 0 ? k : width - 1 - k;
        const int16_t *row = penalties + 2 * edges[x] * wide + width - 1 - x;
        to.least[x + 1] =
            extend(stride, from.paths + (x + 1 - dx) * (stride + 2), from.least[x + 1 - dx], costs + x * stride, row,
                   row + wide, to.paths + (x + 1) * (stride + 2), total + x * stride);
    }
}

/* Let all paths of a row begin: no cost, except outside the range. */
static void begin_row(int64_t width, int64_t stride, Row row) {
    for (int64_t x = 0; x < width + 2; x++) {
        int16_t *paths = row.paths + x * (stride + 2);
        for (int64_t d = 0; d < stride + 2; d++) paths[d] = 0;
        paths[0] = paths[stride + 1] = BESIDE;
        row.least[x] = 0;
    }
}

/* Refine the least of the sums to a fraction of a label by a parabola. */
static float refined(int64_t n, int64_t best, const uint16_t *total) {
    if (best == 0 || best >= n - 1) return (float)best;
    const int32_t below = total[best - 1], here = total[best], above = total[best + 1];
    const int32_t bend = below - 2 * here + above;
    if (bend <= 0) return (float)best;
    return (float)best + most(least((float)(below - above) / (float)(2 * bend), 0.5f), -0.5f);
}

/* Find the label of the least sum of a pixel, the smallest of equals. */
static float winner(int64_t n, const uint16_t *total) {
    uint16_t lowest = UINT16_MAX;
    for (int64_t d = 0; d < n; d++) lowest = total[d] < lowest ? total[d] : lowest;
    int64_t best = 0;
    while (total[best] != lowest) best++;
    return refined(n, best, total);
}

/* Sweep all rows down, or up; the directions are along the row and three from the row before.
 *
 * rows: 7 rows of paths and of least costs; edges and penalties: room for 4 directions.
 */
static void sweep(int64_t height, const Shape *shape, const uint8_t *left, const uint8_t *right, const int16_t *costs,
                  int64_t order, Row *rows, uint8_t *edges, int16_t *penalties, uint16_t *total,
                  float *disparity) {
    const int64_t width = shape->width, wide = width + shape->stride - 1, volume = width * shape->stride;
    const int64_t left_row = shape->n_channels * width, right_row = shape->n_channels * wide;
    for (int64_t k = 0; k < 7; k++) begin_row(width, shape->stride, rows[k]);
    for (int64_t k = 0; k < height; k++) {
        const int64_t y = order > 0 ? k : height - 1 - k, before = k ? y - order : y;
        const uint8_t *ours = left + y * left_row, *theirs = right + y * right_row;
        prepare(shape, ours, ours, theirs, theirs, order, edges, penalties);
        sweep_row(shape, edges, penalties, costs + y * volume, rows[6], rows[6], order, order, total + y * volume);
        for (int64_t dx = -1; dx <= 1; dx++) {
            const Row from = rows[2 * (dx + 1) + (k & 1)], to = rows[2 * (dx + 1) + !(k & 1)];
            prepare(shape, ours, left + before * left_row, theirs, right + before * right_row, dx, edges, penalties);
            sweep_row(shape, edges, penalties, costs + y * volume, from, to, dx, 1, total + y * volume);
        }
        for (int64_t x = 0; disparity && x < width; x++)
            disparity[y * width + x] = winner(shape->n, total + y * volume + x * shape->stride);
    }
}

/* Find the disparity of least summed path costs, with a parabola's fraction.
 *
 * left: (height, channels, width); right: (height, channels, width + stride - 1), reversed, its first column repeated.
 * costs: (height, width, stride), of which n are labels; total: the same, zeros, receives the sums. room: for paths,
 * 7 * (width + 2) * (stride + 3) numbers; edges: width + stride; by_label: 4 * (width + stride).
 */
KERNEL void stereo_semi_global(int64_t height, int64_t width, int64_t n_channels, int64_t n, int64_t stride,
                               int64_t jump, const int16_t *penalties, const uint8_t *left, const uint8_t *right,
                               const int16_t *costs, int16_t *room, uint8_t *edges, int16_t *by_label, uint16_t *total,
                               float *disparity) {
    const Shape shape = {width, n_channels, n, stride, (uint8_t)jump, penalties};
    Row rows[7];
    for (int64_t k = 0; k < 7; k++) {
        rows[k].paths = room + k * (width + 2) * (stride + 3);
        rows[k].least = rows[k].paths + (width + 2) * (stride + 2);
    }
    sweep(height, &shape, left, right, costs, 1, rows, edges, by_label, total, 0);
    sweep(height, &shape, left, right, costs, -1, rows, edges, by_label, total, disparity);
}
