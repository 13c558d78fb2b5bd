/* Maximum flow by incremental breadth-first search (Goldberg, Hed, Kaplan, Tarjan, Werneck; ESA 2011).
 *
 * Two trees grow in turn, level by level: one of nodes that the source reaches, one of nodes that reach the sink. Where
 * they meet, flow is pushed along the path. Nodes cut off by a saturated arc are orphans: each takes a parent on the
 * level above it, or moves to the lowest level that has one, or becomes free. Depths never fall, so the time is bounded
 * by O(n^2 m) whatever the capacities.
 *
 * A file that includes this one defines a kind of graph before:
 *   Capacity              a signed integer type
 *   Graph                 a struct
 *   FIRST(g, v), LAST(g, v)   the arcs of a node are numbered from the first to before the last
 *   HEAD(g, a), SISTER(g, a)  where an arc leads, and the arc that leads back
 *   RESIDUAL(g, a)        its residual capacity, an lvalue
 */

/* At most 32 bytes: the caller's array has four 64-bit integers for each node. */
typedef struct {
    Capacity excess;    /* residual capacity from the source, or, if negative, to the sink */
    int32_t parent;     /* arc to the parent in the tree; TERMINAL, NONE */
    int32_t depth;      /* positive: in the source's tree; negative: in the sink's; 0: free */
    int32_t current;    /* no arc before it leads to a parent on the level above */
    int32_t follows[2]; /* in the list of nodes to grow, of either tree: the next node, END or UNLISTED */
    int32_t follower;   /* next orphan of its depth */
} Node;

enum { NONE = -1, TERMINAL = -2, END = -1, UNLISTED = -2 };

typedef struct {
    int32_t first, last;
} List;

typedef struct {
    const Graph *graph;
    Node *nodes;
    int32_t *orphans[2]; /* of either tree: the first orphan of each depth */
    List now, next[2];   /* nodes to grow in this pass, and in the next one of either tree */
    int32_t limit[2];    /* largest depth of either tree */
    int32_t nearest[2], farthest[2]; /* depths between which there are orphans */
    int32_t growing;
    int64_t flow;
} Search;

static inline int32_t depth_in(const Node *node, int side) { return side ? -node->depth : node->depth; }

static inline void enlist(Node *nodes, List *list, int side, int32_t v) {
    if (nodes[v].follows[side] != UNLISTED) return;
    nodes[v].follows[side] = END;
    if (list->last == END)
        list->first = v;
    else
        nodes[list->last].follows[side] = v;
    list->last = v;
}

static inline int32_t unlist(Node *nodes, List *list, int side) {
    const int32_t v = list->first;
    list->first = nodes[v].follows[side];
    if (list->first == END) list->last = END;
    nodes[v].follows[side] = UNLISTED;
    return v;
}

/* List a node that has just got its depth, if it is yet to be grown. */
static inline void enlist_if_last(Search *s, int side, int32_t v, int32_t depth) {
    if (depth == s->limit[side])
        enlist(s->nodes, &s->next[side], side, v);
    else if (side == s->growing && depth == s->limit[side] - 1)
        enlist(s->nodes, &s->now, side, v);
}

static inline void orphan(Search *s, int side, int32_t v) {
    Node *node = s->nodes + v;
    const int32_t depth = depth_in(node, side);
    node->parent = NONE;
    node->follower = s->orphans[side][depth];
    s->orphans[side][depth] = v;
    if (depth < s->nearest[side]) s->nearest[side] = depth;
    if (depth > s->farthest[side]) s->farthest[side] = depth;
}

/* Residual capacity in the direction of flow between a node and the end of one of its arcs, towards the root. */
static inline Capacity from_parent(const Graph *g, int side, int32_t arc) {
    return side ? RESIDUAL(g, arc) : RESIDUAL(g, SISTER(g, arc));
}

/* Move an orphan to the lowest level on which it has a parent, or let it go; its children are orphans, too. */
static inline void relabel(Search *s, int side, int32_t v) {
    const Graph *g = s->graph;
    Node *node = s->nodes + v;
    int32_t best = s->limit[side], arc = NONE;
    for (int32_t a = FIRST(g, v); a < LAST(g, v); a++) {
        const int32_t u = HEAD(g, a), depth = depth_in(s->nodes + u, side);
        if (depth <= 0) continue;
        if (s->nodes[u].parent == SISTER(g, a)) orphan(s, side, u);
        if (depth < best && from_parent(g, side, a) > 0) {
            best = depth;
            arc = a;
        }
    }
    node->parent = node->current = arc;
    node->depth = 0;
    if (arc == NONE) return;
    node->depth = side ? -best - 1 : best + 1;
    enlist_if_last(s, side, v, best + 1);
}

static inline void adopt(Search *s, int side, int32_t v, int32_t depth) {
    const Graph *g = s->graph;
    Node *node = s->nodes + v;
    if (depth > 1)
        for (int32_t a = node->current; a < LAST(g, v); a++)
            if (depth_in(s->nodes + HEAD(g, a), side) == depth - 1 && from_parent(g, side, a) > 0) {
                node->parent = node->current = a;
                return;
            }
    relabel(s, side, v);
}

