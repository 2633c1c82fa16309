//! The words of documents for the variants of an enum.

use strum::VariantArray;

/// Each variant with its word.
pub(crate) fn words<T: VariantArray + Copy + Into<&'static str>>() -> Vec<(&'static str, T)> {
    T::VARIANTS.iter().map(|variant| ((*variant).into(), *variant)).collect()
}
