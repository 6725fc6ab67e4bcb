//! Command lines that are not quite ours.

use super::*;
use crate::command_line::whole;

fn line(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn a_program_needs_no_run() {
    let command = whole();
    let implied = |words: &[&str]| with_implied_run(line(words), &command);
    assert_eq!(implied(&["hetrace", "./app", "-x"]), ["hetrace", "run", "--", "./app", "-x"]);
    assert_eq!(implied(&["hetrace", "tally"]), ["hetrace", "tally"]);
    assert_eq!(implied(&["hetrace", "--version"]), ["hetrace", "--version"]);
    assert_eq!(implied(&["hetrace"]), ["hetrace"]);
}

#[test]
fn a_command_that_is_not_one_is_corrected() {
    let command = whole();
    let said =
        |word: &str| no_command(&line(&["hetrace", word, "x"]), &command, Some(OsStr::new("/bin:/usr/bin")));
    for (wrong, right) in [
        ("taly", "tally"),
        ("timelien", "timeline"),
        ("snapshto", "snapshot"),
        ("lnt", "lint"),
        ("wyh", "why"),
    ] {
        let said = said(wrong).unwrap();
        assert!(said.contains(&format!("did you mean `hetrace {right}`?")), "{wrong}: {said}");
    }
    assert!(said("qqqqqq").unwrap().contains("--help"));
    // Programs, commands, and paths, of which the launcher says what is wrong.
    for right in ["sh", "tally", "./taly", "--help"] {
        assert_eq!(said(right), None, "{right}");
    }
    assert_eq!(no_command(&line(&["hetrace", "taly"]), &command, None), None);
}

#[test]
fn a_misplaced_option_is_placed() {
    let command = whole();
    let said = |words: &[&str]| {
        let error = command.clone().try_get_matches_from(words).unwrap_err();
        misplaced(&error, &line(words), &command).unwrap_or_default()
    };
    let run = said(&["hetrace", "run", "--stats", "./app"]);
    assert!(run.contains("`--stats` is an option of `tally`"), "{run}");
    assert!(run.contains("hetrace run -- PROGRAM --stats"), "{run}");
    let nobodys = said(&["hetrace", "run", "--no-such-thing", "./app"]);
    assert!(!nobodys.contains("is an option of"), "{nobodys}");
    assert!(nobodys.contains("hetrace run -- PROGRAM --no-such-thing"), "{nobodys}");
    let before = said(&["hetrace", "--mode=full", "./app"]);
    assert!(before.contains("hetrace run --mode … -- PROGRAM"), "{before}");
    let short = said(&["hetrace", "-m", "full", "./app"]);
    assert!(short.contains("hetrace run -m … -- PROGRAM"), "{short}");
    let reader = said(&["hetrace", "why", "--sarif"]);
    assert_eq!(reader, "`--sarif` is an option of `lint`");
}
