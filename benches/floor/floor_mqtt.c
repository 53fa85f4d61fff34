/* floor_mqtt pub  PORT CLIENTS MSGS_PER_CLIENT QOS BATCH [WINDOW] [PAYLOAD]
 * floor_mqtt sub  PORT TOTAL            count PUBLISH frames until TOTAL or 3 s of silence
 * floor_mqtt both PORT CLIENTS MSGS_PER_CLIENT QOS BATCH [WINDOW] [PAYLOAD]   pub + one subscriber, one thread
 * floor_mqtt idle PORT CLIENTS SECONDS  open, hold, report time and memory
 * BATCH frames are pre-encoded and handed over in one write. QoS 1 and 2 keep at
 * most WINDOW unfinished messages per client (default BATCH). QoS 2 answers every
 * PUBREC with its PUBREL and counts PUBCOMP. */
#include "floor.h"

static const char TOPIC[] = "bench/t";
static int connect_frame(uint8_t *p, const char *id) {
    int l = (int)strlen(id);
    uint8_t h[] = {0x10, (uint8_t)(12 + l), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, (uint8_t)l};
    memcpy(p, h, sizeof h);
    memcpy(p + sizeof h, id, l);
    return (int)sizeof h + l;
}
static int publish_frame(uint8_t *p, int qos, int payload, uint16_t pid) {
    int tl = (int)sizeof TOPIC - 1, rem = 2 + tl + (qos ? 2 : 0) + payload, n = 0;
    p[n++] = 0x30 | (qos << 1);
    do {
        uint8_t b = rem & 127;
        rem >>= 7;
        p[n++] = b | (rem ? 128 : 0);
    } while (rem);
    p[n++] = 0;
    p[n++] = tl;
    memcpy(p + n, TOPIC, tl);
    n += tl;
    if (qos) p[n++] = pid >> 8, p[n++] = pid & 255;
    memset(p + n, 'x', payload);
    return n + payload;
}
static int login(int port, int i) {
    uint8_t b[64], r[4];
    char id[32];
    snprintf(id, sizeof id, "f%d-%d", (int)getpid() % 10000, i);
    int fd = dial(port);
    write_all(fd, b, connect_frame(b, id));
    read_exact(fd, r, 4);
    if (r[0] != 0x20 || r[3]) fprintf(stderr, "CONNACK refused %d\n", r[3]), exit(1);
    return fd;
}
static void subscribe(int fd) {
    uint8_t s[] = {0x82, 12, 0, 1, 0, 7, 'b', 'e', 'n', 'c', 'h', '/', '#', 0}, r[5];
    write_all(fd, s, sizeof s);
    read_exact(fd, r, 5);
}

static int do_idle(int port, int n, double hold) {
    int *fds = malloc(sizeof(int) * n), ep = epoll_create1(0), opened = 0;
    long r0 = rss_kib();
    double t0 = now_s(), c0 = cpu_s(), limit = t0 + 30;
    enum { WIN = 256 };
    uint8_t b[64], r[64];
    int acked = 0;
    struct epoll_event ev[256];
    while (acked < n && now_s() < limit) {
        while (opened < n && opened - acked < WIN) {
            fds[opened] = dial(port);
            char id[32];
            snprintf(id, sizeof id, "i%d-%d", (int)getpid() % 10000, opened);
            write_all(fds[opened], b, connect_frame(b, id));
            struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[opened]};
            if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[opened], &e)) die("epoll_ctl");
            opened++;
        }
        int k = epoll_wait(ep, ev, 256, 1000);
        for (int j = 0; j < k; j++) {
            ssize_t g = read(ev[j].data.fd, r, sizeof r);
            if (g == 4 && r[3] == 0)
                acked++;
            else
                return fprintf(stderr, "bad CONNACK at %d (%zd)\n", acked, g), 1;
        }
    }
    double wall = now_s() - t0, cpu = cpu_s() - c0;
    printf("idle opened=%d rss_per_conn_bytes=%.0f\n", acked, (rss_kib() - r0) * 1024.0 / acked);
    fflush(stdout);
    usleep((useconds_t)(hold * 1e6));
    summary("mqtt-idle", acked, wall, cpu);
    return 0;
}

