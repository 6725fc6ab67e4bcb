//! What people type: mistakes, statuses, variables, `hetrace.toml`, manual pages, completions.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::{Platform, hetrace, trace};

/// Runs hetrace in a folder, with no settings but these.
fn line(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = Command::new(hetrace());
    command.current_dir(folder).args(words).env("HOME", folder).env_remove("XDG_CONFIG_HOME");
    run(command.envs(variables.iter().copied()))
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("scratch")
}

/// Each status of the manual page.
#[test]
fn statuses_are_those_of_the_manual() {
    let folder = scratch();
    let status = |words: &[&str]| line(folder.path(), words, &[]).status;
    let manual = line(folder.path(), &["man"], &[]).out;
    let said = manual.split("EXIT STATUS").nth(1).expect("a section");
    for (documented, words) in [
        ("0", &["run", "-q", "--", "true"][..]),
        ("1", &["check", "hetrace-true-1"]),
        ("2", &["tally", "--no-such-option"]),
        ("2", &["run", "--flight", "1s", "--trigger", "clFinish.durat > 1s", "--", "true"]),
        ("2", &["run", "--flight", "0s", "--", "true"]),
        ("2", &["run", "--duration", "0s", "--", "true"]),
        ("2", &["run", "--os", "off", "--rotate-every", "0s", "--", "true"]),
        ("2", &["check", "/etc/passwd"]),
        ("125", &["tally", "no-such-trace"]),
        ("125", &["run", "-o", "hetrace-true-1", "--", "true"]),
        ("126", &["run", "--", "/etc/passwd"]),
        ("127", &["run", "--", "./no-such-program"]),
        ("127", &["no-such-command-or-program"]),
    ] {
        if words[0] == "check" && documented == "1" {
            std::fs::remove_file(folder.path().join("hetrace-true-1/hetrace/manifest.json"))
                .expect("the manifest");
        }
        assert_eq!(status(words).to_string(), documented, "{words:?}");
        assert!(said.contains(documented), "{documented} is not in the manual");
    }
    // The program's own, and its end by a signal.
    assert_eq!(status(&["run", "-q", "--", "sh", "-c", "exit 42"]), 42);
    assert_eq!(status(&["run", "-q", "--", "sh", "-c", "kill -TERM $$"]), 128 + 15);
    assert!(said.contains("128+n"));
}

/// Statuses of the commands that look for something.
#[test]
fn what_is_found_is_a_status() {
    let folder = scratch();
    let status = |words: &[&str]| line(folder.path(), words, &[]).status;
    let bad = trace(Platform::Pocl, &["linked", "1"]);
    let path = bad.folder.display().to_string();
    assert_eq!(status(&["check", &path]), 0);
    assert_eq!(status(&["lint", "--fail-on", "never", &path]), 0);
    let any = line(folder.path(), &["lint", "--json", "--fail-on", "never", &path], &[]).out;
    let findings: serde_json::Value = serde_json::from_str(&any).expect("JSON");
    let found = findings["findings"].as_array().is_some_and(|list| !list.is_empty());
    assert_eq!(status(&["lint", "--fail-on", "hint", &path]), i32::from(found));
    assert_eq!(status(&["diff", "--fail-on", "50%", &path, "--", &path]), 0);
    assert_eq!(status(&["cost", "--runs", "2", "--", "false"]), 1);
}

/// In a pipe `COLUMNS` counts; the locale does everywhere.
#[test]
fn reports_fit_80_columns_and_a_locale_of_ascii() {
    let folder = scratch();
    let one = trace(Platform::Pocl, &["faults", "blocking"]);
    let two = trace(Platform::Pocl, &["faults", "arguments"]);
    let (one, two) = (one.folder.display().to_string(), two.folder.display().to_string());
    let reports: [&[&str]; 10] = [
        &["tally", &one],
        &["tally", "--stats", "--by", "thread", &one],
        &["why", &one],
        &["why", "--gaps", "--top", "50", &one],
        &["diff", &one, "--", &two],
        &["diff", "--by", "name,copy", &one, "--", &two],
        &["lint", "--fail-on", "never", &one],
        &["postmortem", &one],
        &["print", "-c", &one],
        &["check", &one],
    ];
    for words in reports {
        let done = line(folder.path(), words, &[("COLUMNS", "80"), ("LC_ALL", "C")]);
        assert_eq!(done.status, 0, "{words:?}: {}", done.err);
        assert!(!done.out.is_empty() && done.out.is_ascii(), "{words:?}: {}", done.out);
        // Calls with their arguments are as long as they are.
        let of_tables = !matches!(words[0], "lint" | "postmortem" | "print" | "check");
        // A command to be typed is in one piece.
        let lines = done.out.lines().filter(|line| of_tables && !line.starts_with("Next: "));
        let wide = lines.into_iter().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{words:?}");
    }
    // A command to be typed and a path are in one piece here, too.
    let doctor = line(folder.path(), &["doctor"], &[("COLUMNS", "80")]);
    let says = |line: &str| line.chars().skip(24).collect::<String>();
    let wide = doctor.out.lines().filter(|line| line.chars().count() > 80 && says(line).contains(' '));
    assert_eq!(wide.filter(|line| !says(line).starts_with("fix: ")).collect::<Vec<_>>(), [""; 0], "doctor");
    let json = line(folder.path(), &["why", "--json", &one], &[("LC_ALL", "C")]);
    assert!(serde_json::from_str::<serde_json::Value>(&json.out).is_ok(), "{}", json.out);
}

