//! Deprecations that headers have in comments alone.

/// Looks for a line of a function's comment that begins as one of `beginnings`. Returns the version that the line names
/// (`since 1.2`), if any, or `None` if there is no such line.
pub fn said(comment: &str, beginnings: &[String]) -> Option<Option<String>> {
    comment.lines().find_map(|line| {
        let text = line.trim_start().trim_start_matches(['/', '*']).trim_start();
        let text = text.strip_prefix("- ").unwrap_or(text).trim_start();
        let rest = beginnings.iter().find_map(|beginning| text.strip_prefix(beginning.as_str()))?;
        let version = rest.trim_start().strip_prefix("since ").map(|version| {
            let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
            version[..end].trim_end_matches('.').to_owned()
        });
        Some(version.filter(|version| !version.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(comment: &str) -> Option<Option<String>> {
        said(
            comment,
            &["@deprecated".to_owned(), "[DEPRECATED]".to_owned(), "This API is deprecated".to_owned()],
        )
    }

    #[test]
    fn a_line_that_says_so_is_found_with_its_version() {
        let comment = "/// @brief Begins\n///\n/// @details\n///     - @deprecated since 1.10. Please use toyBegin2()\n";
        assert_eq!(found(comment), Some(Some("1.10".to_owned())));
        assert_eq!(found("///     - [DEPRECATED] No longer supported."), Some(None));
        assert_eq!(found("/*\n * This API is deprecated. Please use\n */"), Some(None));
    }

    #[test]
    fn what_is_said_of_others_is_not_meant() {
        assert_eq!(found("///     - Calls to toyBegin[DEPRECATED] do not alter it"), None);
        assert_eq!(found("/// @brief Ends; not @deprecated"), None);
        assert_eq!(said("/// @deprecated", &[]), None);
    }
}
