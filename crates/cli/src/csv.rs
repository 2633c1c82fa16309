//! Comma-separated values, as RFC 4180 has them.

/// How a field begins that a spreadsheet would take for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A line of these fields.
pub(crate) fn line<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let fields: Vec<String> = fields.into_iter().map(field).collect();
    format!("{}\r\n", fields.join(","))
}

fn field(text: &str) -> String {
    // SECURITY: strangers write what stands in receipts, and people open them in spreadsheets.
    let guard = if text.starts_with(FORMULA) { "'" } else { "" };
    if guard.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn fields_are_quoted_where_they_have_to_be_and_are_no_formulas() {
        let fields = ["a", "b, c", "say \"hi\"", "two\nlines", "=1+1", ""];
        let expected = "a,\"b, c\",\"say \"\"hi\"\"\",\"two\nlines\",\"'=1+1\",\r\n";
        assert_eq!(line(fields), expected);
    }
}
