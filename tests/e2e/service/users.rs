//! Sessions of several users, for root.

use super::*;

/// Users who have nothing else to do here, and their services.
struct Others {
    users: [u32; 2],
    services: Vec<Child>,
}

impl Others {
    fn begin(bench: &Bench, users: [u32; 2]) -> Self {
        let spawn = |user: u32| {
            let mut command = Command::new(hetrace());
            command.arg("service").uid(user).gid(user).current_dir(bench.scratch.path());
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("a service")
        };
        let others = Others { users, services: users.map(spawn).into() };
        for user in users {
            bench.until("services", || others.status(user)["service"].is_object());
        }
        others
    }

    fn status(&self, user: u32) -> Value {
        let done = run(Command::new(hetrace()).args(["status", "--json"]).uid(user).gid(user));
        serde_json::from_str(&done.out).expect("JSON")
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for service in &mut self.services {
            let _ = service.kill();
            let _ = service.wait();
        }
        self.users.iter().for_each(|user| _ = fs::remove_dir_all(format!("/dev/shm/hetrace-{user}")));
    }
}

/// Begins a program of a user, dormant.
fn begin_as(bench: &mut Bench, name: &str) {
    let mut command = Command::new(program("windows"));
    let place = bench.path(&format!("place-{name}"));
    fs::create_dir(&place).expect("a folder");
    let uid: u32 = name.parse().expect("a number");
    std::os::unix::fs::chown(&place, Some(uid), Some(uid)).expect("its owner");
    bench.user = Some(uid);
    command.args(["launch:6"]).stdout(Stdio::null()).uid(uid).gid(uid).current_dir(&place);
    command.envs(Platform::Pocl.environment(bench.scratch.path()));
    command.env("HOME", &place).env("POCL_CACHE_DIR", place.join("cache")).envs(bench.variables(&[]));
    bench.begin(&mut command);
}

#[test]
fn root_begins_and_ends_sessions_of_users_each_in_a_folder_of_its_own() {
    if user() != 0 {
        eprintln!("SKIPPED: this test needs root, to be other users");
        return;
    }
    let mut bench = Bench::new(None);
    let [a, b] = [SOMEBODY + 1, SOMEBODY + 2];
    let (both, named) = (format!("{a},{b}"), [a.to_string(), b.to_string()]);
    let refused = bench.hetrace(&["start", "--user", &named[0], "-o", "early"]);
    assert!(refused.status == 125 && refused.err.contains("no service of this user"), "{}", refused.err);
    assert!(!bench.path("early").exists(), "nothing is left of it");
    let mut others = Others::begin(&bench, [a, b]);
    bench.well(&["start", "--user", &both, "-o", "all", "-m", "minimal"]);
    named.iter().for_each(|name| begin_as(&mut bench, name));
    bench.user = None;
    bench.ended();
    let status = bench.status();
    for name in &named {
        let session = &status["users"][name]["service"]["session"];
        assert!(
            session["trace"].as_str().is_some_and(|t| t.contains(&format!("all/{name}/trace"))),
            "{status}"
        );
    }
    let shown = bench.well(&["status"]);
    assert!(shown.contains(&format!("{a}  service  process")), "{shown}");
    bench.well(&["pause", "--user", &both]);
    assert_eq!(bench.status()["users"][&named[1]]["service"]["session"]["paused"], true);
    bench.well(&["resume", "--user", &both]);
    let said = bench.well(&["stop", "--user", &both]);
    assert!(said.contains(&format!("hetrace: {a}: ")) && said.contains(&format!("hetrace: {b}: ")), "{said}");
    let mode = |path: &Path| {
        path.symlink_metadata().map(|m| (m.uid(), m.permissions().mode() & 0o777)).expect("a folder")
    };
    assert_eq!(mode(&bench.path("all")), (0, 0o711));
    for (name, uid) in named.iter().zip([a, b]) {
        assert_eq!(mode(&bench.path("all").join(name)), (uid, 0o700));
        assert_eq!(mode(&bench.path("all").join(name).join("trace")), (uid, 0o700));
        assert_eq!(calls(&bench.seen(&format!("all/{name}/trace")), LAUNCH), 6);
    }
    // What is a user's own is nobody else's.
    let other = run(Command::new("ls").arg(bench.path("all").join(&named[0])).uid(b).gid(b));
    assert_ne!(other.status, 0);
    let refused = run(Command::new(hetrace()).args(["stop", "--user", &named[0]]).uid(b).gid(b));
    assert!(refused.status == 125 && refused.err.contains("apart"), "{}", refused.err);
    // One of them has ended its service: the other is recorded nevertheless, and the failure shows.
    others.services[0].kill().and_then(|()| others.services[0].wait()).expect("its end");
    let some = bench.hetrace(&["start", "--user", &both, "-o", "some"]);
    assert!(some.status == 125 && some.err.contains(&format!("not begun for {a}")), "{}", some.err);
    assert!(others.status(b)["service"]["session"].is_object());
    assert!(!bench.path("some").join(&named[0]).exists() && bench.path("some").join(&named[1]).exists());
    bench.well(&["stop", "--user", &named[1]]);
}

