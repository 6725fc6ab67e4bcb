//! Sessions among folders with hostile content.

use std::os::unix::fs::symlink;

use super::*;
use crate::control::{Control, Flags, Settings};
use crate::folder::Folder;
use crate::options::Options;

fn settings() -> Settings {
    Settings {
        options: Options::default(),
        ring_bytes: 1 << 16,
        caps: (128, 64, 16),
        most_in_flight: 0,
        overhead_ppm: 0,
        stack_depth: 0,
        window: None,
        apis: vec![Flags { functions: vec![0; 8].into(), ..Flags::none("some".into()) }],
    }
}

fn made() -> (Folder, Control) {
    let folder = Folder::make().unwrap();
    let control = Control::make(folder.path(), &settings()).unwrap();
    (folder, control)
}

fn look(folder: &Folder) -> (Vec<Session>, Vec<Refused>) {
    sort(vec![(folder.path().to_owned(), Ok(()))])
}

#[test]
fn a_live_session_is_found_and_asked() {
    let (folder, control) = made();
    let (all, _) = live();
    let session = all.into_iter().find(|s| s.folder() == folder.path()).expect("listed");
    assert_eq!((session.launcher(), session.state()), (std::process::id(), State::Recording));
    let number = session.ask_snapshot();
    assert_eq!(control.snapshot_asked(), number);
    assert!(!session.answered(number));
    control.page().snapshot_done.store(number, Ordering::Release);
    assert!(session.answered(number) && session.is_alive());
}

#[test]
fn one_is_chosen_by_number_name_or_for_being_the_only_one() {
    let (a, _a) = made();
    let (b, _b) = made();
    let sessions = || [&a, &b].into_iter().flat_map(|folder| look(folder).0).collect::<Vec<_>>();
    let name = b.path().file_name().unwrap().to_str().unwrap();
    for asked in [name, b.path().to_str().unwrap()] {
        let chosen = choose_from(sessions(), Vec::new(), Some(asked)).unwrap();
        assert_eq!(chosen.folder(), b.path());
    }
    // Both have this process for their launcher.
    let pid = std::process::id().to_string();
    let several = choose_from(sessions(), Vec::new(), Some(&pid)).unwrap_err().to_string();
    assert!(several.starts_with("2 sessions are being recorded; say which"), "{several}");
    assert!(matches!(choose_from(sessions(), Vec::new(), None), Err(Unchosen::Several(_))));
    let none = choose_from(sessions(), Vec::new(), Some("1")).unwrap_err().to_string();
    assert!(none.starts_with("nothing that is being recorded belongs to 1"), "{none}");
    let only = choose_from(look(&a).0, Vec::new(), None).unwrap();
    assert_eq!(only.folder(), a.path());
    let nothing = choose_from(Vec::new(), Vec::new(), None).unwrap_err().to_string();
    assert!(nothing.contains("hetrace run"), "{nothing}");
}

#[test]
fn a_child_of_the_launcher_names_its_session() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let (own, other) = (std::process::id(), child.id());
    let found = (descends(other, own), descends(own, own), descends(own, other), descends(0, 0));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found, (true, true, false, false));
}

#[test]
fn hostile_control_files_are_refused_by_name() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("target");
    fs::write(&target, vec![0; CONTROL_BYTES]).unwrap();
    let fifo = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let noise = |path: &Path| fs::write(path, vec![0xa5; CONTROL_BYTES]).unwrap();
    let short = |path: &Path| fs::write(path, [1; 9]).unwrap();
    let link = |path: &Path| symlink(&target, path).unwrap();
    let plants: [&dyn Fn(&Path); 4] = [&fifo, &noise, &short, &link];
    let reasons = ["no plain file", "no control file", "has 9 bytes", "cannot open control"];
    for (plant, why) in plants.into_iter().zip(reasons) {
        let folder = Folder::make().unwrap();
        plant(&folder.path().join(CONTROL_FILE));
        let (sessions, refused) = look(&folder);
        assert!(sessions.is_empty());
        let [refused] = refused.as_slice() else { panic!("{why}: {refused:?}") };
        assert!(refused.to_string().contains(why), "{refused}");
        assert!(refused.to_string().contains(&folder.path().display().to_string()), "{refused}");
    }
    assert_eq!(fs::read(&target).unwrap(), vec![0; CONTROL_BYTES]);
}

#[test]
fn another_version_and_one_that_is_not_ready_are_not_used() {
    let (folder, made) = made();
    let file = control::open_to_write(&folder.path().join(CONTROL_FILE)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &(ABI_VERSION - 1).to_le_bytes(), 8).unwrap();
    let (_, refused) = look(&folder);
    assert!(refused[0].why.contains("another version of hetrace"), "{refused:?}");
    made.page().magic.store(0, Ordering::Release);
    let (sessions, refused) = look(&folder);
    assert!(sessions.is_empty() && refused.is_empty());
}

#[test]
fn a_session_that_is_cut_short_while_it_is_open_harms_nobody() {
    let (folder, _control) = made();
    let session = look(&folder).0.pop().unwrap();
    control::open_to_write(&folder.path().join(CONTROL_FILE)).unwrap().set_len(0).unwrap();
    control::open_reported(&folder.path().join(REPORTED_FILE)).unwrap().set_len(0).unwrap();
    session.ask_snapshot();
    assert_eq!(session.launcher(), 0);
}

#[test]
fn a_link_in_place_of_a_session_is_refused() {
    let (folder, _control) = made();
    let link = folder.path().parent().unwrap().join("0123456789abcdef0123456789abcdef");
    symlink(folder.path(), &link).unwrap();
    let (sessions, refused) = live();
    fs::remove_file(&link).unwrap();
    assert!(sessions.iter().all(|s| s.folder() != link));
    assert!(refused.iter().any(|r| r.folder == link && r.why.contains("a link")), "{refused:?}");
}

#[test]
fn numbers_of_snapshots_wrap() {
    assert!(is_done(5, 5) && is_done(6, 5) && is_done(2, u32::MAX));
    assert!(!is_done(4, 5) && !is_done(u32::MAX, 2));
}
