/* Semi-global matching (Hirschmüller 2008): the cheapest paths to each pixel from eight sides, summed, and their least.
 *
 * Volumes are (height, width, stride): the loops over disparities are contiguous. Paths are 16-bit integers: a cost
 * and a penalty are together at most 8191, so the sum of eight paths has 16 bits too.
 */
#include "kernels.h"

enum { BESIDE = 24000 }; /* Path cost of labels outside the range: no path comes from there. */

typedef struct {
    int64_t height, width, n_channels, n, stride;
    uint8_t jump; /* Of colours: an edge. */
    const int16_t *penalties; /* (2, 3): of a step and of a jump, by the number of views that have an edge. */
} Shape;

/* What was found in the row before, of one direction: paths (width + 2, stride + 2) and the least of each pixel. */
typedef struct {
    int16_t *paths, *least;
} Row;

/* A direction in one row: the edges of the left view, the penalties by those of the right one, and the paths. */
typedef struct {
    int64_t dx; /* The paths come from this number of pixels before, in the row of from. */
    const uint8_t *edges;
    const int16_t *penalties;
    Row from, to;
} Direction;

/* A direction at one pixel. Both path arrays have a label outside at each end. */
typedef struct {
    const int16_t *before, *step, *jump;
    int16_t base; /* The least of the paths before. */
    int16_t *paths, *least;
} Path;

/* What the sums of a pixel are taken with, each of stride numbers. */
typedef struct {
    uint16_t *half, *whole; /* Of what is summed with the first two directions, and with all. */
    uint16_t *none, *beyond, *label; /* Zeros; ones behind n, in all bits; the labels. */
} Sums;

enum { DIRECTIONS = 4 }; /* Three from the row before and one along the row. */

static inline int16_t lower(int16_t a, int16_t b) { return a < b ? a : b; }

/* Extend the path of one label. */
static inline int16_t extended(const int16_t *before, int16_t step, int16_t jump, int16_t base, int16_t cost) {
    const int16_t moved = lower((int16_t)(lower(before[0], before[2]) + step), (int16_t)(base + jump));
    return (int16_t)(lower(before[1], moved) - base + cost);
}

