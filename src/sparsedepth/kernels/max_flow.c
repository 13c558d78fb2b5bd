/* Maximum flow in any graph, and roof duality over it. */
#include "kernels.h"
#include "rounding.h"

typedef int32_t Capacity;

typedef struct {
    int32_t head, sister;
    Capacity residual;
} Arc;

typedef struct {
    int32_t *start; /* of each node: its first arc; and the number of arcs */
    Arc *arcs;
} Graph;

#define FIRST(g, v) ((g)->start[v])
#define LAST(g, v) ((g)->start[(v) + 1])
#define HEAD(g, a) ((g)->arcs[a].head)
#define SISTER(g, a) ((g)->arcs[a].sister)
#define RESIDUAL(g, a) ((g)->arcs[a].residual)
#include "search_trees.h"

/* Edges are counted, room is made for them, then they are added in the same order; `start` has room for n + 2. */
static void count_none(const Graph *g, int64_t n) {
    for (int64_t v = 0; v < n + 2; v++) g->start[v] = 0;
}

static inline void count_edge(const Graph *g, int32_t tail, int32_t head) {
    g->start[tail + 2]++;
    g->start[head + 2]++;
}

static void make_room(const Graph *g, int64_t n) {
    for (int64_t v = 2; v < n + 2; v++) g->start[v] += g->start[v - 1];
}

static inline int32_t add_edge(const Graph *g, int32_t tail, int32_t head, Capacity forward, Capacity backward) {
    const int32_t there = g->start[tail + 1]++, back = g->start[head + 1]++;
    g->arcs[there] = (Arc){head, back, forward};
    g->arcs[back] = (Arc){tail, there, backward};
    return there;
}

/* Find the smallest sink's side of a minimum cut; return its capacity, which is the maximum flow.
 *
 * excess: what a node costs on the sink's side, or, negative, on the source's side. An edge costs `forward` where its
 * tail is on the source's side and its head on the sink's. All below 2^30, forward and backward together, too.
 * Workspace: start (n + 2), arcs (2 * m, 3), nodes (n, 6).
 */
KERNEL int64_t max_flow(int64_t n, int64_t m, const int32_t *excess, const int32_t *tail, const int32_t *head,
                        const int32_t *forward, const int32_t *backward, int32_t *start, void *arcs, void *nodes,
                        uint8_t *sink_side) {
    const Graph graph = {start, arcs};
    count_none(&graph, n);
    for (int64_t e = 0; e < m; e++)
        if (tail[e] != head[e]) count_edge(&graph, tail[e], head[e]);
    make_room(&graph, n);
    for (int64_t e = 0; e < m; e++)
        if (tail[e] != head[e]) add_edge(&graph, tail[e], head[e], forward[e], backward[e]);
    Search search = new_search(&graph, nodes);
    for (int32_t v = 0; v < n; v++) make_root(&search, v, excess[v]);
    find_flow(&search);
    for (int32_t v = 0; v < n; v++) sink_side[v] = search.nodes[v].depth < 0;
    return search.flow;
}

/* A sum of slope[i] x_i and of coupling[e] x_first x_second; variables with a label 0 or 1 are held, -1 is free. */
typedef struct {
    int64_t n, m;
    const double *slope, *coupling;
    const int32_t *first, *second;
    const int8_t *labels;
    double scale;
} Polynomial;

static inline int is_free(const Polynomial *p, int64_t e) {
    return p->labels[p->first[e]] < 0 && p->labels[p->second[e]] < 0;
}

/* Add up what a 1 costs in each free variable; q x y for q < 0 is q y, plus |q| where x = 0 and y = 1. Return the most. */
static double sum_slopes(const Polynomial *p, double *slope) {
    for (int64_t v = 0; v < p->n; v++) slope[v] = p->slope[v];
    for (int64_t e = 0; e < p->m; e++) {
        const int32_t i = p->first[e], j = p->second[e];
        if (is_free(p, e))
            slope[j] += p->coupling[e] < 0 ? p->coupling[e] : 0;
        else if (p->labels[i] > 0)
            slope[j] += p->coupling[e];
        else if (p->labels[j] > 0)
            slope[i] += p->coupling[e];
    }
    double largest = 0;
    for (int64_t v = 0; v < p->n; v++)
        if (p->labels[v] < 0 && __builtin_fabs(slope[v]) > largest) largest = __builtin_fabs(slope[v]);
    return largest;
}