static uint8_t buf[1 << 18];

/* Walks the 4-byte acknowledgements in b[0..n): PUBREC (0x50) is turned into PUBREL (0x62) in
 * rel, PUBCOMP (0x70) and PUBACK (0x40) are counted. Returns the bytes left over. */
static size_t walk_acks(const uint8_t *b, size_t n, uint8_t *rel, size_t *reln, uint64_t *done) {
    size_t at = 0;
    for (; at + 4 <= n; at += 4) {
        if (b[at] == 0x50) {
            uint8_t f[] = {0x62, 2, b[at + 2], b[at + 3]};
            memcpy(rel + *reln, f, 4);
            *reln += 4;
        } else if (b[at] == 0x70 || b[at] == 0x40)
            ++*done;
    }
    return n - at;
}

static int do_sub(int port, uint64_t total) {
    int fd = login(port, 99999);
    subscribe(fd);
    fprintf(stderr, "subscribed\n");
    struct timeval tv = {.tv_sec = 3};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    uint64_t bytes = 0, flen = 0;
    double t0 = 0, last = 0, c0 = 0;
    for (;;) {
        ssize_t r = read(fd, buf, sizeof buf);
        if (r <= 0) {
            if (!bytes && r < 0 && errno == EAGAIN) continue;
            break;
        }
        if (!bytes) t0 = now_s(), c0 = cpu_s(), flen = 2 + buf[1]; /* all frames have the same short length */
        last = now_s();
        bytes += r;
        if (total && bytes >= total * flen) break;
    }
    summary("mqtt-sub", flen ? (double)bytes / flen : 0, last - t0, cpu_s() - c0);
    return 0;
}

