//! What is known of an agent: its card, the interface that is spoken to, its tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use chio_core::manifest::ToolManifest;

use crate::card::security::Requirements;
use crate::card::{Accepts, Card};
use crate::error::AgentError;
use crate::interface::{self, Interface};
use crate::manifest::{self, Abilities};
use crate::place;
use crate::transport::Transport;

/// What is known of an agent.
#[derive(Debug)]
pub(crate) struct DiscoveredAgent {
    pub(crate) card: Card,
    pub(crate) interface: Interface,
    pub(crate) abilities: Abilities,
    /// How the partner is called.
    pub(crate) partner: String,
    pub(crate) manifest: Arc<ToolManifest>,
    tools: BTreeMap<String, Tool>,
}

/// A skill that can be called.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) accepts: Accepts,
    pub(crate) output_modes: Vec<String>,
    /// What a call needs: what the skill says, else what the card does.
    pub(crate) requirements: Option<Requirements>,
}

impl DiscoveredAgent {
    /// Fetches the agent's card and makes sense of it.
    ///
    /// # Errors
    /// When there is no card, nothing can be spoken to, or the partner's contract is broken.
    pub(crate) async fn discover(transport: &Transport) -> Result<Self, AgentError> {
        let config = transport.config();
        let url = transport.places().card(&config.target)?;
        let card = Card::read(&transport.card(&url).await?)?;
        let policy = config.policy.as_ref();
        let interface = interface::select(&card, transport.places(), config)?;
        policy.map_or(Ok(()), |policy| policy.check(&card, &interface))?;
        let abilities = Abilities::of(&card, &interface, config.history_for_1_0);
        let server_id = config.server_id.clone().unwrap_or_else(|| place::server_id(&url));
        let label = (server_id, &*config.server_version, config.manifest_key()?);
        let manifest = Arc::new(manifest::manifest(&card, &interface, abilities, label)?);
        let partner = policy.and_then(|policy| policy.partner()).or_else(|| url.host_str());
        let partner = partner.unwrap_or("a2a-partner").to_owned();
        Ok(Self { tools: tools(&card), card, interface, abilities, partner, manifest })
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn tool(&self, name: &str) -> Result<&Tool, AgentError> {
        self.tools.get(name).ok_or_else(|| AgentError::UnknownTool(format!("`{name}`")))
    }
}

fn tools(card: &Card) -> BTreeMap<String, Tool> {
    let tool = |skill: &crate::card::Skill| Tool {
        id: skill.id.clone(),
        name: skill.name.clone(),
        accepts: skill.accepts(card),
        output_modes: skill.output_modes(card).to_vec(),
        requirements: skill.requirements.clone().or_else(|| card.requirements.clone()),
    };
    let fitting = card.skills.iter().filter(|skill| skill.accepts(card).any());
    fitting.map(|skill| (skill.id.clone(), tool(skill))).collect()
}
