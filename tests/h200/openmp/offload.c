/*
 * Uses OpenMP's constructs for devices, and prints how often, as the code says, how many bytes their maps move, and what was
 * computed:
 *
 *   offload turn|nowait|crowd ROUNDS [time]
 *
 * `turn`: constructs one after another. `nowait`: chains of deferred constructs, each chain in order by its dependences.
 * `crowd`: threads that offload at the same time, each with data of its own. With `time` it prints what a round takes, too.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16, SMALL = 256, FEW = 16, CHAINS = 4, THREADS = 8 };
#define SIZE(count) ((unsigned long)(count) * sizeof(double))

static unsigned long targets, updates, enters, exits, datas, transfers_to, transfers_from, to, from;

#define COUNT(name, by)                                                                                                      \
    do {                                                                                                                     \
        _Pragma("omp atomic") name += (by);                                                                                  \
    } while (0)

static void sends(unsigned long bytes)
{
    #pragma omp atomic
    transfers_to++;
    #pragma omp atomic
    to += bytes;
}

static void receives(unsigned long bytes)
{
    #pragma omp atomic
    transfers_from++;
    #pragma omp atomic
    from += bytes;
}

static double *numbers(int count, double first)
{
    double *x = malloc(SIZE(count));
    for (int i = 0; i < count; i++)
        x[i] = first + i % 100;
    return x;
}

static double sum_of(const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i];
    return sum;
}

static double turn(int rounds)
{
    double *a = numbers(N, 0), *b = numbers(N, 1), *c = numbers(SMALL, 2), *d = numbers(N, 3), result = 0;
    COUNT(enters, 1);
    sends(SIZE(N));
    #pragma omp target enter data map(to : a[0 : N]) map(alloc : b[0 : N])
    for (int round = 0; round < rounds; round++) {
        COUNT(targets, 1);
        #pragma omp target teams distribute parallel for
        for (int i = 0; i < N; i++)
            b[i] = 2 * a[i] + round;

        COUNT(updates, 1);
        receives(SIZE(N / 2));
        #pragma omp target update from(b[0 : N / 2])
        result += sum_of(b, N / 2);

        for (int i = 0; i < FEW; i++)
            a[i] += 1;
        COUNT(updates, 1);
        sends(SIZE(FEW));
        #pragma omp target update to(a[0 : FEW])

        double sum = 0;
        COUNT(targets, 1);
        sends(SIZE(1));
        receives(SIZE(1));
        #pragma omp target teams distribute parallel for reduction(+ : sum) map(tofrom : sum)
        for (int i = 0; i < N; i++)
            sum += a[i];
        result += sum;

        COUNT(targets, 1);
        sends(SIZE(SMALL));
        receives(SIZE(SMALL));
        #pragma omp target map(tofrom : c[0 : SMALL])
        {
            c[0] += 1;
            #pragma omp parallel for
            for (int i = 1; i < SMALL; i++)
                c[i] += c[0];
        }

        COUNT(datas, 1);
        receives(SIZE(N));
        #pragma omp target data map(from : d[0 : N])
        {
            COUNT(targets, 1);
            #pragma omp target teams distribute parallel for
            for (int i = 0; i < N; i++)
                d[i] = a[i] - b[i];
        }
        result += sum_of(d, N) + sum_of(c, SMALL);
    }
    COUNT(exits, 1);
    receives(SIZE(N));
    #pragma omp target exit data map(from : b[0 : N]) map(release : a[0 : N])
    result += sum_of(b, N);
    free(a), free(b), free(c), free(d);
    return result;
}

static double nowait(int rounds)
{
    double *chains[CHAINS], result = 0;
    for (int chain = 0; chain < CHAINS; chain++)
        chains[chain] = numbers(N, chain);
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int round = 0; round < rounds; round++) {
        for (int chain = 0; chain < CHAINS; chain++) {
            double *x = chains[chain];
            COUNT(enters, 1);
            sends(SIZE(N));
            #pragma omp target enter data map(to : x[0 : N]) depend(inout : x[0]) nowait
            for (int step = 0; step < 3; step++) {
                COUNT(targets, 1);
                #pragma omp target teams distribute parallel for depend(inout : x[0]) nowait
                for (int i = 0; i < N; i++)
                    x[i] = x[i] / 2 + step;
            }
            COUNT(updates, 1);
            receives(SIZE(FEW));
            #pragma omp target update from(x[0 : FEW]) depend(inout : x[0]) nowait
            COUNT(exits, 1);
            receives(SIZE(N));
            #pragma omp target exit data map(from : x[0 : N]) depend(inout : x[0]) nowait
        }
        #pragma omp taskwait
    }
    for (int chain = 0; chain < CHAINS; chain++) {
        result += sum_of(chains[chain], N);
        free(chains[chain]);
    }
    return result;
}

static double crowd(int rounds)
{
    double result = 0;
    #pragma omp parallel num_threads(THREADS) reduction(+ : result)
    {
        double *x = numbers(N, omp_get_thread_num());
        for (int round = 0; round < rounds; round++) {
            COUNT(targets, 1);
            sends(SIZE(N));
            receives(SIZE(N));
            #pragma omp target teams distribute parallel for map(tofrom : x[0 : N])
            for (int i = 0; i < N; i++)
                x[i] = x[i] / 2 + round;
        }
        result += sum_of(x, N);
        free(x);
    }
    return result;
}

int main(int count, char **arguments)
{
    int rounds = count > 2 ? atoi(arguments[2]) : 0;
    double (*way)(int) = count < 3                         ? NULL
                         : !strcmp(arguments[1], "turn")   ? turn
                         : !strcmp(arguments[1], "nowait") ? nowait
                         : !strcmp(arguments[1], "crowd")  ? crowd
                                                           : NULL;
    if (!way || rounds < 1) {
        fprintf(stderr, "usage: offload turn|nowait|crowd ROUNDS [time]\n");
        return 2;
    }
    int host = 1;
    #pragma omp target map(from : host)
    host = omp_is_initial_device();
    COUNT(targets, 1);
    receives(sizeof host);
    double begin = omp_get_wtime(), result = way(rounds), took = omp_get_wtime() - begin;
    printf("host %d\ntarget %lu\nupdate %lu\nenter %lu\nexit %lu\ndata %lu\n", host, targets, updates, enters, exits, datas);
    printf("transfer_to %lu\ntransfer_from %lu\nto_bytes %lu\nfrom_bytes %lu\n", transfers_to, transfers_from, to, from);
    printf("result %.17g\n", result);
    if (count > 3)
        printf("time %.3f\n", took / rounds * 1e6);
    return host;
}
