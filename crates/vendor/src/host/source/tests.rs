//! Made-up machines, as files below a folder.

use super::*;

/// Writes files of a machine.
fn put(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const STAT: &str = "\
cpu  100 10 40 1000 20 5 5 0 0 0
cpu0 50 5 20 500 10 5 0 0 0 0
cpu1 50 5 20 500 10 0 5 0 0 0
intr 582862 0 0
ctxt 1
";
/// A tenth of a second later: CPU 0 was in user mode all the time, CPU 1 idle for the most of it.
const STAT_LATER: &str = "\
cpu  110 10 41 1008 21 5 5 0 0 0
cpu0 60 5 20 500 10 5 0 0 0 0
cpu1 50 5 21 508 11 0 5 0 0 0
intr 582870 0 0
";
const MEMINFO: &str = "\
MemTotal:        4000 kB
MemFree:          500 kB
MemAvailable:    3000 kB
SwapTotal:       1000 kB
SwapFree:         900 kB
";
const DISKS: &str = "\
   7       0 loop0 9 9 9 9 9 9 9 9 0 9 9
 259       0 nvme0n1 100 1 1000 5 50 2 400 8 0 10 97
 259       1 nvme0n1p1 90 1 900 5 50 2 400 8 0 10 97
   8       0 sda 1 0 8 0 0 0 0 0 0 0 0
   8       1 sda1 1 0 8 0 0 0 0 0 0 0 0
 253       0 zram0 0 0 0 0 0 0 0 0 0 0 0
";
const NETWORK: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3245      30    0    0    0     0          0         0     3245      30    0    0    0     0       0          0
  eth0: 5000      54    0    0    0     0          0         0   700    16    0    0    0     0       0          0
";

fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let pressure = "some avg10=12.34 avg60=0.38 avg300=0.14 total=1023\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    put(
        root.path(),
        &[
            ("proc/stat", STAT),
            ("proc/meminfo", MEMINFO),
            ("proc/diskstats", DISKS),
            ("proc/net/dev", NETWORK),
            ("proc/sys/kernel/osrelease", "6.18.0\n"),
            ("proc/pressure/cpu", pressure),
            ("proc/pressure/memory", pressure),
            ("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"),
            ("sys/devices/system/cpu/present", "0-2\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n"),
            ("sys/class/powercap/intel-rapl/enabled", "1\n"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl:0/energy_uj", "5000000\n"),
            ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"),
            ("sys/class/powercap/intel-rapl:0:1/name", "dram\n"),
            ("sys/class/powercap/intel-rapl:0:1/energy_uj", "7\n"),
            ("sys/class/powercap/intel-rapl-mmio:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl-mmio:0/energy_uj", "5000000\n"),
        ],
    );
    root
}

/// The place of a device.
fn named(host: &Host, name: &str) -> usize {
    let at = host.devices().iter().position(|device| device.name == name);
    at.unwrap_or_else(|| panic!("no {name} among {:?}", host.devices()))
}

fn values(host: &Host, name: &str, quantity: Quantity) -> [u64; 4] {
    match host.read(named(host, name), quantity) {
        Ok(Reading::Host { quantity: of, values, .. }) if of == quantity => values,
        other => panic!("{name} {quantity}: {other:?}"),
    }
}

#[test]
fn a_machine_has_its_devices() {
    let root = machine();
    let host = Host::open(root.path());
    assert_eq!((host.name(), host.driver()), ("host", "6.18.0"));
    let names: Vec<&str> = host.devices().iter().map(|device| device.name.as_str()).collect();
    let expected = [
        "host",
        "CPU 0",
        "CPU 1",
        "CPU 2",
        "disk nvme0n1",
        "disk sda",
        "network eth0",
        "power package-0",
        "power package-0 dram",
    ];
    assert_eq!(names, expected);
    assert_eq!(host.quantities(1), [Quantity::Cpu, Quantity::Frequency]);
    let missing = "no frequency of 2 CPUs: sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq is not there";
    assert_eq!(host.missing(), [missing]);
    for (index, device) in (0..).zip(host.devices()) {
        assert_eq!(device.index, index);
    }
}

