/* floor_coap PORT CONNS SECONDS [BODY]   CoAP: one confirmable POST of BODY bytes to /messages in
 *                                        progress on each of CONNS sockets, answered in the
 *                                        acknowledgement. Nothing is repeated: loopback loses nothing
 *                                        while one message is in progress on each socket. */
#include "floor.h"

static int dial_datagrams(int port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) die("socket");
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) die("connect");
    return fd;
}
int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "see the head of floor_coap.c\n"), 2;
    raise_nofile();
    int port = atoi(argv[1]), n = atoi(argv[2]), body = argc > 4 ? atoi(argv[4]) : 64;
    double secs = atof(argv[3]);
    /* CON with a token of four bytes, POST, message ID, token, Uri-Path, Content-Format 50, marker. */
    static unsigned char b[2048] = "\x44\x02......\xb8messages\x11\x32\xff";
    enum { HEAD = 20 };
    static unsigned char in[2048];
    if (body < 0 || body > (int)sizeof b - HEAD) return fprintf(stderr, "a body of at most 2,000 bytes\n"), 2;
    memset(b + 2, 0, 6);
    memset(b + HEAD, 'x', (size_t)body);
    int *fd = malloc(sizeof(int) * n), ep = epoll_create1(0);
    uint16_t *id = calloc((size_t)n, sizeof *id);
    uint64_t done = 0;
    for (int i = 0; i < n; i++) {
        fd[i] = dial_datagrams(port);
        nonblock(fd[i]);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &e);
    }
    double t0 = now_s(), c0 = cpu_s(), t = t0;
    for (int i = 0; i < n; i++)
        if (write(fd[i], b, (size_t)(HEAD + body)) != HEAD + body) die("write");
    struct epoll_event ev[512];
    while (t - t0 < secs) {
        int k = epoll_wait(ep, ev, 512, 1000);
        t = now_s();
        if (k == 0) return fprintf(stderr, "a message was lost\n"), 1;
        for (int j = 0; j < k; j++) {
            int i = ev[j].data.u32;
            ssize_t r = read(fd[i], in, sizeof in);
            if (r < 4) return fprintf(stderr, "no server answers\n"), 1;
            if (in[0] >> 4 != 6 || in[1] >> 5 != 2 || in[2] != id[i] >> 8 || in[3] != (id[i] & 0xff))
                return fprintf(stderr, "not the acknowledgement of a message: %02x %02x\n", in[0], in[1]), 1;
            done++;
            id[i]++;
            b[2] = (unsigned char)(id[i] >> 8), b[3] = (unsigned char)id[i];
            b[6] = b[2], b[7] = b[3];
            if (write(fd[i], b, (size_t)(HEAD + body)) != HEAD + body) die("write");
        }
    }
    summary("coap", done, now_s() - t0, cpu_s() - c0);
}
