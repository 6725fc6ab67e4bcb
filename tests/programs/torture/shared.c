/* A program that needs shared memory itself, beside a recorder that lives there.
 *
 *   mode=own    threads record; then the program makes BYTES of POSIX shared memory and
 *               touches every page of it while they go on
 *   mode=fill   the program fills the file system to the last byte, then threads begin
 *   threads=N calls=K bytes=B
 */
#include "torture.h"
#include <fcntl.h>
#include <pthread.h>

static pthread_barrier_t all_here;
static long threads, calls;

static void *work(void *index)
{
    pthread_barrier_wait(&all_here);
    for (long i = 0; i < calls; i++)
        api_call(i + (long)index);
    pthread_barrier_wait(&all_here);
    for (long i = 0; i < calls; i++)
        api_call(i + (long)index);
    return NULL;
}

/* No reservation: as programs do that know how large the file system is. */
static void touch(long bytes)
{
    char name[64];
    snprintf(name, sizeof name, "/torture-%d", getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && shm_unlink(name) == 0 && ftruncate(fd, bytes) == 0);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    for (long at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    CHECK(munmap(memory, bytes) == 0 && close(fd) == 0);
}

static int fill(char *name, size_t room)
{
    static char block[64 << 10];
    snprintf(name, room, "/torture-%d", getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    size_t size = sizeof block;
    while (size > 0)
        if (write(fd, block, size) < (long)size)
            size /= 2;
    return fd;
}

int main(int argc, char **argv)
{
    int fills = strcmp(word(argc, argv, "mode", "own"), "fill") == 0;
    threads = number(argc, argv, "threads", 16);
    calls = number(argc, argv, "calls", 2000);
    long bytes = number(argc, argv, "bytes", 4 << 20);
    char name[64];
    int file = -1;
    board_make();
    api_open();
    if (fills)
        file = fill(name, sizeof name);
    pthread_attr_t small_stack;
    pthread_t *t = calloc(threads, sizeof *t);
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 256 << 10);
    pthread_barrier_init(&all_here, NULL, threads + 1);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], &small_stack, work, (void *)i) == 0);
    pthread_barrier_wait(&all_here);
    pthread_barrier_wait(&all_here);
    if (!fills)
        touch(bytes);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    if (file >= 0)
        CHECK(close(file) == 0 && shm_unlink(name) == 0);
    put("done\n", 5);
    board_print();
    return 7;
}