#[test]
fn disks_are_listed_where_the_kernel_lists_them() {
    let root = machine();
    put(root.path(), &[("sys/block/nvme0n1/size", "1"), ("sys/block/loop0/size", "1")]);
    let host = Host::open(root.path());
    let disks: Vec<&str> = host.devices().iter().filter_map(|d| d.name.strip_prefix("disk ")).collect();
    assert_eq!(disks, ["nvme0n1"]);
}

#[test]
fn values_are_those_of_the_files() {
    let root = machine();
    let host = Host::open(root.path());
    let kib = 1024;
    let memory = [1000 * kib, 3000 * kib, 4000 * kib, 100 * kib];
    assert_eq!(values(&host, "host", Quantity::HostMemory), memory);
    assert_eq!(values(&host, "host", Quantity::Pressure), [123, 123, 0, 0]);
    assert_eq!(values(&host, "CPU 0", Quantity::Frequency), [2_400_000, 0, 0, 0]);
    for name in ["host", "CPU 0", "CPU 1"] {
        assert_eq!(host.read(named(&host, name), Quantity::Cpu), Ok(Reading::Baseline));
    }
    put(root.path(), &[("proc/stat", STAT_LATER)]);
    // The file is read once for the machine and its processors, and again for the machine.
    assert_eq!(values(&host, "host", Quantity::Cpu), [1000, 100, 100, 0], "of 2000");
    put(root.path(), &[("proc/stat", "")]);
    assert_eq!(values(&host, "CPU 0", Quantity::Cpu), [1000, 0, 0, 0]);
    assert_eq!(values(&host, "CPU 1", Quantity::Cpu), [0, 100, 100, 0]);
    let zone = named(&host, "power package-0");
    assert_eq!(host.read(zone, Quantity::Energy), Ok(Reading::Energy { millijoules: 0 }));
    put(root.path(), &[("sys/class/powercap/intel-rapl:0/energy_uj", "5003000\n")]);
    assert_eq!(host.read(zone, Quantity::Energy), Ok(Reading::Energy { millijoules: 3 }));
}

#[test]
fn traffic_is_a_rate() {
    let root = machine();
    let host = Host::open(root.path());
    for (name, quantity) in [("disk nvme0n1", Quantity::Disk), ("network eth0", Quantity::Network)] {
        assert_eq!(host.read(named(&host, name), quantity), Ok(Reading::Baseline));
    }
    let later = DISKS.replace(" 1000 ", " 3000 ").replace("1 900 5 50 2 400", "1 999 5 50 2 444");
    put(
        root.path(),
        &[
            ("proc/diskstats", &later),
            ("proc/net/dev", &NETWORK.replace(" 5000 ", " 6000 ").replace(" 700 ", " 900 ")),
        ],
    );
    let expect = |name: &str, quantity, bytes: [u64; 2]| {
        let Ok(Reading::Host { values, interval, .. }) = host.read(named(&host, name), quantity) else {
            panic!("{name}")
        };
        assert_eq!(values[..2], bytes.map(|bytes| bytes * 1_000_000_000 / interval), "{name}");
    };
    expect("disk nvme0n1", Quantity::Disk, [2000 * 512, 0]);
    expect("network eth0", Quantity::Network, [200, 1000]);
}