int main(int argc, char **argv) {
    raise_nofile();
    if (argc >= 4 && !strcmp(argv[1], "sub")) return do_sub(atoi(argv[2]), strtoull(argv[3], 0, 10));
    if (argc >= 5 && !strcmp(argv[1], "idle")) return do_idle(atoi(argv[2]), atoi(argv[3]), atof(argv[4]));
    if (argc < 7) return fprintf(stderr, "see the head of floor_mqtt.c\n"), 2;
    int both = !strcmp(argv[1], "both"), port = atoi(argv[2]), n = atoi(argv[3]), qos = atoi(argv[5]), batch = atoi(argv[6]);
    uint64_t per = strtoull(argv[4], 0, 10);
    int window = argc > 7 ? atoi(argv[7]) : batch, payload = argc > 8 ? atoi(argv[8]) : 64;
    if (window < batch) window = batch;
    if (per % batch) per += batch - per % batch;
    /* QoS 1: one big ring of frames with ids 1..RING, a batch is a slice of it */
    enum { RING = 32768 };
    uint8_t tmp[512];
    int flen = publish_frame(tmp, qos, payload, 1), nring = qos ? RING : batch;
    uint8_t *ring = malloc((size_t)(nring + batch) * flen);
    for (int i = 0; i < nring + batch; i++) publish_frame(ring + (size_t)i * flen, qos, payload, (uint16_t)(i % nring + 1));

    struct conn {
        int fd;
        uint32_t off, wait_out; /* bytes of the current batch already written */
        uint64_t sent, acked;   /* messages */
        uint32_t ackbytes, carried;
        uint8_t carry[4];
        int ready, finished, pinged;
    } *c = calloc(n + 1, sizeof *c);
    int ep = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        c[i].fd = login(port, i);
        nonblock(c[i].fd);
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = i};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, c[i].fd, &e)) die("epoll_ctl");
    }
    uint64_t subbytes = 0, want = both ? per * n * (uint64_t)publish_frame(tmp, 0, payload, 1) : 0;
    if (both) {
        c[n].fd = login(port, n);
        subscribe(c[n].fd);
        nonblock(c[n].fd);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = n};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, c[n].fd, &e)) die("epoll_ctl");
    }
    uint64_t writes = 0, waits = 0, total_acked = 0;
    int live = n;
    double t0 = now_s(), c0 = cpu_s(), tpub = 0;
    struct epoll_event ev[512];
    for (int i = 0; i < n; i++) c[i].ready = 1;
    while (live || subbytes < want) {
        int any = 0;
        for (int i = 0; i < n; i++) {
            if (!c[i].ready || c[i].finished) continue;
            if (c[i].sent == per) { /* all handed over: a PINGREQ tells when the broker has read everything */
                c[i].ready = 0;
                if (!qos && !c[i].pinged) c[i].pinged = write(c[i].fd, (uint8_t[]){0xC0, 0}, 2) == 2;
                continue;
            }
            if (qos && c[i].off == 0 && c[i].sent + batch - c[i].acked > (uint64_t)window) {
                c[i].ready = 0;
                continue;
            }
            uint8_t *p = qos ? ring + (size_t)(c[i].sent % RING) * flen : ring;
            size_t len = (size_t)batch * flen - c[i].off;
            ssize_t w = send(c[i].fd, p + c[i].off, len, MSG_DONTWAIT | MSG_NOSIGNAL);
            writes++;
            if (w < 0) {
                if (errno != EAGAIN) die("write");
                c[i].ready = 0;
                continue;
            }
            if ((size_t)w == len)
                c[i].off = 0, c[i].sent += batch;
            else
                c[i].off += w;
            any = 1;
        }
        waits++;
        int k = epoll_wait(ep, ev, 512, any ? 0 : 5000);
        if (k < 0) die("epoll_wait");
        if (k == 0 && !any) return fprintf(stderr, "stalled: 5 s without an event, %d live\n", live), 1;
        for (int j = 0; j < k; j++) {
            uint32_t i = ev[j].data.u32;
            if ((int)i == n) {
                ssize_t r = read(c[n].fd, buf, sizeof buf);
                if (r > 0) subbytes += r;
                continue;
            }
            if (ev[j].events & EPOLLIN)
                for (;;) {
                    static uint8_t rel[65536 + 8];
                    uint32_t had = c[i].carried;
                    memcpy(buf, c[i].carry, had);
                    ssize_t r = recv(c[i].fd, buf + had, 65536, MSG_DONTWAIT);
                    if (r == 0) return fprintf(stderr, "broker closed connection %u\n", i), 1;
                    if (r < 0) break;
                    if (qos) {
                        size_t reln = 0, n4 = (size_t)r + had;
                        uint64_t a = 0;
                        c[i].carried = (uint32_t)walk_acks(buf, n4, rel, &reln, &a);
                        memcpy(c[i].carry, buf + n4 - c[i].carried, c[i].carried);
                        /* whole frames only: a PUBREL between the halves of a PUBLISH is nonsense */
                        if (reln && c[i].off) return fprintf(stderr, "a PUBREL amid a short write\n"), 1;
                        if (reln && send(c[i].fd, rel, reln, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)reln)
                            return fprintf(stderr, "short write of PUBREL\n"), 1;
                        c[i].acked += a;
                        total_acked += a;
                    } else
                        c[i].ackbytes += r;
                    if (r < 65536) break;
                }
            c[i].ready = 1;
            if (!c[i].finished && c[i].sent == per && (qos ? c[i].acked == per : c[i].ackbytes == 2)) {
                c[i].finished = 1;
                if (!--live) tpub = now_s();
            } else if (c[i].sent == per && (qos || c[i].pinged))
                c[i].ready = 0;
        }
    }
    double wall = now_s() - t0, cpu = cpu_s() - c0;
    fprintf(stderr, "frame %d B, writes %lu, epoll_waits %lu, acked %lu, publish phase %.3f s, sub bytes %lu\n", flen,
            (unsigned long)writes, (unsigned long)waits, (unsigned long)total_acked, tpub - t0, (unsigned long)subbytes);
    summary(both ? "mqtt-both" : "mqtt-pub", (double)per * n, wall, cpu);
}
