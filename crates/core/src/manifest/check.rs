//! The rules that a manifest keeps.

use std::collections::HashSet;
use std::hash::Hash;

use super::{MANIFEST_SCHEMA, PricingModel, RequiredPermissions, ToolManifest, ToolPricing};
use crate::money::is_currency;
use crate::signed::{ArtifactError, malformed, require_schema};
use crate::text::is_sound;

impl ToolManifest {
    /// Checks every rule that does not need a key.
    ///
    /// # Errors
    /// With the first rule that is broken.
    pub fn check(&self) -> Result<(), ArtifactError> {
        require_schema(MANIFEST_SCHEMA, &self.schema)?;
        check_name("server_id", &self.server_id)?;
        check_name("name", &self.name)?;
        check_name("version", &self.version)?;
        if self.tools.is_empty() {
            return Err(malformed("expected at least one tool, found none"));
        }
        for tool in &self.tools {
            check_name("tools[].name", &tool.name)?;
            tool.pricing.as_ref().map_or(Ok(()), ToolPricing::check)?;
        }
        if let Some(name) = repeated(self.tools.iter().map(|tool| &tool.name)) {
            return Err(malformed(format!("expected each tool name once, found `{name}` twice")));
        }
        if repeated(&self.server_tools).is_some() {
            return Err(malformed("expected each server tool once, found one twice"));
        }
        self.required_permissions.as_ref().map_or(Ok(()), RequiredPermissions::check)
    }
}

impl ToolPricing {
    fn check(&self) -> Result<(), ArtifactError> {
        let needs_base = matches!(self.pricing_model, PricingModel::Flat | PricingModel::Hybrid);
        let needs_unit = !matches!(self.pricing_model, PricingModel::Flat);
        if needs_base && self.base_price.is_none() {
            return Err(malformed("expected `base_price` for this pricing model, found none"));
        }
        if needs_unit && (self.unit_price.is_none() || self.billing_unit.is_none()) {
            return Err(malformed(
                "expected `unit_price` and `billing_unit` for this pricing model, found none",
            ));
        }
        self.billing_unit.as_ref().map_or(Ok(()), |unit| check_name("billing_unit", unit))?;
        for price in [&self.base_price, &self.unit_price].into_iter().flatten() {
            if !is_currency(&price.currency) {
                let found = &price.currency;
                return Err(malformed(format!(
                    "expected a currency of three capital letters, found `{found}`"
                )));
            }
        }
        Ok(())
    }
}

impl RequiredPermissions {
    fn check(&self) -> Result<(), ArtifactError> {
        let lists = [
            ("read_paths", &self.read_paths),
            ("write_paths", &self.write_paths),
            ("network_hosts", &self.network_hosts),
            ("environment_variables", &self.environment_variables),
        ];
        for (name, list) in lists {
            let Some(list) = list else { continue };
            list.iter().try_for_each(|entry| check_name(name, entry))?;
            if let Some(entry) = repeated(list) {
                return Err(malformed(format!(
                    "expected each entry of `{name}` once, found `{entry}` twice"
                )));
            }
        }
        Ok(())
    }
}

/// Names are not blank, have no blanks around them and no control characters inside.
fn check_name(member: &str, name: &str) -> Result<(), ArtifactError> {
    if is_sound(name) {
        return Ok(());
    }
    Err(malformed(format!(
        "expected text in `{member}` without blanks around it or control characters"
    )))
}

/// The first element that was there before.
fn repeated<T: Eq + Hash + Copy>(elements: impl IntoIterator<Item = T>) -> Option<T> {
    let mut seen = HashSet::new();
    elements.into_iter().find(|element| !seen.insert(*element))
}