#[test]
fn what_vanishes_is_absent_until_it_is_back() {
    let root = machine();
    let host = Host::open(root.path());
    let (one, disk) = (named(&host, "CPU 1"), named(&host, "disk sda"));
    assert_eq!(host.read(one, Quantity::Cpu), Ok(Reading::Baseline));
    assert_eq!(host.read(disk, Quantity::Disk), Ok(Reading::Baseline));
    let absent = |device, quantity| match host.read(device, quantity) {
        Err(Refusal::Absent(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(absent(named(&host, "CPU 2"), Quantity::Cpu), "it is not there", "offline from the beginning");
    put(root.path(), &[("proc/stat", "cpu  110 10 41 508 21 5 5 0\ncpu0 60 5 20 500 10 5 0 0\n")]);
    put(root.path(), &[("proc/diskstats", "")]);
    assert_eq!(absent(one, Quantity::Cpu), "it is not there");
    assert_eq!(absent(disk, Quantity::Disk), "it is not there");
    // Back, with other counters; and a disk that was not there before is none of ours.
    put(
        root.path(),
        &[("proc/stat", STAT), ("proc/diskstats", &format!("{DISKS} 8 16 sdb 1 0 8 0 0 0 0 0 0 0 0\n"))],
    );
    assert_eq!(host.read(one, Quantity::Cpu), Ok(Reading::Baseline));
    assert_eq!(host.read(disk, Quantity::Disk), Ok(Reading::Baseline));
    put(root.path(), &[("proc/stat", STAT_LATER)]);
    assert_eq!(values(&host, "CPU 1", Quantity::Cpu), [0, 100, 100, 0]);
    fs::remove_file(root.path().join("proc/meminfo")).unwrap();
    // It is still open.
    assert_eq!(values(&host, "host", Quantity::HostMemory)[2], 4000 * 1024);
}

#[test]
fn a_machine_without_files_says_once_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let host = Host::open(root.path());
    assert_eq!(host.devices().len(), 1, "{:?}", host.devices());
    assert_eq!(host.quantities(0), [Quantity::Resident]);
    let missing = host.missing();
    for what in ["no use of processors", "no memory", "no pressure", "no disks", "no networks", "no energy"] {
        assert_eq!(missing.iter().filter(|line| line.starts_with(what)).count(), 1, "{what}: {missing:?}");
    }
    assert!(matches!(host.read(0, Quantity::Resident), Err(Refusal::Absent(_))));
    assert!(matches!(host.read(0, Quantity::Power), Err(Refusal::Never(_))));
    assert!(matches!(host.read(1, Quantity::Cpu), Err(Refusal::Never(_))));
}

#[test]
fn files_of_nonsense_are_no_values() {
    let root = machine();
    let nonsense = "cpu\ncpu0 x y\n\u{0}:::\nMemTotal: -1 kB\nsome avg10=NaN\n1 2 3 4 5 6 7 8 9 10 11\n";
    let files = [
        "proc/stat",
        "proc/meminfo",
        "proc/diskstats",
        "proc/net/dev",
        "proc/pressure/cpu",
        "proc/pressure/io",
    ];
    for file in files {
        put(root.path(), &[(file, nonsense)]);
    }
    put(root.path(), &[("sys/devices/system/cpu/present", "0-99999999,x,7-3,\n")]);
    put(root.path(), &[("sys/class/powercap/intel-rapl:0/energy_uj", "many\n")]);
    let host = Host::open(root.path());
    // Of the processors, which are as many as are believed, the first and the last.
    let (count, few) = (host.devices().len(), 64);
    let devices = host.devices().iter().enumerate().filter(|(at, _)| *at < few || *at + few >= count);
    for (device, about) in devices {
        for quantity in Quantity::ALL {
            for _ in 0..2 {
                let answer = host.read(device, quantity);
                assert!(
                    !matches!(answer, Ok(Reading::Host { values, .. }) if values != [0; 4]
                    && !(about.name == "CPU 0" && quantity == Quantity::Frequency)),
                    "{}: {answer:?}",
                    about.name
                );
            }
        }
    }
}

#[test]
fn lists_of_processors() {
    assert_eq!(numbers("0-3,8"), [0, 1, 2, 3, 8]);
    assert_eq!(numbers("5"), [5]);
    assert!(numbers("").is_empty() && numbers("3-1").is_empty() && numbers("a-b").is_empty());
}

#[test]
fn the_machine_that_this_runs_on_answers() {
    let host = Host::open(Path::new("/"));
    host.follow(std::process::id());
    assert!(values(&host, "host", Quantity::Resident)[0] > 100_000);
    let [used, available, total, _] = values(&host, "host", Quantity::HostMemory);
    assert_eq!(used + available, total);
    let until = Instant::now() + std::time::Duration::from_secs(60);
    assert!(host.read(0, Quantity::Cpu).is_ok());
    while !matches!(host.read(0, Quantity::Cpu), Ok(Reading::Host { .. })) {
        assert!(Instant::now() < until, "no processor has spent a tick in a minute");
    }
}
