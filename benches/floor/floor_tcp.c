/* floor_tcp serve PORT SIZE [KIND]          echo server, blocking epoll, one thread; with KIND,
 *                                           byte 4 of every SIZE bytes is turned into it, which
 *                                           makes an echo of length-prefixed frames
 * floor_tcp ping  PORT SIZE CONNS SECONDS   ping-pong, one message in flight per connection
 * floor_tcp spin  PORT SIZE CONNS SECONDS   the same, but polling without sleeping */
#include "floor.h"
#include <signal.h>

static int cmp(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}
static void serve(int port, int size, int kind) {
    int ls = serve_socket(port), ep = epoll_create1(0), one = 1;
    static char b[1 << 16];
    struct epoll_event e = {.events = EPOLLIN, .data.fd = ls}, ev[512];
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    for (;;) {
        int k = epoll_wait(ep, ev, 512, -1);
        for (int j = 0; j < k; j++) {
            int fd = ev[j].data.fd;
            if (fd == ls) {
                int c;
                while ((c = accept4(ls, 0, 0, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    e.data.fd = c;
                    epoll_ctl(ep, EPOLL_CTL_ADD, c, &e);
                }
                continue;
            }
            ssize_t r = read(fd, b, sizeof b);
            if (r <= 0) {
                if (r == 0 || errno != EAGAIN) close(fd);
                continue;
            }
            for (ssize_t at = 4; kind && at < r; at += size) b[at] = (char)kind;
            if (write(fd, b, r) != r) close(fd);
        }
    }
}
int main(int argc, char **argv) {
    raise_nofile();
    signal(SIGPIPE, SIG_IGN);
    if (argc >= 3 && !strcmp(argv[1], "serve")) serve(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 64, argc > 4 ? atoi(argv[4]) : 0);
    if (argc < 6) return fprintf(stderr, "see the head of floor_tcp.c\n"), 2;
    int spin = !strcmp(argv[1], "spin"), port = atoi(argv[2]), size = atoi(argv[3]), n = atoi(argv[4]);
    double secs = atof(argv[5]);
    static char b[1 << 16];
    int ep = epoll_create1(0);
    int *fd = malloc(sizeof(int) * n), *left = malloc(sizeof(int) * n);
    double *at = malloc(sizeof(double) * n);
    enum { CAP = 4000000 };
    uint32_t *lat = malloc(sizeof(uint32_t) * CAP);
    uint64_t done = 0;
    for (int i = 0; i < n; i++) {
        fd[i] = dial(port);
        nonblock(fd[i]);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &e);
    }
    double t0 = now_s(), c0 = cpu_s(), t = t0;
    for (int i = 0; i < n; i++) write_all(fd[i], b, size), left[i] = size, at[i] = now_s();
    struct epoll_event ev[512];
    while (t - t0 < secs) {
        int k = epoll_wait(ep, ev, 512, spin ? 0 : 1000);
        t = now_s();
        for (int j = 0; j < k; j++) {
            int i = ev[j].data.u32;
            ssize_t r = read(fd[i], b, sizeof b);
            if (r <= 0) return fprintf(stderr, "echo broke\n"), 1;
            if ((left[i] -= r) > 0) continue;
            if (done < CAP) lat[done] = (uint32_t)((t - at[i]) * 1e9);
            done++;
            at[i] = t;
            left[i] = size;
            if (write(fd[i], b, size) != size) die("write");
        }
    }
    double wall = now_s() - t0, cpu = cpu_s() - c0;
    size_t m = done < CAP ? done : CAP;
    if (m) {
        qsort(lat, m, sizeof *lat, cmp);
        fprintf(stderr, "round trip us: p50 %.1f p99 %.1f p99.9 %.1f max %.1f\n", lat[m / 2] / 1e3,
                lat[m * 99 / 100] / 1e3, lat[m * 999 / 1000] / 1e3, lat[m - 1] / 1e3);
    }
    summary(spin ? "tcp-spin" : "tcp-ping", done, wall, cpu);
}
