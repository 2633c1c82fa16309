//! Words of messages: names as a list, the nearest known name, and text as a message may repeat it.

/// The message for a word that is none of the known ones.
pub(crate) fn not_one_of(word: &str, known: &[&str]) -> String {
    let near = near(word, known).unwrap_or_default();
    format!("expected {}, found `{}`{near}", listed(known, "or"), shown(word))
}

/// Names as a choice or as a list: `a`, `b` or `c`.
pub fn listed(names: &[&str], last_joint: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            format!("{} {last_joint} {last}", rest.join(", "))
        }
        _ => quoted.concat(),
    }
}

/// Untrusted text as a message may repeat it: short and printable.
pub fn shown(text: &str) -> String {
    shortened(text, 40)
}

/// The same with at most this many characters.
pub fn shortened(text: &str, most: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut shown: String = plain.take(most).collect();
    if text.chars().count() > most {
        shown.push('…');
    }
    shown
}

/// `; did you mean …?` where a known name is near.
fn near(name: &str, known: &[&str]) -> Option<String> {
    let known = nearest(name, known).into_iter().next()?;
    Some(format!("; did you mean `{known}`?"))
}

/// The known names that are near, the nearest first.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let lower = name.to_lowercase().replace('-', "_");
    let distances = known.iter().map(|known| (distance(&lower, known), *known));
    let is_near =
        |(distance, known): &(usize, &str)| *distance <= known.chars().count().div_ceil(3);
    let mut near: Vec<(usize, &str)> = distances.filter(is_near).collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().map(|(_, known)| known).collect()
}

/// `; did you mean …?` where a known name is near, else which names there are.
pub fn hint(name: &str, known: &[&str]) -> String {
    near(name, known).unwrap_or_else(|| match known {
        [] => String::new(),
        known => format!("; there is {}", listed(known, "and")),
    })
}

/// How many letters have to be put in, taken out, exchanged or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) =
        (one.chars().take(64).collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, b) in other.iter().enumerate() {
            let at =
                |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX / 2);
            let cost = usize::from(a != b);
            let mut best = (at(&last, column) + cost)
                .min(at(&last, column + 1) + 1)
                .min(at(&next, column) + 1);
            let swapped = row > 0
                && column > 0
                && one.get(row - 1) == Some(b)
                && other.get(column - 1) == Some(a);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}
