/* Maximum flow by two search trees that are kept (Boykov & Kolmogorov, PAMI 2004).
 *
 * One tree holds nodes that the source reaches, one nodes that reach the sink. Where they meet, flow is pushed along the
 * path. Nodes cut off by a saturated arc are orphans: each takes another parent from which its root can still be reached,
 * the nearest to it, or becomes free, and its children are orphans.
 *
 * A file that includes this one defines a kind of graph before:
 *   Capacity                  a signed integer type
 *   Graph                     a struct
 *   FIRST(g, v), LAST(g, v)   the arcs of a node are numbered from the first to before the last
 *   HEAD(g, a), SISTER(g, a)  where an arc leads, and the arc that leads back
 *   RESIDUAL(g, a)            its residual capacity, an lvalue
 */

/* The caller's array has six 32-bit integers for each node. */
typedef struct {
    Capacity excess;  /* residual capacity from the source, or, if negative, to the sink */
    int32_t parent;   /* arc to the parent in the tree; TERMINAL, ORPHAN, NONE */
    int32_t depth;    /* positive: in the source's tree; negative: in the sink's; 0: free. Its size is right as of `time` */
    int32_t time;     /* when the depth was found */
    int32_t follows;  /* in the list of nodes to grow: the next node, END or UNLISTED */
    int32_t follower; /* next orphan */
} Node;

enum { NONE = -1, TERMINAL = -2, ORPHAN = -3, END = -1, UNLISTED = -2, FAR = INT32_MAX };

typedef struct {
    const Graph *graph;
    Node *nodes;
    int32_t first, last;               /* nodes to grow */
    int32_t first_orphan, last_orphan; /* nodes to adopt */
    int32_t time;                      /* number of augmentations */
    int64_t flow;
} Search;

static inline Search new_search(const Graph *graph, Node *nodes) {
    return (Search){graph, nodes, END, END, END, END, 0, 0};
}

static inline int32_t depth_in(const Node *node, int side) { return side ? -node->depth : node->depth; }

static inline void set_depth(Search *s, int side, int32_t v, int32_t depth, int32_t time) {
    s->nodes[v].depth = side ? -depth : depth;
    s->nodes[v].time = time;
}

static inline void enlist(Search *s, int32_t v) {
    if (s->nodes[v].follows != UNLISTED) return;
    s->nodes[v].follows = END;
    if (s->last == END)
        s->first = v;
    else
        s->nodes[s->last].follows = v;
    s->last = v;
}

/* Take the first listed node that is in a tree; END if there is none. */
static inline int32_t next_to_grow(Search *s) {
    int32_t v;
    do {
        v = s->first;
        if (v == END) return END;
        s->first = s->nodes[v].follows;
        if (s->first == END) s->last = END;
        s->nodes[v].follows = UNLISTED;
    } while (s->nodes[v].depth == 0);
    return v;
}

/* Set the capacity between a node and the source or the sink, which makes it the root of a tree. */
static inline void make_root(Search *s, int32_t v, Capacity excess) {
    const int32_t side = (excess > 0) - (excess < 0);
    s->nodes[v] = (Node){excess, side ? TERMINAL : NONE, side, 0, UNLISTED, END};
    if (side) enlist(s, v);
}

static inline void orphan_first(Search *s, int32_t v) {
    s->nodes[v].parent = ORPHAN;
    s->nodes[v].follower = s->first_orphan;
    if (s->first_orphan == END) s->last_orphan = v;
    s->first_orphan = v;
}

static inline void orphan_last(Search *s, int32_t v) {
    s->nodes[v].parent = ORPHAN;
    s->nodes[v].follower = END;
    if (s->first_orphan == END)
        s->first_orphan = v;
    else
        s->nodes[s->last_orphan].follower = v;
    s->last_orphan = v;
}

/* Residual capacity in the direction of flow between a node and the end of one of its arcs, towards the root. */
static inline Capacity from_parent(const Graph *g, int side, int32_t arc) {
    return side ? RESIDUAL(g, arc) : RESIDUAL(g, SISTER(g, arc));
}