#[test]
fn a_word_that_is_nearly_a_command_is_corrected() {
    let folder = scratch();
    let done = line(folder.path(), &["taly", "--by", "thread"], &[]);
    assert_eq!(done.status, 127);
    assert!(done.err.contains("did you mean `hetrace tally`?"), "{}", done.err);
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 0, "nothing is recorded");
    // A program of that name is one.
    std::fs::write(folder.path().join("taly"), "#!/bin/sh\nexit 5\n").expect("a script");
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("taly"), mode).expect("mode");
    let here = line(folder.path(), &["taly"], &[]);
    assert!(here.status == 127 && here.err.contains("`hetrace ./taly`"), "{}", here.err);
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    assert_eq!(line(folder.path(), &["taly"], &[("PATH", &path)]).status, 5);
    assert_eq!(line(folder.path(), &["./taly"], &[]).status, 5);
}

#[test]
fn an_option_on_the_wrong_side_is_placed() {
    let folder = scratch();
    let done = line(folder.path(), &["run", "--stats", "./app"], &[]);
    assert_eq!(done.status, 2);
    assert!(done.err.contains("`--stats` is an option of `tally`"), "{}", done.err);
    assert!(done.err.contains("hetrace run -- PROGRAM --stats"), "{}", done.err);
    let before = line(folder.path(), &["-m", "full", "./app"], &[]);
    assert_eq!(before.status, 2);
    assert!(before.err.contains("hetrace run -m … -- PROGRAM"), "{}", before.err);
}

/// The command line is stronger than a variable, a variable stronger than the file, the file than the default.
#[test]
fn settings_have_an_order() {
    let folder = scratch();
    let written = |options: &[&str], variables: &[(&str, &str)], name: &str| {
        let done = line(folder.path(), &[&["run"], options, &["--", "true"]].concat(), variables);
        assert_eq!(done.status, 0, "{}", done.err);
        assert!(folder.path().join(name).join("metadata").exists(), "no {name}: {}", done.err);
    };
    written(&[], &[], "hetrace-true-1");
    std::fs::write(folder.path().join("hetrace.toml"), "[run]\noutput = \"of-file\"\n").expect("a file");
    written(&[], &[], "of-file");
    written(&[], &[("HETRACE_CONFIG", "")], "hetrace-true-2");
    written(&[], &[("HETRACE_OUTPUT", "of-variable")], "of-variable");
    written(&["-o", "of-line"], &[("HETRACE_OUTPUT", "of-another")], "of-line");
}

