/* floor_http PORT PATH CONNS SECONDS [DEPTH] [BODY] [LAZY_US] [batch|each]
 * Closed loop: each connection writes DEPTH pre-built POST requests in one
 * write and writes again once the expected number of response BYTES is in.
 * The response length is learned once per start from a first exchange.
 * LAZY_US > 0 sleeps that long before each look for responses, so that many are
 * found at once: fewer wake-ups, least CPU per request, at the price of latency.
 * batch reads all that is readable before it writes anything; each is the simple
 * loop: it answers every event before it looks at the next. */
#include "floor.h"

static void ask(int fd, const char *req, size_t n) {
    ssize_t w = send(fd, req, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (w != (ssize_t)n) fprintf(stderr, "short write %zd\n", w), exit(1);
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "usage: %s PORT PATH CONNS SECONDS [DEPTH] [BODY] [LAZY_US]\n", argv[0]), 2;
    int port = atoi(argv[1]), conns = atoi(argv[3]), depth = argc > 5 ? atoi(argv[5]) : 1;
    int body = argc > 6 ? atoi(argv[6]) : 64, lazy = argc > 7 ? atoi(argv[7]) : 0;
    int each = argc > 8 && !strcmp(argv[8], "each");
    double secs = atof(argv[4]);
    raise_nofile();
    char one[8192];
    int n = snprintf(one, sizeof one, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: %d\r\n\r\n", argv[2], port,
                     body);
    memset(one + n, 'x', body);
    n += body;
    char *req = malloc((size_t)n * depth);
    for (int i = 0; i < depth; i++) memcpy(req + (size_t)i * n, one, n);

    int probe = dial(port);
    static char buf[1 << 18];
    write_all(probe, one, n);
    ssize_t rlen = read(probe, buf, sizeof buf);
    usleep(20000);
    nonblock(probe);
    ssize_t more = read(probe, buf + rlen, sizeof buf - rlen);
    if (more > 0) rlen += more;
    if (rlen <= 12 || memcmp(buf + 9, "20", 2)) return fprintf(stderr, "probe failed: %.*s\n", (int)rlen, buf), 1;
    close(probe);

    int ep = epoll_create1(0);
    int *fds = malloc(sizeof(int) * conns);
    uint32_t *left = calloc(conns, sizeof *left);
    double tc = now_s();
    for (int i = 0; i < conns; i++) {
        fds[i] = dial(port);
        nonblock(fds[i]);
        struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e)) die("epoll_ctl");
    }
    tc = now_s() - tc;
    double t0 = now_s(), c0 = cpu_s(), end = t0 + secs;
    uint64_t done = 0;
    for (int i = 0; i < conns; i++) {
        write_all(fds[i], req, (size_t)n * depth);
        left[i] = rlen * depth;
    }
    /* All that is readable is read first, then all answers go out: the target then finds
     * several requests at once and neither side is woken for each of them. */
    struct epoll_event ev[1024];
    uint32_t *turn = malloc(sizeof *turn * 1024), turns, waits = 0;
    for (;;) {
        if (lazy) usleep(lazy);
        int k = epoll_wait(ep, ev, 1024, 1000);
        if (k < 0) die("epoll_wait");
        waits++;
        if (now_s() >= end) break;
        turns = 0;
        for (int j = 0; j < k; j++) {
            uint32_t i = ev[j].data.u32;
            ssize_t r = recv(fds[i], buf, sizeof buf, MSG_DONTWAIT);
            if (r == 0) return fprintf(stderr, "peer closed connection %u\n", i), 1;
            if (r < 0) continue;
            left[i] -= r;
            if ((int32_t)left[i] < 0) return fprintf(stderr, "response longer than expected\n"), 1;
            if (left[i]) continue;
            left[i] = rlen * depth;
            done += depth;
            if (each)
                ask(fds[i], req, (size_t)n * depth);
            else
                turn[turns++] = i;
        }
        for (uint32_t j = 0; j < turns; j++) ask(fds[turn[j]], req, (size_t)n * depth);
    }
    double wall = now_s() - t0, cpu = cpu_s() - c0;
    fprintf(stderr, "request %d B, response %zd B, connect %d in %.3f s, %.1f requests per epoll_wait\n", n, rlen, conns, tc,
            (double)done / waits);
    summary("http", done, wall, cpu);
}
