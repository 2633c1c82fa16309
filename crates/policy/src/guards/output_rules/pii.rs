//! Personal data that is recognised by its form: built-in redactions.

use regex::Regex;

/// A kind of personal data: its name, its form, and what has to hold of a text of that form.
type Row = (&'static str, &'static str, fn(&str) -> bool);

const ROWS: [Row; 5] = [
    (
        "email",
        r"(?i)(?-u:\b)[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?-u:\b)",
        always,
    ),
    (
        "phone",
        r"(?:\+|(?-u:\b)00)[1-9][0-9]{0,2}[ .\-/]?(?:\(0?[0-9]{1,4}\)[ .\-/]?)?(?:[0-9]{2,5}[ .\-/]?){2,5}(?-u:\b)|(?:\([2-9][0-9]{2}\) ?|(?-u:\b)[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}(?-u:\b)",
        is_phone,
    ),
    ("credit_card", r"(?-u:\b)[2-6][0-9]{3}(?:[ -]?[0-9]{2,6}){2,4}(?-u:\b)", is_card),
    ("ssn", r"(?-u:\b)[0-8][0-9]{2}-[0-9]{2}-[0-9]{4}(?-u:\b)", is_ssn),
    (
        "iban",
        r"(?-u:\b)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?-u:\b)",
        is_iban,
    ),
];

/// The names of what can be asked for.
pub(super) const NAMES: [&str; 5] = ["email", "phone", "credit_card", "ssn", "iban"];

/// Personal data of one kind: its name, its form, and what has to hold of a text of that form.
pub(super) type Form = (&'static str, Regex, fn(&str) -> bool);

/// The personal data of this name.
pub(super) fn find(name: &str) -> Option<Form> {
    let (name, pattern, check) = ROWS.iter().find(|(known, ..)| *known == name)?;
    Some((name, Regex::new(pattern).ok()?, *check))
}

const fn always(_: &str) -> bool {
    true
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn is_phone(text: &str) -> bool {
    (8..=15).contains(&digits(text).len())
}

/// The check digit of payment cards (Luhn).
fn is_card(text: &str) -> bool {
    let digits = digits(text);
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let twice = digit * 2;
            if place % 2 == 0 { *digit } else { twice / 10 + twice % 10 }
        })
        .sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10)
}

/// Numbers that were ever given out.
fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    !matches!(parts.as_slice(), ["000" | "666", ..] | [_, "00", _] | [_, _, "0000"])
}

/// The check digits of bank accounts: modulo 97 of the number with its first four signs last.
fn is_iban(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((head, body)) = plain.split_at_checked(4) else { return false };
    if !(15..=34).contains(&plain.len()) {
        return false;
    }
    let rest = body.chars().chain(head.chars()).filter_map(|c| c.to_digit(36));
    let fold = |rest: u32, value: u32| {
        if value > 9 { (rest * 100 + value) % 97 } else { (rest * 10 + value) % 97 }
    };
    rest.fold(0, fold) == 1
}

#[cfg(test)]
mod tests {
    use super::{NAMES, find};

    #[test]
    fn personal_data_is_told_by_its_form() {
        for (name, text, holds) in [
            ("email", "alice.b+c@mail.example.com", true),
            ("email", "not@home", false),
            ("email", "user@host", false),
            ("phone", "+49 30 1234567", true),
            ("phone", "+1 (555) 234-5678", true),
            ("phone", "(555) 234-5678", true),
            ("phone", "2026-09-24", false),
            ("phone", "version 1.2.3.4", false),
            ("credit_card", "4111 1111 1111 1111", true),
            ("credit_card", "4111111111111112", false),
            ("credit_card", "378282246310005", true),
            ("credit_card", "1234567890123", false),
            ("ssn", "078-05-1120", true),
            ("ssn", "000-12-3456", false),
            ("ssn", "2026-09-24", false),
            ("iban", "DE89 3704 0044 0532 0130 00", true),
            ("iban", "GB82WEST12345698765432", true),
            ("iban", "DE89 3704 0044 0532 0130 01", false),
        ] {
            let (_, regex, check) = find(name).unwrap();
            let found = regex.find_iter(text).any(|found| check(found.as_str()));
            assert_eq!(found, holds, "{name} {text}");
        }
    }

    #[test]
    fn every_name_has_a_form() {
        for name in NAMES {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