#[test]
fn doctor_names_the_file_that_is_in_force() {
    let folder = scratch();
    let doctor = |variables: &[(&str, &str)]| {
        let done = line(folder.path(), &["doctor"], variables);
        let line = done.out.lines().find(|l| l.contains("hetrace.toml")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{}", done.out))
    };
    assert!(doctor(&[]).contains("none"));
    let own = folder.path().join(".config/hetrace");
    std::fs::create_dir_all(&own).expect("folder");
    std::fs::write(own.join("hetrace.toml"), "[tally]\ntop = 3\n").expect("a file");
    assert!(doctor(&[]).contains(".config/hetrace/hetrace.toml: sets 1 option"), "{}", doctor(&[]));
    std::fs::write(folder.path().join("hetrace.toml"), "[tally]\ntop = 3\nstats = true\n").expect("a file");
    assert!(doctor(&[]).contains("/hetrace.toml: sets 2 options"), "{}", doctor(&[]));
    // Another user's, or one that all may write, is not used.
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    std::fs::set_permissions(folder.path().join("hetrace.toml"), open).expect("mode");
    assert!(doctor(&[]).contains("not used"), "{}", doctor(&[]));
}

#[test]
fn a_wrong_file_is_an_error_that_says_where() {
    let folder = scratch();
    std::fs::write(folder.path().join("hetrace.toml"), "[run]\n\nmdoe = \"full\"\n").expect("a file");
    let done = line(folder.path(), &["true"], &[]);
    assert_eq!(done.status, 2);
    assert!(done.err.contains("hetrace.toml:3: no option of `run` is called `mdoe`"), "{}", done.err);
    assert!(done.err.contains("did you mean `mode`?"), "{}", done.err);
    let doctor = line(folder.path(), &["doctor"], &[]);
    assert!(doctor.status == 1 && doctor.out.contains("hetrace.toml:3"), "{}", doctor.out);
    assert_eq!(line(folder.path(), &["--help"], &[]).status, 0);
    let missing = line(folder.path(), &["true"], &[("HETRACE_CONFIG", "/no/such.toml")]);
    assert!(missing.status == 2 && missing.err.contains("/no/such.toml"), "{}", missing.err);
}

#[test]
fn flags_have_variables_that_say_yes_and_no() {
    let folder = scratch();
    let quiet = |value: &str| line(folder.path(), &["run", "--", "true"], &[("HETRACE_QUIET", value)]);
    assert_eq!(quiet("1").status, 0);
    assert_eq!(quiet("no").status, 0);
    let wrong = quiet("perhaps");
    assert!(wrong.status == 2 && wrong.err.contains("--quiet"), "{}", wrong.err);
    let json = line(folder.path(), &["doctor"], &[("HETRACE_DOCTOR_JSON", "true")]);
    assert!(json.out.starts_with('['), "{}", json.out);
}

#[test]
fn each_command_has_a_page() {
    let folder = scratch();
    let written = line(folder.path(), &["man", "--write", "pages"], &[]);
    assert_eq!(written.status, 0, "{}", written.err);
    let page = line(folder.path(), &["man", "tally"], &[]).out;
    assert_eq!(page, std::fs::read_to_string(folder.path().join("pages/hetrace-tally.1")).expect("the page"));
    assert!(page.contains(".TH") && page.contains("HETRACE_TALLY_BY"), "{page}");
    let none = line(folder.path(), &["man", "taly"], &[]);
    assert!(none.status == 125 && none.err.contains("did you mean `hetrace man tally`?"), "{}", none.err);
    if Command::new("man").arg("--version").output().is_err() {
        return;
    }
    // What reads pages has nothing to say against any of them.
    for page in std::fs::read_dir(folder.path().join("pages")).expect("pages") {
        let page = page.expect("a page").path();
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-P", "cat", "-l"]).arg(&page).env("MANWIDTH", "80");
        let done = run(&mut man);
        assert_eq!((done.status, &*done.err), (0, ""), "{}", page.display());
    }
}

/// Each shell reads what is made for it, and completes commands, options, values, and the names of APIs.
#[test]
fn shells_complete() {
    let folder = scratch();
    let of = |shell: &str| line(folder.path(), &["completions", shell], &[]).out;
    let bash = folder.path().join("hetrace.bash");
    std::fs::write(&bash, of("bash")).expect("a file");
    let ask = format!(
        "source {}; COMP_WORDS=(hetrace \"$@\"); COMP_CWORD=$#; _hetrace hetrace \"${{@: -1}}\" \"${{@: -2:1}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        bash.display()
    );
    let completed = |words: &[&str]| run(Command::new("bash").args(["-c", &ask, "bash"]).args(words)).out;
    assert!(completed(&["ta"]).lines().any(|l| l == "tally"), "{}", completed(&["ta"]));
    assert!(completed(&["run", "--mo"]).lines().any(|l| l == "--mode"));
    assert!(completed(&["run", "--mode", ""]).lines().any(|l| l == "minimal"));
    assert!(completed(&["run", "--trace", ""]).lines().any(|l| l == "opencl"));
    assert!(completed(&["model", "open"]).lines().any(|l| l == "opencl"));
    for (shell, check) in [("zsh", &["-n"][..]), ("fish", &["--no-execute"])] {
        if Command::new(shell).arg("--version").output().is_err() {
            eprintln!("no {shell} here: not tested");
            continue;
        }
        let file = folder.path().join(shell);
        std::fs::write(&file, of(shell)).expect("a file");
        let done = run(Command::new(shell).args(check).arg(&file));
        assert_eq!((done.status, &*done.err), (0, ""), "{shell}");
    }
    assert!(of("fish").contains("opencl") && of("zsh").contains("opencl"));
}
