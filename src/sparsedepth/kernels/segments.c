/* Segmentation of a picture by minimum spanning trees (Felzenszwalb & Huttenlocher, IJCV 2004). */
#include "kernels.h"

typedef union {
    float number;
    uint32_t bits;
} Float;

/* An edge: the bits of its cost, which are in the order of costs, above its number, 4 * pixel + way. */
typedef uint64_t Edge;

static inline Edge edge_of(const float *picture, int64_t channels, int64_t p, int64_t q, int way) {
    float sum = 0;
    for (int64_t c = 0; c < channels; c++) {
        const float step = picture[p * channels + c] - picture[q * channels + c];
        sum += step * step;
    }
    const Float cost = {__builtin_sqrtf(sum)};
    return (Edge)cost.bits << 32 | (Edge)(4 * p + way);
}

static inline float cost_of(Edge edge) { return ((Float){.bits = (uint32_t)(edge >> 32)}).number; }

/* List the edges between neighbours: to the right, down, and both diagonals down; return their number. */
static int64_t list_edges(int64_t height, int64_t width, int64_t channels, const float *picture, Edge *edges) {
    int64_t count = 0;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const int64_t p = row * width + column;
            const int right = column + 1 < width, down = row + 1 < height;
            if (right) edges[count++] = edge_of(picture, channels, p, p + 1, 0);
            if (down) edges[count++] = edge_of(picture, channels, p, p + width, 1);
            if (down && right) edges[count++] = edge_of(picture, channels, p, p + width + 1, 2);
            if (down && column > 0) edges[count++] = edge_of(picture, channels, p, p + width - 1, 3);
        }
    return count;
}

/* Sort by cost, equal ones as they are listed: two passes by 16 bits each. */
static void sort_edges(int64_t count, Edge *edges, Edge *other, int64_t *place) {
    for (int pass = 0; pass < 2; pass++) {
        const int shift = 32 + 16 * pass;
        for (int64_t k = 0; k < 65537; k++) place[k] = 0;
        for (int64_t k = 0; k < count; k++) place[(edges[k] >> shift & 65535) + 1]++;
        for (int64_t k = 1; k < 65537; k++) place[k] += place[k - 1];
        for (int64_t k = 0; k < count; k++) other[place[edges[k] >> shift & 65535]++] = edges[k];
        Edge *sorted = other;
        other = edges;
        edges = sorted;
    }
}

/* Segments as trees of pixels: each leads to one of a lower number, the first leads to itself. */
typedef struct {
    int32_t *parent, *size;
    float *within; /* largest cost within the segment of a root */
} Forest;

static inline int32_t root_of(const Forest *forest, int32_t p) {
    while (forest->parent[p] != p) {
        forest->parent[p] = forest->parent[forest->parent[p]];
        p = forest->parent[p];
    }
    return p;
}

static inline void join(const Forest *forest, int32_t one, int32_t other, float cost) {
    const int32_t first = one < other ? one : other, second = one < other ? other : one;
    forest->parent[second] = first;
    forest->size[first] += forest->size[second];
    forest->within[first] = cost;
}

static inline int is_alike(const Forest *forest, int32_t root, float cost, float scale) {
    return cost < forest->within[root] + scale / (float)forest->size[root];
}

/* Segment a picture (height, width, channels).
 *
 * Two segments are joined if the cheapest edge between them costs less than the dearest within each, plus scale over
 * its size; then those of fewer than min_size pixels are. Returns the number of segments; labels: receives 0, 1, ... in
 * the order of their first pixels. Workspace: edges (8 * height * width), place (65537), size and within (height *
 * width).
 */
KERNEL int64_t segments_of(int64_t height, int64_t width, int64_t channels, const float *picture, float scale,
                           int64_t min_size, uint64_t *edges, int64_t *place, int32_t *size, float *within,
                           int32_t *labels) {
    const int64_t n = height * width, steps[4] = {1, width, width + 1, width - 1};
    const Forest forest = {labels, size, within};
    const int64_t count = list_edges(height, width, channels, picture, edges);
    sort_edges(count, edges, edges + 4 * n, place);
    for (int32_t p = 0; p < n; p++) {
        labels[p] = p;
        size[p] = 1;
        within[p] = 0;
    }
    for (int small = 0; small < 2; small++)
        for (int64_t k = 0; k < count; k++) {
            const uint32_t number = (uint32_t)edges[k];
            const int32_t p = (int32_t)(number / 4), q = (int32_t)(p + steps[number % 4]);
            const int32_t one = root_of(&forest, p), other = root_of(&forest, q);
            const float cost = cost_of(edges[k]);
            if (one == other) continue;
            if (small ? size[one] < min_size || size[other] < min_size
                      : is_alike(&forest, one, cost, scale) && is_alike(&forest, other, cost, scale))
                join(&forest, one, other, cost);
        }
    int64_t found = 0;
    for (int32_t p = 0; p < n; p++) size[p] = labels[p] == p ? (int32_t)found++ : size[labels[p]];
    for (int64_t p = 0; p < n; p++) labels[p] = size[p];
    return found;
}
