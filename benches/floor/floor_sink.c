/* floor_sink http|mqtt PORT [COUNT-FILE]
 * The cheapest possible TARGET, so that a generator can be seen at its own
 * limit instead of the limit of nginx or mosquitto. One thread, epoll.
 *   http: answers every complete request (head + Content-Length body) with a
 *         fixed 200 and a two-byte body, batching answers to pipelined input
 *   mqtt: CONNACK, SUBACK, PINGRESP; PUBLISH QoS 0 is counted and dropped,
 *         QoS 1 gets its PUBACK, QoS 2 PUBREC and PUBCOMP. Nothing is forwarded to subscribers.
 * SIGUSR1 writes the number of requests and messages so far to COUNT-FILE;
 * SIGTERM prints the counts and ends. */
#include "floor.h"
#include <signal.h>

static volatile sig_atomic_t stop, tell;
static void on_term(int s) { (void)s, stop = 1; }
static void on_usr1(int s) { (void)s, tell = 1; }
struct peer {
    uint32_t have;
    uint8_t data[65536];
};
static uint64_t n_http, n_q0, n_q1, n_q2, n_conn;
static const char REPLY[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";
static uint8_t out[1 << 20];
static size_t outn;

static size_t eat_http(const uint8_t *p, size_t n) {
    const char *h = memmem(p, n, "\r\n\r\n", 4);
    if (!h) return 0;
    size_t head = h + 4 - (const char *)p, body = 0;
    for (const char *q = (const char *)p; q < h; q++) {
        q = memchr(q, '\n', h - q);
        if (!q) break;
        if ((q[1] | 32) == 'c' && !strncasecmp(q + 1, "content-length:", 15)) {
            body = strtoul(q + 16, 0, 10);
            break;
        }
    }
    if (n < head + body) return 0;
    memcpy(out + outn, REPLY, sizeof REPLY - 1);
    outn += sizeof REPLY - 1;
    n_http++;
    return head + body;
}
static size_t eat_mqtt(const uint8_t *p, size_t n) {
    if (n < 2) return 0;
    size_t rem = p[1] & 127, h = 2;
    for (int sh = 7; p[h - 1] & 128; sh += 7, h++) {
        if (h >= n) return 0;
        rem |= (size_t)(p[h] & 127) << sh;
    }
    if (n < h + rem) return 0;
    uint8_t *o = out + outn;
    switch (p[0] >> 4) {
    case 1: memcpy(o, "\x20\x02\0\0", 4), outn += 4, n_conn++; break;
    case 3:
        if (p[0] & 6) {
            size_t t = h + 2 + (p[h] << 8 | p[h + 1]);
            o[0] = p[0] & 4 ? 0x50 : 0x40, o[1] = 2, o[2] = p[t], o[3] = p[t + 1], outn += 4;
            p[0] & 4 ? n_q2++ : n_q1++;
        } else
            n_q0++;
        break;
    case 6: o[0] = 0x70, o[1] = 2, o[2] = p[h], o[3] = p[h + 1], outn += 4; break;
    case 8: o[0] = 0x90, o[1] = 3, o[2] = p[h], o[3] = p[h + 1], o[4] = 0, outn += 5; break;
    case 10: o[0] = 0xB0, o[1] = 2, o[2] = p[h], o[3] = p[h + 1], outn += 4; break;
    case 12: o[0] = 0xD0, o[1] = 0, outn += 2; break;
    }
    return h + rem;
}
int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s http|mqtt PORT [COUNT-FILE]\n", argv[0]), 2;
    size_t (*eat)(const uint8_t *, size_t) = argv[1][0] == 'h' ? eat_http : eat_mqtt;
    raise_nofile();
    signal(SIGTERM, on_term);
    signal(SIGUSR1, on_usr1);
    signal(SIGPIPE, SIG_IGN);
    int ls = serve_socket(atoi(argv[2])), ep = epoll_create1(0), one = 1;
    struct peer **peers = calloc(1 << 20, sizeof *peers);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = ls}, ev[512];
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    while (!stop) {
        int k = epoll_wait(ep, ev, 512, 1000);
        if (tell && argc > 3) {
            FILE *f = fopen(argv[3], "w");
            if (f) fprintf(f, "%lu\n", (unsigned long)(n_http + n_q0 + n_q1 + n_q2)), fclose(f);
            tell = 0;
        }
        for (int j = 0; j < k; j++) {
            int fd = ev[j].data.fd;
            if (fd == ls) {
                int c;
                while ((c = accept4(ls, 0, 0, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    peers[c] = malloc(sizeof **peers);
                    peers[c]->have = 0;
                    e.data.fd = c;
                    epoll_ctl(ep, EPOLL_CTL_ADD, c, &e);
                }
                continue;
            }
            struct peer *p = peers[fd];
            ssize_t r = read(fd, p->data + p->have, sizeof p->data - p->have);
            if (r <= 0) {
                if (r < 0 && errno == EAGAIN) continue;
                close(fd), free(p), peers[fd] = 0;
                continue;
            }
            size_t n = p->have + r, at = 0, step;
            outn = 0;
            while (at < n && (step = eat(p->data + at, n - at))) at += step;
            p->have = n - at;
            if (at && p->have) memmove(p->data, p->data + at, p->have);
            for (size_t put = 0; put < outn;) {
                ssize_t w = write(fd, out + put, outn - put);
                if (w > 0)
                    put += w;
                else if (errno != EAGAIN)
                    break;
            }
        }
    }
    printf("SINK http=%lu qos0=%lu qos1=%lu qos2=%lu conns=%lu cpu=%.3f\n", (unsigned long)n_http, (unsigned long)n_q0,
           (unsigned long)n_q1, (unsigned long)n_q2, (unsigned long)n_conn, cpu_s());
}
