/* Moves of graph cuts over a picture of labels with Potts smoothness: swap and expansion.
 *
 * A picture is stored with a margin: a row above, a row below, and a column on the right, which is the left one of the
 * next row. There labels are -1 and links weigh nothing. Arrays with margin have (height + 2) * (width + 1) + 1 nodes.
 * Between moves no node is in a tree and no arc has capacity: a move costs what its own pixels cost.
 */
#include "kernels.h"
#include "rounding.h"

typedef int32_t Capacity;

typedef struct {
    Capacity *residual; /* of four arcs for each node: right, left, down, up */
    int32_t step[4];    /* to the node where each leads */
} Graph;

#define FIRST(g, v) (4 * (v))
#define LAST(g, v) (4 * (v) + 4)
#define HEAD(g, a) (((a) >> 2) + (g)->step[(a)&3])
#define SISTER(g, a) (4 * HEAD(g, a) + (((a)&3) ^ 1))
#define RESIDUAL(g, a) ((g)->residual[a])
#include "search_trees.h"

enum { RIGHT, LEFT, DOWN, UP };

/* Two labels trade pixels (x = 1: the second one), or, if the second is NONE, the first takes pixels of all others. */
typedef struct {
    int32_t a, b;
} Move;

typedef struct {
    int64_t n;
    int32_t stride;
    const float *costs;       /* (labels, nodes) */
    const double *weights[2]; /* of the link of each node to the right and down */
    double scale;             /* steps a unit of cost */
    int16_t *labels;
    Move move;
} Grid;

static inline int joins(const Grid *grid, int32_t v) {
    const int32_t label = grid->labels[v];
    if (grid->move.b == NONE) return label >= 0 && label != grid->move.a;
    return label == grid->move.a || label == grid->move.b;
}

static inline int chooses_now(const Grid *grid, int32_t v) { return grid->labels[v] == grid->move.b; }

/* What a link of two nodes costs if neither chooses: it stays cut by an expansion of another label. */
static inline double cut_now(const Grid *grid, int32_t v, int32_t u, double weight) {
    return grid->move.b == NONE && grid->labels[v] != grid->labels[u] ? weight : 0;
}

/* What a node's choice costs by itself. */
static inline double slope_of(const Grid *grid, int32_t v) {
    const int32_t a = grid->move.a, b = grid->move.b;
    if (b != NONE) return grid->costs[b * grid->n + v] - grid->costs[a * grid->n + v];
    double slope = (double)grid->costs[a * grid->n + v] - grid->costs[grid->labels[v] * grid->n + v];
    for (int axis = 0; axis < 2; axis++) {
        const int32_t step = axis ? grid->stride : 1;
        if (grid->labels[v + step] == a) slope -= grid->weights[axis][v];
        if (grid->labels[v - step] == a) slope -= grid->weights[axis][v - step];
    }
    return slope;
}

/* Find the nodes of a move; return their number. */
static int64_t gather(const Grid *grid, int32_t *chosen) {
    int64_t count = 0;
    for (int32_t v = 0; v < grid->n; v++) {
        chosen[count] = v;
        count += joins(grid, v);
    }
    return count;
}

/* Set the capacities of a node: its own, and those of its links to the right and down.
 *
 * A cut costs the weight where one of two nodes chooses. What is cut now is no loss if both do: that is a gain of the
 * second, and the arc back has so much less.
 */
static inline void connect(const Grid *grid, Search *search, int32_t v) {
    const Graph *g = search->graph;
    double slope = slope_of(grid, v);
    for (int axis = 0; axis < 2; axis++) {
        const int32_t step = axis ? grid->stride : 1, there = v + step, before = v - step;
        if (joins(grid, before)) slope -= cut_now(grid, before, v, grid->weights[axis][before]);
        if (!joins(grid, there)) continue;
        const double weight = grid->weights[axis][v], both = weight - cut_now(grid, v, there, weight);
        g->residual[4 * v + (axis ? DOWN : RIGHT)] = round_to_int(weight * grid->scale);
        g->residual[4 * there + (axis ? UP : LEFT)] = round_to_int(both * grid->scale);
    }
    make_root(search, v, round_to_int(slope * grid->scale));
}

/* What the energy falls by. */
static double gain_of(const Grid *grid, const Search *search, const int32_t *chosen, int64_t count) {
    double gain = 0;
    for (int64_t k = 0; k < count; k++) {
        const int32_t v = chosen[k];
        const int now = chooses_now(grid, v), then = search->nodes[v].depth < 0;
        if (now != then) gain += (now - then) * slope_of(grid, v);
        for (int axis = 0; axis < 2; axis++) {
            const int32_t there = v + (axis ? grid->stride : 1);
            if (!joins(grid, there)) continue;
            const int also_now = chooses_now(grid, there), also_then = search->nodes[there].depth < 0;
            const double weight = grid->weights[axis][v], cut = cut_now(grid, v, there, weight);
            gain += now != also_now ? weight : now ? 0 : cut;
            gain -= then != also_then ? weight : then ? 0 : cut;
        }
    }
    return gain;
}

static int64_t relabel_chosen(const Grid *grid, const Search *search, const int32_t *chosen, int64_t count) {
    int64_t changed = 0;
    for (int64_t k = 0; k < count; k++) {
        const int32_t v = chosen[k];
        if ((search->nodes[v].depth < 0) == chooses_now(grid, v)) continue;
        grid->labels[v] = (int16_t)(grid->move.b == NONE || chooses_now(grid, v) ? grid->move.a : grid->move.b);
        changed++;
    }
    return changed;
}

static inline int64_t make_move(const Grid *grid, int32_t *residual, void *nodes, int32_t *chosen,
                                double least_gain) {
    const Graph graph = {residual, {1, -1, grid->stride, -grid->stride}};
    Search search = new_search(&graph, nodes);
    const int64_t count = gather(grid, chosen);
    for (int64_t k = 0; k < count; k++) connect(grid, &search, chosen[k]);
    find_flow(&search);
    const double gain = gain_of(grid, &search, chosen, count);
    const int64_t changed = gain > least_gain ? relabel_chosen(grid, &search, chosen, count) : 0;
    for (int64_t k = 0; k < count; k++) {
        search.nodes[chosen[k]].depth = 0;
        for (int way = 0; way < 4; way++) residual[4 * chosen[k] + way] = 0;
    }
    return changed;
}

/* Let the pixels of labels a and b choose anew between them; or, with b = -1, all pixels between their label and a.
 *
 * Changes labels where the energy falls by more than least_gain; returns their number. Workspace, zero at first:
 * residual (nodes, 4), nodes (nodes, 6), chosen (nodes + 1).
 */
KERNEL int64_t grid_move(int64_t n, int64_t stride, const float *costs, const double *right, const double *down,
                         double scale, int64_t a, int64_t b, double least_gain, int16_t *labels, int32_t *residual,
                         void *nodes, int32_t *chosen) {
    Grid grid = {n, (int32_t)stride, costs, {right, down}, scale, labels, {(int32_t)a, NONE}};
    if (b < 0) return make_move(&grid, residual, nodes, chosen, least_gain);
    grid.move.b = (int32_t)b;
    return make_move(&grid, residual, nodes, chosen, least_gain);
}