static inline void adopt_all(Search *s, int side) {
    for (int32_t depth = s->nearest[side]; depth <= s->farthest[side]; depth++)
        while (s->orphans[side][depth] != END) {
            const int32_t v = s->orphans[side][depth];
            s->orphans[side][depth] = s->nodes[v].follower;
            adopt(s, side, v, depth);
        }
    s->nearest[side] = INT32_MAX;
    s->farthest[side] = 0;
}

/* Lower a bound to the residual capacities between a node and the root of its tree; */
static inline void bound_by_path(const Search *s, int side, int32_t v, Capacity *bound) {
    const Graph *g = s->graph;
    for (int32_t arc; (arc = s->nodes[v].parent) != TERMINAL; v = HEAD(g, arc)) {
        const Capacity residual = from_parent(g, side, arc);
        if (residual < *bound) *bound = residual;
    }
    const Capacity excess = side ? -s->nodes[v].excess : s->nodes[v].excess;
    if (excess < *bound) *bound = excess;
}

static inline void push_along_path(Search *s, int side, int32_t v, Capacity amount) {
    const Graph *g = s->graph;
    for (int32_t arc; (arc = s->nodes[v].parent) != TERMINAL; v = HEAD(g, arc)) {
        const int32_t sister = SISTER(g, arc), with = side ? arc : sister, against = side ? sister : arc;
        RESIDUAL(g, against) += amount;
        RESIDUAL(g, with) -= amount;
        if (RESIDUAL(g, with) == 0) orphan(s, side, v);
    }
    s->nodes[v].excess += side ? amount : -amount;
    if (s->nodes[v].excess == 0) orphan(s, side, v);
}

/* Push what fits through an arc from the source's tree to the sink's. */
static void augment(Search *s, int32_t arc) {
    const Graph *g = s->graph;
    const int32_t sister = SISTER(g, arc), tail = HEAD(g, sister), head = HEAD(g, arc);
    Capacity amount = RESIDUAL(g, arc);
    bound_by_path(s, 0, tail, &amount);
    bound_by_path(s, 1, head, &amount);
    RESIDUAL(g, arc) -= amount;
    RESIDUAL(g, sister) += amount;
    s->flow += amount;
    push_along_path(s, 0, tail, amount);
    push_along_path(s, 1, head, amount);
    adopt_all(s, 0);
    adopt_all(s, 1);
}

/* Add the free neighbours of a node to its tree, and push flow wherever it meets the other one. */
static inline void grow(Search *s, int side, int32_t v) {
    const Graph *g = s->graph;
    const int32_t depth = s->limit[side] - 1;
    for (int32_t a = FIRST(g, v); a < LAST(g, v); a++) {
        const int32_t w = HEAD(g, a), sister = SISTER(g, a), with = side ? sister : a;
        Node *node = s->nodes + w;
        while (RESIDUAL(g, with) > 0 && depth_in(node, side) < 0) {
            augment(s, with);
            if (depth_in(s->nodes + v, side) != depth) return;
        }
        if (node->depth == 0 && RESIDUAL(g, with) > 0) {
            node->depth = side ? -depth - 1 : depth + 1;
            node->parent = sister;
            node->current = FIRST(g, w);
            enlist(s->nodes, &s->next[side], side, w);
        }
    }
}

/* Let one tree grow by a level. */
static inline void grow_level(Search *s, int side) {
    s->now = s->next[side];
    s->next[side] = (List){END, END};
    s->growing = side;
    s->limit[side]++;
    s->orphans[side][s->limit[side]] = END;
    while (s->now.first != END) {
        const int32_t v = unlist(s->nodes, &s->now, side);
        const int32_t depth = depth_in(s->nodes + v, side);
        if (depth == s->limit[side] - 1)
            grow(s, side, v);
        else if (depth == s->limit[side])
            enlist(s->nodes, &s->next[side], side, v);
    }
}

/* Set the capacity between a node and the source or the sink, which makes it the root of a tree. */
static inline void make_root(Search *s, int32_t v, Capacity excess) {
    Node *node = s->nodes + v;
    node->excess = excess;
    node->follows[0] = node->follows[1] = UNLISTED;
    node->depth = (excess > 0) - (excess < 0);
    node->parent = node->depth ? TERMINAL : NONE;
    node->current = FIRST(s->graph, v);
    if (node->depth) enlist(s->nodes, &s->next[node->depth < 0], node->depth < 0, v);
}

/* Prepare a search; afterwards `make_root` every node. `orphans` has room for twice the number of nodes and four. */
static inline Search new_search(const Graph *graph, Node *nodes, int64_t n, int32_t *orphans) {
    Search s = {.graph = graph, .nodes = nodes, .orphans = {orphans, orphans + n + 2}, .limit = {1, 1}, };
    s.now = s.next[0] = s.next[1] = (List){END, END};
    s.nearest[0] = s.nearest[1] = INT32_MAX;
    s.farthest[0] = s.farthest[1] = 0;
    s.orphans[0][1] = s.orphans[1][1] = END;
    return s;
}

/* Find a maximum flow. Afterwards the nodes of negative depth are those from which the sink can be reached: the smallest
 * sink's side of a minimum cut, which all maximum flows have in common. */
static void find_flow(Search *s) {
    for (int side = 0; s->next[1].first != END; side = !side)
        if (side || s->next[0].first == END)
            grow_level(s, 1);
        else
            grow_level(s, 0);
}