/* Extend the paths of two directions by one pixel, at all labels, and add them to the sums of others. */
static void extend_two(int64_t n_blocks, const int16_t *restrict costs, int16_t base_1, int16_t base_2,
                       const int16_t *restrict before_1, const int16_t *restrict before_2,
                       const int16_t *restrict step_1, const int16_t *restrict step_2, const int16_t *restrict jump_1,
                       const int16_t *restrict jump_2, int16_t *restrict paths_1, int16_t *restrict paths_2,
                       const uint16_t *restrict summed, uint16_t *restrict sums, int16_t *found_1, int16_t *found_2) {
    int16_t least_1 = INT16_MAX, least_2 = INT16_MAX;
    for (int64_t d = 0; d < BLOCK * n_blocks; d++) {
        const int16_t path_1 = extended(before_1 + d, step_1[d], jump_1[d], base_1, costs[d]);
        const int16_t path_2 = extended(before_2 + d, step_2[d], jump_2[d], base_2, costs[d]);
        paths_1[d + 1] = path_1;
        paths_2[d + 1] = path_2;
        sums[d] = (uint16_t)(summed[d] + (uint16_t)(path_1 + path_2));
        least_1 = lower(least_1, path_1);
        least_2 = lower(least_2, path_2);
    }
    *found_1 = least_1;
    *found_2 = least_2;
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

/* Choose the penalties of a row, (left edge, step and jump, width), by the edges of the other view. */
static void fill_penalties(const Shape *shape, const uint8_t *edges, int16_t *penalties) {
    const int64_t wide = shape->width + shape->stride - 1;
    for (int64_t left = 0; left < 2; left++) {
        for (int64_t kind = 0; kind < 2; kind++) {
            const int16_t none = shape->penalties[3 * kind + left], one = shape->penalties[3 * kind + left + 1];
            int16_t *row = penalties + (2 * left + kind) * wide;
            for (int64_t x = 0; x < wide; x++) row[x] = edges[x] ? one : none;
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
static inline float winner(const Shape *shape, const Sums *sums, const uint16_t *total) {
    const int64_t n_blocks = shape->stride / BLOCK;
    uint16_t lowest = UINT16_MAX, best = UINT16_MAX;
    for (int64_t d = 0; d < BLOCK * n_blocks; d++) {
        const uint16_t here = total[d] | sums->beyond[d];
        lowest = here < lowest ? here : lowest;
    }
    for (int64_t d = 0; d < BLOCK * n_blocks; d++) {
        const uint16_t here = (uint16_t)(sums->label[d] | (uint16_t) - (total[d] != lowest));
        best = here < best ? here : best;
    }
    return refined(shape->n, best, total);
}

/* Prepare all directions in row y; rows: two of each direction from the row before, and one along the row. */
static void prepare_all(const Shape *shape, const uint8_t *left, const uint8_t *right, int64_t y, int64_t order,
                        const Row *rows, uint8_t *edges, int16_t *penalties, Direction *ways) {
    const int64_t wide = shape->width + shape->stride - 1, last = order > 0 ? 0 : shape->height - 1;
    const int64_t left_row = shape->n_channels * shape->width, right_row = shape->n_channels * wide;
    for (int64_t way = 0; way < DIRECTIONS; way++) {
        const int along = way == DIRECTIONS - 1;
        const int64_t dx = along ? order : way - 1, before = along || y == last ? y : y - order;
        Direction here = {dx, edges + way * wide, penalties + 4 * way * wide, rows[2 * way], rows[2 * way]};
        if (!along) {
            here.from = rows[2 * way + (y & 1)];
            here.to = rows[2 * way + !(y & 1)];
        }
        prepare(shape, left + y * left_row, left + before * left_row, right + y * right_row,
                right + before * right_row, dx, edges + way * wide, penalties + 4 * way * wide);
        ways[way] = here;
    }
}

static inline Path path_at(const Shape *shape, const Direction *way, int64_t x) {
    const int64_t width = shape->width, stride = shape->stride, wide = width + stride - 1, before = x + 1 - way->dx;
    const int16_t *step = way->penalties + 2 * way->edges[x] * wide + width - 1 - x;
    return (Path){way->from.paths + before * (stride + 2), step, step + wide, way->from.least[before],
                  way->to.paths + (x + 1) * (stride + 2), way->to.least + x + 1};
}

/* Extend the paths of two directions to pixel x. */
static inline void extend_pair(const Shape *shape, const Direction *ways, int64_t x, const int16_t *costs,
                               const uint16_t *summed, uint16_t *sums) {
    const Path one = path_at(shape, ways, x), other = path_at(shape, ways + 1, x);
    extend_two(shape->stride / BLOCK, costs, one.base, other.base, one.before, other.before, one.step, other.step,
               one.jump, other.jump, one.paths, other.paths, summed, sums, one.least, other.least);
}

/* Extend all paths to the pixels of a row, and find the disparities if all eight directions are summed. */
static void sweep_row(const Shape *shape, const Direction *ways, const Sums *sums, int64_t order,
                      const int16_t *costs, uint16_t *total, float *disparity) {
    const int64_t width = shape->width, stride = shape->stride;
    for (int64_t k = 0; k < width; k++) {
        const int64_t x = order > 0 ? k : width - 1 - k;
        uint16_t *here = total + x * stride;
        extend_pair(shape, ways, x, costs + x * stride, disparity ? here : sums->none, sums->half);
        extend_pair(shape, ways + 2, x, costs + x * stride, sums->half, disparity ? sums->whole : here);
        if (disparity) disparity[x] = winner(shape, sums, sums->whole);
    }
}

/* Divide the room for sums. */
static Sums sums_in(int64_t n, int64_t stride, uint16_t *room) {
    const Sums sums = {room, room + stride, room + 2 * stride, room + 3 * stride, room + 4 * stride};
    for (int64_t d = 0; d < stride; d++) {
        sums.none[d] = 0;
        sums.beyond[d] = d < n ? 0 : UINT16_MAX;
        sums.label[d] = (uint16_t)d;
    }
    return sums;
}

/* Extend the paths to some rows, of order 1 down, of order -1 up. Both orders come to each row. The first to come
 * writes its sums; the second one finds the disparities of least summed path costs, with a parabola's fraction. The
 * rows of an order come one band after another, with the same room: two threads can work on a picture, one from each
 * end, which both wait at the middle.
 *
 * left: (height, channels, width); right: (height, channels, width + stride - 1), reversed, its first column repeated.
 * costs: (height, width, stride), of which n are labels; total: the same, receives the sums of the order that comes
 * first. room: for paths, 7 * (width + 2) * (stride + 3) numbers; edges: 4 * (width + stride); by_label: 16 * (width + stride);
 * sums: 5 * stride.
 */
KERNEL void stereo_semi_global(int64_t begin, int64_t end, int64_t order, int64_t is_second, int64_t height,
                               int64_t width, int64_t n_channels, int64_t n, int64_t stride, int64_t jump,
                               const int16_t *penalties, const uint8_t *left, const uint8_t *right,
                               const int16_t *costs, int16_t *room, uint8_t *edges, int16_t *by_label, uint16_t *sums,
                               uint16_t *total, float *disparity) {
    const Shape shape = {height, width, n_channels, n, stride, (uint8_t)jump, penalties};
    const Sums sum = sums_in(n, stride, sums);
    Row rows[2 * DIRECTIONS - 1];
    Direction ways[DIRECTIONS];
    for (int64_t k = 0; k < 2 * DIRECTIONS - 1; k++) {
        rows[k].paths = room + k * (width + 2) * (stride + 3);
        rows[k].least = rows[k].paths + (width + 2) * (stride + 2);
        if (order > 0 ? begin == 0 : end == height) begin_row(width, stride, rows[k]);
    }
    for (int64_t k = begin; k < end; k++) {
        const int64_t y = order > 0 ? k : begin + end - 1 - k, at = y * width * stride;
        prepare_all(&shape, left, right, y, order, rows, edges, by_label, ways);
        sweep_row(&shape, ways, &sum, order, costs + at, total + at,
                  is_second ? disparity + y * width : 0);
    }
}
