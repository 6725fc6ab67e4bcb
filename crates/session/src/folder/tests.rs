//! Session folders among hostile and hasty neighbours.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

fn base() -> tempfile::TempDir {
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), Permissions::from_mode(0o1777)).unwrap();
    base
}

fn usual(base: &Path) -> PathBuf {
    base.join(format!("{PREFIX}{}", user()))
}

fn fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn nothing_is_left() {
    let base = base();
    let folder = make_in(base.path()).unwrap();
    assert!(folder.path().starts_with(usual(base.path())) && is_alive(folder.path()) == Some(true));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.path()), mode(folder.path().parent().unwrap())), (0o700, 0o700));
    drop(folder);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a_pipe_a_link_and_a_file_in_our_place_are_left_alone() {
    let elsewhere = tempfile::tempdir().unwrap();
    for plant in [
        fifo as fn(&Path),
        |path| fs::write(path, "").unwrap(),
        |path| {
            symlink(std::env::temp_dir(), path).unwrap();
        },
    ] {
        let base = base();
        plant(&usual(base.path()));
        assert!(abandoned_in(base.path()).is_empty());
        let folder = make_in(base.path()).unwrap();
        assert!(!folder.path().starts_with(usual(base.path())), "{:?}", folder.path());
        assert!(folder.path().starts_with(base.path()));
        drop(folder);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1, "what was planted stays, nothing else");
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_pipe_for_a_lock_hangs_nobody() {
    let base = base();
    make_own(&usual(base.path())).unwrap();
    for (name, plant) in [("a", fifo as fn(&Path)), ("b", |path| symlink("/dev/zero", path).unwrap())] {
        let session = usual(base.path()).join(name);
        make_own(&session).unwrap();
        plant(&session.join(LOCK));
        assert_eq!(is_alive(&session), None);
    }
    assert!(abandoned_in(base.path()).is_empty());
    make_in(base.path()).unwrap();
}

#[test]
fn a_base_in_which_others_may_exchange_our_files_is_not_used() {
    let base = base();
    fs::set_permissions(base.path(), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(make_in(base.path()).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn sessions_of_the_dead_are_found_and_those_of_the_living_are_not() {
    let base = base();
    let (dead, living) = (make_in(base.path()).unwrap(), make_in(base.path()).unwrap());
    let path = dead.path().to_owned();
    dead.leave();
    assert_eq!(is_alive(&path), Some(false));
    let found = abandoned_in(base.path());
    assert_eq!(found.iter().map(Folder::path).collect::<Vec<_>>(), [&*path]);
    // Taken: for no other.
    assert!(abandoned_in(base.path()).is_empty());
    assert!(
        is_alive(&path) == Some(false) && is_being_cleared(&path),
        "no launcher lives, whoever clears away"
    );
    drop(found);
    assert!(!path.exists() && living.path().exists());
}

/// Between making a folder and locking it, others clear away.
#[test]
fn many_starts_at_once_lose_no_folder() {
    let base = base();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sweepers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        drop(abandoned_in(base.path()));
                    }
                })
            })
            .collect();
        let makers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let folder = make_in(base.path()).expect("a folder");
                        thread::yield_now();
                        assert!(folder.path().join(LOCK).exists(), "cleared away while in use");
                    }
                })
            })
            .collect();
        let made: Vec<_> = makers.into_iter().map(|maker| maker.join()).collect();
        done.store(true, Ordering::Relaxed);
        sweepers.into_iter().for_each(|s| s.join().unwrap());
        assert!(made.iter().all(Result::is_ok));
    });
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a_base_without_room_comes_last_or_not_at_all() {
    let bases = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let room = |path: &Path| match path.to_str() {
        Some("full") => Some(4096),
        Some("small") => Some(1 << 20),
        Some("large") => Some(1 << 30),
        _ => None,
    };
    let order = |names: &[&str]| roomy(bases(names), room).unwrap();
    assert_eq!(order(&["small", "full", "missing", "large"]), bases(&["large", "small"]));
    assert_eq!(roomy(bases(&["full", "missing"]), room).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn folders_of_others_that_begin_alike_are_left_alone() {
    let base = base();
    let others = ["hetrace-results/empty", "hetrace-0-17-0", "hetrace-perfetto-1-ThreadId(2)"];
    let own = usual(base.path()).join("notes");
    for path in others.iter().map(|o| base.path().join(o)).chain([own.clone()]) {
        fs::create_dir_all(path).unwrap();
    }
    assert!(abandoned_in(base.path()).is_empty());
    assert!(own.is_dir() && others.iter().all(|o| base.path().join(o).is_dir()));
}