#[test]
fn what_a_user_puts_in_the_way_is_not_followed() {
    if user() != 0 {
        eprintln!("SKIPPED: this test needs root, to be other users");
        return;
    }
    let bench = Bench::new(None);
    let (a, victim) = (SOMEBODY + 3, SOMEBODY + 4);
    // Another's folder under this user's name, and this user's name as a link.
    let (folder, link) = (format!("/dev/shm/hetrace-{a}"), format!("/dev/shm/hetrace-{victim}"));
    fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::chown(&folder, Some(victim), Some(victim)).expect("its owner");
    std::os::unix::fs::symlink("/", &link).expect("a link");
    let status = bench.status();
    let users = status["users"].as_object().expect("users");
    let removed = fs::remove_dir(&folder).is_ok() && fs::remove_file(&link).is_ok();
    assert!(
        removed && !users.contains_key(&a.to_string()) && !users.contains_key(&victim.to_string()),
        "{status}"
    );
    // A folder that is there already is nobody's to give away.
    fs::create_dir(bench.path("there")).expect("a folder");
    let refused = bench.hetrace(&["start", "--user", &a.to_string(), "-o", "there"]);
    assert_eq!(refused.status, 125, "{}", refused.err);
    assert_eq!(fs::read_dir(bench.path("there")).expect("a folder").count(), 0);
}

#[test]
fn of_all_users_those_are_asked_who_have_a_service() {
    if user() != 0 {
        eprintln!("SKIPPED: this test needs root, to be other users");
        return;
    }
    let bench = Bench::new(None);
    let (a, b, without) = (SOMEBODY + 5, SOMEBODY + 6, SOMEBODY + 7);
    let script = format!(
        "serve() {{ exec setpriv --reuid $1 --regid $1 --clear-groups \"$HETRACE\" service; }}; \
         serve {a} 2>said-a & A=$!; serve {b} 2>said-b & B=$!; \
         setpriv --reuid {without} --regid {without} --clear-groups \"$HETRACE\" env >/dev/null; \
         until [ $(\"$HETRACE\" status | grep -c 'nothing is being recorded') = 2 ]; do sleep 0.1; done; \
         \"$HETRACE\" pause --all-users 2>&1; echo paused $?; \"$HETRACE\" start --all-users 2>&1; echo started $?; \
         \"$HETRACE\" status; \"$HETRACE\" stop --all-users 2>&1; echo stopped $?; kill $A $B; wait; ls hetrace-users-1"
    );
    let done = apart(bench.scratch.path(), "64M", &script);
    let has = |text: &str| done.out.contains(text);
    assert!(has("paused 125") && has("none of these users has a session"), "{done:?}");
    assert!(has("started 0") && has("stopped 0"), "{done:?}");
    assert!(has(&format!("{without}  service  not running")), "{done:?}");
    let folders: Vec<&str> = done.out.lines().rev().take(2).collect();
    assert_eq!(folders, [b.to_string(), a.to_string()], "{done:?}");
}