/* Find how many arcs the terminal is away; FAR from below an orphan. Nodes on the way remember it. */
static inline int32_t distance(Search *s, int side, int32_t v) {
    const Graph *g = s->graph;
    int32_t steps = 0, at = v;
    while (s->nodes[at].time != s->time && s->nodes[at].parent >= 0) {
        at = HEAD(g, s->nodes[at].parent);
        steps++;
    }
    if (s->nodes[at].parent == ORPHAN) return FAR;
    if (s->nodes[at].time != s->time) set_depth(s, side, at, 1, s->time);
    const int32_t found = steps + depth_in(s->nodes + at, side);
    for (int32_t depth = found; v != at; depth--, v = HEAD(g, s->nodes[v].parent)) set_depth(s, side, v, depth, s->time);
    return found;
}

/* Let an orphan go: its children are orphans, and neighbours that may take it again are to be grown. */
static void set_free(Search *s, int side, int32_t v) {
    const Graph *g = s->graph;
    for (int32_t a = FIRST(g, v); a < LAST(g, v); a++) {
        const int32_t u = HEAD(g, a);
        if (depth_in(s->nodes + u, side) <= 0) continue;
        if (from_parent(g, side, a) > 0) enlist(s, u);
        if (s->nodes[u].parent == SISTER(g, a)) orphan_last(s, u);
    }
    s->nodes[v].depth = 0;
    s->nodes[v].parent = NONE;
}

static inline void adopt(Search *s, int side, int32_t v) {
    const Graph *g = s->graph;
    int32_t nearest = FAR, parent = NONE;
    for (int32_t a = FIRST(g, v); a < LAST(g, v); a++) {
        const int32_t u = HEAD(g, a);
        if (depth_in(s->nodes + u, side) <= 0 || from_parent(g, side, a) == 0) continue;
        const int32_t away = distance(s, side, u);
        if (away >= nearest) continue;
        nearest = away;
        parent = a;
    }
    if (parent == NONE) {
        set_free(s, side, v);
        return;
    }
    s->nodes[v].parent = parent;
    set_depth(s, side, v, nearest + 1, s->time);
}

static inline void adopt_all(Search *s) {
    while (s->first_orphan != END) {
        const int32_t v = s->first_orphan;
        s->first_orphan = s->nodes[v].follower;
        if (s->nodes[v].depth < 0)
            adopt(s, 1, v);
        else
            adopt(s, 0, v);
    }
}

/* Lower a bound to the residual capacities between a node and the terminal of its tree. */
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
        if (RESIDUAL(g, with) == 0) orphan_first(s, v);
    }
    s->nodes[v].excess += side ? amount : -amount;
    if (s->nodes[v].excess == 0) orphan_first(s, v);
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
    s->time++;
    push_along_path(s, 0, tail, amount);
    push_along_path(s, 1, head, amount);
    adopt_all(s);
}

/* Add the free neighbours of a node to its tree, or bring others nearer; return an arc to the other tree, or NONE. */
static inline int32_t grow(Search *s, int side, int32_t v) {
    const Graph *g = s->graph;
    const int32_t depth = depth_in(s->nodes + v, side), time = s->nodes[v].time;
    for (int32_t a = FIRST(g, v); a < LAST(g, v); a++) {
        const int32_t sister = SISTER(g, a), with = side ? sister : a;
        if (RESIDUAL(g, with) == 0) continue;
        const int32_t w = HEAD(g, a), there = depth_in(s->nodes + w, side);
        if (there < 0) return with;
        if (there == 0) enlist(s, w);
        if (there == 0 || (s->nodes[w].time <= time && there > depth)) {
            s->nodes[w].parent = sister;
            set_depth(s, side, w, depth + 1, time);
        }
    }
    return NONE;
}

/* Find a maximum flow. Afterwards the nodes of negative depth are those from which the sink can be reached: the smallest
 * sink's side of a minimum cut, which all maximum flows have in common. */
static void find_flow(Search *s) {
    for (int32_t v = next_to_grow(s); v != END;) {
        const int32_t met = s->nodes[v].depth < 0 ? grow(s, 1, v) : grow(s, 0, v);
        if (met != NONE) augment(s, met);
        if (met == NONE || s->nodes[v].depth == 0) v = next_to_grow(s);
    }
}