/* Choose the steps a unit: as many as wanted, or so many that no capacity reaches 2^30. */
static double bounded_scale(const Polynomial *p, double largest) {
    const double most = 1 << 29;
    for (int64_t e = 0; e < p->m; e++)
        if (is_free(p, e) && __builtin_fabs(p->coupling[e]) > largest) largest = __builtin_fabs(p->coupling[e]);
    return largest * p->scale > most ? most / largest : p->scale;
}

/* Find the flow among the variables themselves, through the pairs that prefer to agree; note the arc of each. */
static int64_t flow_of_agreement(const Polynomial *p, Search *search, const double *slope, int32_t *arc) {
    const Graph *g = search->graph;
    count_none(g, p->n);
    for (int64_t e = 0; e < p->m; e++)
        if (p->coupling[e] < 0 && is_free(p, e)) count_edge(g, p->first[e], p->second[e]);
    make_room(g, p->n);
    for (int64_t e = 0; e < p->m; e++)
        if (p->coupling[e] < 0 && is_free(p, e))
            arc[e] = add_edge(g, p->first[e], p->second[e], round_to_int(-p->coupling[e] * p->scale), 0);
    for (int32_t v = 0; v < p->n; v++) make_root(search, v, p->labels[v] < 0 ? round_to_int(slope[v] * p->scale) : 0);
    find_flow(search);
    return search->flow;
}

/* Count or add the edges of variables and their twins, which stand for 1 - x: what is left of i -> j and of j' -> i' if
 * agreeing pays, else j' -> i and i' -> j. */
static void add_twins(const Polynomial *p, const Graph *half, const int32_t *arc, const Graph *g, int counting) {
    for (int64_t e = 0; e < p->m; e++) {
        if (p->coupling[e] == 0 || !is_free(p, e)) continue;
        const int32_t i = 2 * p->first[e], j = 2 * p->second[e], agree = p->coupling[e] < 0;
        const int32_t tails[2] = {agree ? i : j + 1, agree ? j + 1 : i + 1}, heads[2] = {agree ? j : i, agree ? i + 1 : j};
        Capacity there = 0, back = 0;
        if (!counting) {
            there = agree ? RESIDUAL(half, arc[e]) : round_to_int(p->coupling[e] * p->scale);
            back = agree ? RESIDUAL(half, SISTER(half, arc[e])) : 0;
        }
        for (int k = 0; k < 2; k++) {
            if (counting)
                count_edge(g, tails[k], heads[k]);
            else
                add_edge(g, tails[k], heads[k], there, back);
        }
    }
}

/* Find the labels that every minimiser of a polynomial has (roof duality, QPBO); -1 stays elsewhere.
 *
 * First the flow among the variables alone; then, with its mirror image, it is the start of that of variables and twins.
 * scale: steps a unit, fewer where capacities would be too large. Workspace: scratch (n), arc (m), start (3 * n + 4), arcs (6 * m, 3) and nodes
 * (3 * n, 6). Returns the flow, of variables and twins.
 */
KERNEL int64_t roof_duality(int64_t n, int64_t m, const double *slope, const int32_t *first, const int32_t *second,
                            const double *coupling, double scale, double *scratch, int32_t *arc, int32_t *start,
                            void *arcs, void *nodes, int8_t *labels) {
    Polynomial p = {n, m, slope, coupling, first, second, labels, scale};
    const Graph half = {start, arcs}, whole = {start + n + 2, (Arc *)arcs + 2 * m};
    Search before = new_search(&half, nodes);
    p.scale = bounded_scale(&p, sum_slopes(&p, scratch));
    const int64_t flow = flow_of_agreement(&p, &before, scratch, arc);
    count_none(&whole, 2 * n);
    add_twins(&p, &half, arc, &whole, 1);
    make_room(&whole, 2 * n);
    add_twins(&p, &half, arc, &whole, 0);
    Search search = new_search(&whole, before.nodes + n);
    for (int32_t v = 0; v < n; v++) {
        make_root(&search, 2 * v, before.nodes[v].excess);
        make_root(&search, 2 * v + 1, -before.nodes[v].excess);
    }
    find_flow(&search);
    for (int32_t v = 0; v < n; v++) {
        const int one = search.nodes[2 * v].depth < 0, other = search.nodes[2 * v + 1].depth < 0;
        if (labels[v] < 0 && one != other) labels[v] = (int8_t)one;
    }
    return 2 * flow + search.flow;
}
