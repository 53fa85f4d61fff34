/* floor_websocket PORT CONNS SECONDS [BODY]   WebSocket: one binary message of BODY bytes (below 126) in
 *                                             flight on each of CONNS connections, confirmed by a short
 *                                             message. The upgrade and the confirmation are read once,
 *                                             later answers are counted as bytes. The masking key is 0,
 *                                             so nothing is masked. */
#include "floor.h"

static int upgraded(int port) {
    char ask[256], buf[4096];
    int n = snprintf(ask, sizeof ask,
                     "GET /messages/reply HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                     port);
    int fd = dial(port);
    write_all(fd, ask, n);
    size_t got = 0;
    while (got < 4 || memcmp(buf + got - 4, "\r\n\r\n", 4)) {
        ssize_t r = read(fd, buf + got, 1);
        if (r <= 0 || ++got == sizeof buf) fprintf(stderr, "no upgrade: %.*s\n", (int)got, buf), exit(1);
    }
    if (memcmp(buf + 9, "101", 3)) fprintf(stderr, "no upgrade: %.*s\n", (int)got, buf), exit(1);
    return fd;
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "see the head of floor_websocket.c\n"), 2;
    raise_nofile();
    int port = atoi(argv[1]), conns = atoi(argv[2]), body = argc > 4 ? atoi(argv[4]) : 64;
    double secs = atof(argv[3]);
    if (body < 1 || body > 125 || conns < 1) return fprintf(stderr, "BODY is 1 to 125, CONNS at least 1\n"), 2;
    /* FIN and binary, masked with the length, the key, the body. */
    unsigned char frame[6 + 125] = {0x82, 0x80 | body};
    memset(frame + 6, 'x', body);
    ssize_t n = 6 + body;

    int ep = epoll_create1(0), *fds = malloc(sizeof(int) * conns);
    uint32_t *left = calloc(conns, sizeof *left);
    static char buf[1 << 16];
    for (int i = 0; i < conns; i++) {
        fds[i] = upgraded(port);
        if (i + 1 < conns) nonblock(fds[i]);
        struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e)) die("epoll_ctl");
    }
    write_all(fds[conns - 1], frame, n);
    ssize_t answer = read(fds[conns - 1], buf, sizeof buf);
    if (answer < 3 || (buf[0] & 0x0f) > 2 || answer != 2 + buf[1]) return fprintf(stderr, "no confirmation\n"), 1;
    nonblock(fds[conns - 1]);

    double t0 = now_s(), c0 = cpu_s(), end = t0 + secs;
    uint64_t done = 0, waits = 0;
    for (int i = 0; i < conns; i++) write_all(fds[i], frame, n), left[i] = answer;
    struct epoll_event ev[1024];
    uint32_t turn[1024], turns;
    for (;;) {
        int k = epoll_wait(ep, ev, 1024, 1000);
        if (k < 0) die("epoll_wait");
        waits++;
        if (now_s() >= end) break;
        turns = 0;
        /* Everything that is readable is read before anything is written, as in floor_http. */
        for (int j = 0; j < k; j++) {
            uint32_t i = ev[j].data.u32;
            ssize_t r = recv(fds[i], buf, sizeof buf, MSG_DONTWAIT);
            if (r == 0) return fprintf(stderr, "peer closed connection %u\n", i), 1;
            if (r < 0) continue;
            left[i] -= r;
            if ((int32_t)left[i] < 0) return fprintf(stderr, "answer longer than expected\n"), 1;
            if (left[i]) continue;
            left[i] = answer;
            done++;
            turn[turns++] = i;
        }
        for (uint32_t j = 0; j < turns; j++) {
            ssize_t w = send(fds[turn[j]], frame, n, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (w != n) return fprintf(stderr, "short write %zd\n", w), 1;
        }
    }
    double wall = now_s() - t0, cpu = cpu_s() - c0;
    fprintf(stderr, "frame %zd B, answer %zd B, %.1f messages per epoll_wait\n", n, answer, (double)done / waits);
    summary("websocket", done, wall, cpu);
}
