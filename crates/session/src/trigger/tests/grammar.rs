//! What is an expression, and that whatever is none is refused.

use proptest::prelude::*;

use super::super::lex::Op;
use super::super::syntax::{Expr, Fixed, Literal, Test, Trigger};
use super::super::units::{Number, UNITS};

fn printed(text: &str) -> String {
    text.parse::<Trigger>().unwrap_or_else(|error| panic!("{error}")).to_string()
}

#[test]
fn expressions_are_written_in_one_way() {
    for (text, one) in [
        ("toyMalloc.duration>2ms", "toyMalloc.duration > 2ms"),
        ("result!=0", "result != 0"),
        ("a.size > 1 MiB and b == 'x'", "a.size > 1MiB && b == \"x\""),
        ("a > 1 or b > 2 and c > 3", "a > 1 || b > 2 && c > 3"),
        ("(a > 1 or b > 2) and c > 3", "(a > 1 || b > 2) && c > 3"),
        ("not a > 1", "!(a > 1)"),
        ("!(a>1&&b>2)", "!(a > 1 && b > 2)"),
        ("!!crash", "!!(crash)"),
        ("((a > 1))", "a > 1"),
        ("a == 0xFF", "a == 0xff"),
        ("a == 0x10 B", "a == 0x10 B"),
        ("cl*.rate > 1000 /s", "cl*.rate > 1000/s"),
        ("gpu.temperature > 85°C", "gpu.temperature > 85°C"),
        ("a == -5", "a == -5"),
        ("a == \"say \\\"hi\\\" \\\\\"", "a == \"say \\\"hi\\\" \\\\\""),
        ("a\n>\t1.50ms", "a > 1.5ms"),
    ] {
        assert_eq!(printed(text), one);
        assert_eq!(printed(one), one);
    }
}

fn word() -> impl Strategy<Value = String> {
    // Words that are no operators.
    "[a-zA-Z_*?][a-zA-Z0-9_*?]{0,8}"
        .prop_filter("an operator", |w| !matches!(w.as_str(), "and" | "or" | "not"))
}

fn fixed() -> impl Strategy<Value = Fixed> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| Number::Int(n.into())),
        any::<u64>().prop_map(|n| Number::Hex(n.into())),
        any::<f64>().prop_filter("a number", |n| n.is_finite()).prop_map(Number::Float),
    ];
    let unit = prop::option::of(prop::sample::select(UNITS));
    prop_oneof![
        (number, unit).prop_map(|(number, unit)| Fixed::Number(number, unit)),
        any::<String>().prop_map(Fixed::Text),
        word().prop_map(Fixed::Word),
    ]
}

fn test() -> impl Strategy<Value = Expr> {
    let op = prop::sample::select(vec![Op::Equal, Op::Unequal, Op::Less, Op::AtMost, Op::More, Op::AtLeast]);
    let compared = prop::option::of((op, fixed().prop_map(|value| Literal { value, at: 0..0 })));
    (prop::collection::vec(word(), 1..4), compared).prop_map(|(words, compared)| {
        let subject = words.into_iter().map(|word| (word, 0..0)).collect();
        Expr::Test(Test { subject, compared, at: 0..0 })
    })
}

fn expr() -> impl Strategy<Value = Expr> {
    test().prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::Any),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::All),
            inner.prop_map(|part| Expr::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was_meant(expr in expr()) {
        let text = expr.to_string();
        prop_assume!(text.len() <= 4096);
        let read: Trigger = text.parse().map_err(|e| TestCaseError::fail(format!("{e}")))?;
        // Parts of the same kind inside of each other are one.
        let again = read.to_string();
        prop_assert_eq!(again.parse::<Trigger>().map(|t| t.to_string()), Ok(again.clone()));
        prop_assert_eq!(again.replace(['(', ')'], ""), text.replace(['(', ')'], ""));
    }

    #[test]
    fn noise_is_refused_and_the_place_is_shown(text in any::<String>()) {
        shown(&text);
    }

    #[test]
    fn what_is_nearly_right_is_refused_or_read(
        words in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "!", "&&", "||", "and", "or", "not", ".", "==", "<", ">=", "toyFinish", "gpu", "power", "1", "2ms",
            "0x", "-", "\"", "'", "\\", "MiB", "duration", "=", "&", "|", "°", "é", "1e9", "99999999999999999999", "/s",
        ]), 0..20),
        glue in prop::sample::select(vec!["", " "]),
    ) {
        shown(&words.join(glue));
    }
}

/// Whatever is wrong, the message has the text and something below it.
fn shown(text: &str) {
    if let Err(error) = text.parse::<Trigger>() {
        let message = error.to_string();
        let lines: Vec<&str> = message.split('\n').collect();
        assert!(lines.len() == 3 && lines[2].trim_start_matches(' ').starts_with('^'), "{message:?}");
        assert!(lines[2].chars().count() <= lines[1].chars().count() + 1, "{message}");
    }
}
