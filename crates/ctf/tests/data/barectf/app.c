#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "barectf.h"
static FILE *out; static uint64_t now = (5ULL << 27) - 9000;
static uint64_t clk(void *d){ (void)d; return now; }
static int is_full(void *d){ (void)d; return 0; }
static struct barectf_packed_ctx ctx; static uint8_t buf[256];
static void open_(void *d){ (void)d; barectf_packed_open_packet(&ctx); }
static void close_(void *d){ (void)d; barectf_packed_close_packet(&ctx); fwrite(buf, 1, barectf_packet_buf_size(&ctx), out); }
int main(int c, char **v){
  struct barectf_platform_callbacks cb = {.slow_clock_get_value = clk, .is_backend_full = is_full, .open_packet = open_, .close_packet = close_};
  (void)c; out = fopen(v[1], "wb"); barectf_init(&ctx, buf, sizeof buf, cb, 0);
  open_(0);
  for (int i = 0; i < 12; i++) {
    now += 1500 + i; uint8_t items[4] = {1, 31, (uint8_t)i, 9}; uint16_t r0[3] = {(uint16_t)(i*41 % 512), 2, 3}, r1[3] = {511, 256, (uint16_t)i}; const uint16_t *m[2] = {r0, r1};
    now += i == 9 ? 100000000 : 0;
    barectf_trace_bits(&ctx, i & 31, i & 7, -i * 70, 0x1fffffffffULL - i, -1234567890123456789LL * i, 0x55 ^ i, i / 4.f, -i / 8.);
    now += 700;
    barectf_trace_others(&ctx, 31 - i, 7 - (i & 7), i * 5 - 30, m, i % 5, items, i & 1 ? "text" : "t", i & 7);
  }
  if (barectf_packet_is_open(&ctx) && !barectf_packet_is_empty(&ctx)) close_(0);
  fclose(out); return 0; }
