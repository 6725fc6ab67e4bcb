//! What is understood when it is asked for is what a model has when it is understood at once: of each API that there is.

use std::path::Path;

use hetrace_model::{Function, Model};

fn models() -> impl Iterator<Item = String> {
    let apis = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apis");
    let folders = std::fs::read_dir(apis).expect("the APIs").flatten();
    let texts =
        folders.filter_map(|api| std::fs::read_to_string(api.path().join("src/generated/model.json")).ok());
    texts.inspect(|text| assert!(!text.contains('\\'), "of none an escape is understood later"))
}

/// A frame, and the lines of functions.
fn cut(text: &str) -> (&str, impl Iterator<Item = &str>) {
    let (frame, lines) = text.split_once("\"functions\":[\n").expect("functions");
    let lines = lines.strip_suffix("\n]}\n").expect("an end").split('\n');
    (&text[..frame.len() + "\"functions\":[".len()], lines.map(|line| line.strip_suffix(',').unwrap_or(line)))
}

#[test]
fn types_and_enumerations_are_the_same() {
    let mut all = 0;
    for text in models() {
        let whole: Model = serde_json::from_str(&text).expect("a model");
        let (frame, _) = cut(&text);
        let later = Model::of_frame(frame).expect("a frame as it is written");
        for (at, name) in later.types.names().enumerate() {
            assert_eq!(whole.types[at].name, name);
            assert_eq!(later.types.get(name), whole.types.iter().find(|ty| ty.name == name), "{name}");
        }
        for (at, name) in later.enums.names().enumerate() {
            assert_eq!(whole.enums[at].name, name);
            assert_eq!(later.enums.get(name), whole.enums.iter().find(|group| group.name == name), "{name}");
        }
        all += later.types.len();
        assert_eq!(Model { functions: Vec::new(), ..whole }, later);
    }
    assert!(all > 1_000, "{all} types");
}

#[test]
fn functions_are_the_same() {
    let mut all = 0;
    for text in models() {
        let whole: Model = serde_json::from_str(&text).expect("a model");
        let (_, lines) = cut(&text);
        let mut functions = whole.functions.iter();
        for line in lines {
            let function = functions.next().expect("one for each line");
            let later = || Function::of_line(line).expect("a function as it is written");
            let name = &function.name;
            assert_eq!((&later().name, &later().roles), (name, &function.roles));
            assert_eq!(later().command(), function.command.as_deref(), "{name}");
            assert_eq!(later().has_command(), function.command.is_some(), "{name}");
            assert_eq!(function.has_command(), function.command.is_some(), "{name}");
            assert_eq!(later().queue(), function.queue.as_deref(), "{name}");
            assert_eq!(later().creates(), function.creates.as_deref(), "{name}");
            assert_eq!(later().memory(), function.memory.as_ref(), "{name}");
            assert_eq!(later().made(), function.made.as_deref(), "{name}");
            assert_eq!(later().collective(), function.collective.as_deref(), "{name}");
            assert_eq!(later().communicator(), function.communicator.as_deref(), "{name}");
            let queue = function.command.as_ref().and_then(|command| command.queue.as_deref());
            assert_eq!(later().queue_of_command().as_deref(), queue, "{name}");
            assert_eq!(function.queue_of_command().as_deref(), queue, "{name}");
            let asked = later();
            for param in &function.params {
                assert_eq!(asked.param(&param.name).as_deref(), Some(param), "{name}");
                assert_eq!(function.param(&param.name).as_deref(), Some(param), "{name}");
                assert!(asked.may_mention(&param.base), "{name}");
            }
            assert!(function.creates.as_ref().is_none_or(|made| asked.may_mention(made)), "{name}");
            for made in ["", "x", function.creates.as_deref().unwrap_or("y"), function.returns.as_str()] {
                let is = function.creates.as_deref() == Some(made);
                assert_eq!([later().creates_a(made), function.creates_a(made)], [is, is], "{name}");
            }
            assert_eq!(asked.param("no parameter"), None);
            assert_eq!(later(), *function);
            assert_eq!(serde_json::to_string(&later()).expect("a text"), line);
            all += 1;
        }
        assert_eq!(functions.next(), None);
    }
    assert!(all > 5_000, "{all} functions");
}
