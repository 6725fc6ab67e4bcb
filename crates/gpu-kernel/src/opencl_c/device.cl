typedef struct {
  volatile __global uint *__hetrace_pool;
  ulong __hetrace_launch;
  uint __hetrace_kernel, __hetrace_ways, __hetrace_at, __hetrace_left, __hetrace_said, __hetrace_before, __hetrace_from;
} __hetrace_item;

/* The number of a work-item in its group, as chunks have it. */
uint __hetrace_number(void) {
  return (uint)(get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2)));
}

/* The number of a group. */
ulong __hetrace_group(void) {
  return get_group_id(0) + (ulong)get_num_groups(0) * (get_group_id(1) + (ulong)get_num_groups(1) * get_group_id(2));
}

/* What this work-item would say is lost, and all that it would say later. */
void __hetrace_lose(__private __hetrace_item *item) {
  volatile __global uint *pool = item->__hetrace_pool;
  uint slot = 16 + item->__hetrace_kernel % 124 * 4;
  uint of = atomic_cmpxchg(pool + slot, 0u, item->__hetrace_kernel + 1);
  uint sum = of == 0 || of == item->__hetrace_kernel + 1 ? slot + 2 : 514;
  if (atomic_inc(pool + sum) == 0xffffffffu) atomic_inc(pool + sum + 1);
  item->__hetrace_pool = 0;
}

/* Takes a chunk. The first is small, all others are large, if there are such. */
void __hetrace_chunk(__private __hetrace_item *item) {
  volatile __global uint *pool = item->__hetrace_pool;
  uint places = pool[2], number = __hetrace_number();
  for (uint turn = 0; turn < 64 && pool[6] == 0; turn++) {
    uint counter = (number + turn) & 31, large = (uint)(item->__hetrace_said > 0) ^ (turn >> 5);
    volatile __global uint *asked = pool + 512 + 16 * counter + (large ? 0 : 4);
    uint rows = large ? 1 : 16, first = large ? counter : 32 + counter;
    uint counts = large ? 0x7fffffff : 0xffffff;
    uint most = places > first ? ((places - first + 63) >> 6) * rows : 0;
    if ((*asked & counts) >= most) continue;
    uint taken = atomic_inc(asked) & counts;
    if (taken >= most) continue;
    /* In units of 16 bytes. */
    uint at = 256 + (taken / rows * 64 + first) * 256 + taken % rows * 16;
    volatile __global uint *head = pool + (ulong)at * 4;
    int wide = get_num_groups(1) > 65535 || get_num_groups(2) > 65535;
    ulong group = __hetrace_group();
    head[0] = (uint)item->__hetrace_launch;
    head[1] = (uint)(item->__hetrace_launch >> 32);
    head[2] = item->__hetrace_said;
    head[8] = wide ? (uint)group : (uint)get_group_id(0);
    head[9] = wide ? (uint)(group >> 32) : (uint)(get_group_id(1) | get_group_id(2) << 16);
    head[10] = number;
    head[11] = item->__hetrace_before;
    head[12] = (uint)get_local_size(0);
    head[13] = (uint)(get_local_size(1) | get_local_size(2) << 16);
    head[14] = wide ? (uint)(get_num_groups(0) * get_num_groups(1) * get_num_groups(2)) : (uint)get_num_groups(0);
    head[15] = wide ? 0x10001u : (uint)(get_num_groups(1) | get_num_groups(2) << 16);
    head[6] = item->__hetrace_kernel + 1;
    item->__hetrace_at = at + 4;
    item->__hetrace_left = large ? 252 : 12;
    item->__hetrace_before = at + (large ? 256 : 16);
    return;
  }
  pool[6] = 1;
  __hetrace_lose(item);
}

/* Says which ways the work-item went, at a site (kind 5) or at its end (kind 6). */
void __hetrace_say(__private __hetrace_item *item, uint kind) {
  if (item->__hetrace_pool && item->__hetrace_left == 0) __hetrace_chunk(item);
  if (item->__hetrace_pool) {
    volatile __global uint *record = item->__hetrace_pool + (ulong)item->__hetrace_at * 4;
    record[0] = item->__hetrace_said;
    record[1] = 1u << (__hetrace_number() & 31);
    record[2] = item->__hetrace_ways;
    record[3] = kind;
    item->__hetrace_at++;
    item->__hetrace_left--;
    item->__hetrace_said++;
  }
  item->__hetrace_ways = 1;
}

void __hetrace_begin(__private __hetrace_item *item, __global uint *pool, ulong launch, uint kernel_number, uint sample) {
  item->__hetrace_pool = pool;
  item->__hetrace_launch = launch;
  item->__hetrace_kernel = kernel_number;
  item->__hetrace_ways = 1;
  item->__hetrace_at = item->__hetrace_left = item->__hetrace_said = item->__hetrace_before = item->__hetrace_from = 0;
  if (sample > 1 && __hetrace_group() % sample != 0) item->__hetrace_pool = 0;
  else if (__hetrace_number() > 65535 || item->__hetrace_pool[6] != 0) __hetrace_lose(item);
}

/* The way of so many bits at a choice. */
void __hetrace_way(__private __hetrace_item *item, uint way, uint bits, uint site) {
  if (item->__hetrace_ways >> (32 - bits)) __hetrace_say(item, 5u << 28 | (site + 1));
  item->__hetrace_ways = item->__hetrace_ways << bits | way;
}

int __hetrace_choose(__private __hetrace_item *item, int way, uint site) {
  __hetrace_way(item, (uint)way, 1, site);
  return way;
}

/* A switch begins: the first label behind it says which. */
void __hetrace_switch(__private __hetrace_item *item) {
  item->__hetrace_from = 1;
}

void __hetrace_case(__private __hetrace_item *item, uint way, uint bits, uint site) {
  if (item->__hetrace_from) __hetrace_way(item, way, bits, site);
  item->__hetrace_from = 0;
}

void __hetrace_end(__private __hetrace_item *item) {
  __hetrace_say(item, 6u << 28);
}
