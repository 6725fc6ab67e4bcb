/* Counts the calls of a program, which prints them when it ends. */
#pragma once
#include <stdio.h>
#include <string.h>

static struct {
    const char *name;
    int calls;
} counts[128];

static void count(const char *name) {
    int i = 0;
    while (counts[i].name && strcmp(counts[i].name, name) != 0)
        i++;
    counts[i].name = name;
    counts[i].calls++;
}

/* Calls a function and counts it. */
#define CALL(function, ...) (count(#function), function(__VA_ARGS__))
/* What the name of a macro stands for. */
#define NAME_OF(name) #name
#define NAME(name) NAME_OF(name)

static void counted(void) {
    for (int i = 0; counts[i].name; i++)
        printf("calls %s %d\n", counts[i].name, counts[i].calls);
}
