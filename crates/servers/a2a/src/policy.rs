//! What an operator expects of a partner's card. Discovery fails when the card says otherwise.

use crate::card::{Card, Skill};
use crate::error::AgentError;
use crate::interface::Interface;

/// What an operator expects of a partner's card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct A2aPartnerPolicy {
    partner: String,
    tenant: Option<String>,
    skills: Vec<String>,
    schemes: Vec<String>,
    origins: Vec<String>,
}

builders! { A2aPartnerPolicy:
    /// As this, and the selected interface is of this tenant.
    with_required_tenant(self, tenant: impl Into<String>) {
        self.tenant = Some(tenant.into()).filter(|tenant| !tenant.trim().is_empty());
    }

    /// As this, and the card has a skill of this id.
    require_skill(self, skill: impl Into<String>) { add(&mut self.skills, skill.into()); }

    /// As this, and the card declares a security scheme of this name and asks for it.
    require_security_scheme(self, scheme: impl Into<String>) {
        add(&mut self.schemes, scheme.into());
    }

    /// As this, and interfaces of this origin may be used; of no other once there is one. What only the
    /// agent may have goes there as well, and to a token endpoint there.
    allow_interface_origin(self, origin: impl Into<String>) {
        let origin: String = origin.into();
        add(&mut self.origins, origin.trim_end_matches('/').to_ascii_lowercase());
    }
}

impl A2aPartnerPolicy {
    /// A policy for the partner of this name that expects nothing yet.
    pub fn new(partner: impl Into<String>) -> Self {
        Self { partner: partner.into().trim().to_owned(), ..Self::default() }
    }

    /// The partner's name, if it has one.
    pub(crate) fn partner(&self) -> Option<&str> {
        Some(self.partner.as_str()).filter(|partner| !partner.is_empty())
    }

    /// Whether interfaces of an origin may be used.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.origins.is_empty() || self.lists(origin)
    }

    /// Whether an origin was allowed by its name.
    pub(crate) fn lists(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed == origin)
    }

    /// Whether an interface is of the tenant that is expected.
    pub(crate) fn prefers(&self, interface: &Interface) -> bool {
        self.tenant.is_none() || self.tenant == interface.tenant
    }

    /// Why no interface may be used.
    pub(crate) fn no_origin(&self, offered: &str) -> AgentError {
        self.refuse(&format!(
            "expected an interface of one of {}, found only `{offered}`",
            listed(&self.origins)
        ))
    }

    /// Checks a card and the interface that was selected.
    ///
    /// # Errors
    /// With the first expectation that does not hold.
    pub(crate) fn check(&self, card: &Card, interface: &Interface) -> Result<(), AgentError> {
        if let Some(expected) = self.tenant.as_deref().filter(|_| !self.prefers(interface)) {
            let found = interface.tenant.as_deref();
            let found = found.map_or("none".to_owned(), |tenant| format!("`{tenant}`"));
            let at = &interface.url;
            return Err(self.refuse(&format!(
                "expected tenant `{expected}` of interface `{at}`, found {found}"
            )));
        }
        self.skills.iter().try_for_each(|skill| self.check_skill(card, skill))?;
        self.schemes.iter().try_for_each(|scheme| self.check_scheme(card, scheme))
    }

    fn check_skill(&self, card: &Card, id: &str) -> Result<(), AgentError> {
        let skill = card.skills.iter().find(|skill| skill.id == id);
        let skill =
            skill.ok_or_else(|| self.refuse(&format!("expected skill `{id}`, found none")))?;
        if skill.accepts(card).any() {
            return Ok(());
        }
        Err(self.refuse(&format!(
            "expected text or JSON among the input modes of skill `{id}`, found neither"
        )))
    }

    fn check_scheme(&self, card: &Card, name: &str) -> Result<(), AgentError> {
        if !card.schemes.contains_key(name) {
            return Err(self.refuse(&format!(
                "expected security scheme `{name}` among those of the card, found it nowhere"
            )));
        }
        let own = card.skills.iter().filter_map(|skill: &Skill| skill.requirements.as_ref());
        let mut all = card.requirements.iter().chain(own).flatten();
        if all.any(|alternative| alternative.iter().any(|asked| asked.scheme == name)) {
            return Ok(());
        }
        Err(self.refuse(&format!(
            "expected security scheme `{name}` in the card's security requirements, found it in none"
        )))
    }

    fn refuse(&self, what: &str) -> AgentError {
        AgentError::PartnerAdmission(match self.partner() {
            Some(partner) => format!("partner `{partner}`: {what}"),
            None => what.to_owned(),
        })
    }
}

/// Adds what is neither blank nor there.
fn add(list: &mut Vec<String>, entry: String) {
    if !entry.trim().is_empty() && !list.contains(&entry) {
        list.push(entry);
    }
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
