//! Which credentials a call is sent with: those that the card asks for, and no others.

pub(crate) mod oauth;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::card::security::{Alternative, KeyPlace, Scheme, SchemeRequirement};
use crate::discovery::{DiscoveredAgent, Tool};
use crate::error::AgentError;
use crate::secret::Secret;
use crate::transport::Transport;
use oauth::{Source, TokenKey, Tokens};

/// What goes along with a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) query: Vec<(String, Secret)>,
    pub(crate) cookies: Vec<(String, Secret)>,
    /// Whether our certificate is shown.
    pub(crate) mutual: bool,
    /// Whether the capability goes along.
    pub(crate) capability: bool,
    /// Tokens that an authorization server gave.
    pub(crate) tokens: Vec<(TokenKey, Secret)>,
    /// Forms in which a secret travels besides its own.
    encoded: Vec<Secret>,
}

impl Credentials {
    /// The values that must not be repeated.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let pairs = self.headers.iter().chain(&self.query).chain(&self.cookies);
        let tokens = self.tokens.iter().map(|(_, token)| token);
        pairs.map(|(_, value)| value).chain(tokens).chain(&self.encoded)
    }

    fn set_authorization(&mut self, scheme: &str, value: &str) -> Result<(), String> {
        let name = "authorization";
        if self.headers.iter().any(|(known, _)| known == name) {
            return Err("expected one scheme that fills `Authorization`, found two".to_owned());
        }
        self.headers.push((name.to_owned(), Secret::new(format!("{scheme} {value}"))));
        self.encoded.push(Secret::new(value));
        Ok(())
    }
}

/// Finds the credentials for a call of a tool: those of the first alternative that can be met.
///
/// # Errors
/// When none can be, with why, for each.
pub(crate) async fn negotiate(
    transport: &Transport,
    tokens: &Tokens,
    agent: &DiscoveredAgent,
    tool: &Tool,
) -> Result<Credentials, AgentError> {
    // SECURITY: what the agent did not ask for is not sent.
    let nothing = || Credentials { capability: true, ..Credentials::default() };
    let Some(alternatives) = &tool.requirements else { return Ok(nothing()) };
    if alternatives.is_empty() {
        return Ok(nothing());
    }
    let undeclared = alternatives.iter().flatten();
    let mut undeclared = undeclared.filter(|asked| !agent.card.schemes.contains_key(&asked.scheme));
    if let Some(asked) = undeclared.next() {
        let problem =
            format!("security scheme `{}` is asked for and nowhere declared", asked.scheme);
        return Err(failed(agent, tool, &problem));
    }
    let mut problems = Vec::new();
    for alternative in alternatives {
        match satisfy(transport, tokens, agent, alternative).await {
            Ok(credentials) => return Ok(Credentials { capability: true, ..credentials }),
            Err(problem) => problems.push(problem),
        }
    }
    Err(failed(agent, tool, &problems.join("; ")))
}

fn failed(agent: &DiscoveredAgent, tool: &Tool, problem: &str) -> AgentError {
    let tenant = agent.interface.tenant.as_deref();
    let tenant = tenant.map(|tenant| format!(", tenant `{tenant}`")).unwrap_or_default();
    AgentError::AuthNegotiation(format!(
        "partner `{}`, skill `{}`, interface `{}`{tenant}: {problem}",
        agent.partner, tool.id, agent.interface.url
    ))
}

/// The credentials that one alternative needs.
async fn satisfy(
    transport: &Transport,
    tokens: &Tokens,
    agent: &DiscoveredAgent,
    alternative: &Alternative,
) -> Result<Credentials, String> {
    let (mut credentials, config) = (Credentials::default(), transport.config());
    // SECURITY: no secret of ours is sent while something else is missing. So what needs no network
    // comes first.
    for asks_others in [false, true] {
        for asked in alternative {
            let scheme = agent.card.schemes.get(&asked.scheme);
            let scheme = scheme.ok_or_else(|| format!("`{}` is nowhere declared", asked.scheme))?;
            let is_token = matches!(scheme, Scheme::OAuth2 { .. } | Scheme::OpenId { .. });
            if (is_token && config.bearer.is_none()) != asks_others {
                continue;
            }
            let met = meet(transport, tokens, asked, scheme, &mut credentials).await;
            met.map_err(|problem| format!("scheme `{}`: {problem}", asked.scheme))?;
        }
    }
    Ok(credentials)
}

async fn meet(
    transport: &Transport,
    tokens: &Tokens,
    asked: &SchemeRequirement,
    scheme: &Scheme,
    credentials: &mut Credentials,
) -> Result<(), String> {
    let config = transport.config();
    let bearer = config.bearer.as_ref();
    match scheme {
        Scheme::Bearer => {
            let token = bearer.ok_or("expected a bearer token, found none configured")?;
            credentials.set_authorization("Bearer", token.expose())
        }
        Scheme::Basic => {
            let (user, password) = config
                .basic
                .as_ref()
                .ok_or("expected a user name and a password, found none configured")?;
            let pair = Secret::new(format!("{}:{}", user.expose(), password.expose()));
            credentials.set_authorization("Basic", &STANDARD.encode(pair.expose()))
        }
        Scheme::MutualTls => {
            if !transport.has_identity() {
                return Err("expected a client certificate, found none configured".to_owned());
            }
            credentials.mutual = true;
            Ok(())
        }
        Scheme::ApiKey { place, name } => {
            let value = config.key(*place, name).cloned();
            let value = value.ok_or_else(|| {
                format!(
                    "expected an API key for {} `{name}`, found none configured",
                    place.into_str()
                )
            })?;
            let list = match place {
                KeyPlace::Header => &mut credentials.headers,
                KeyPlace::Query => &mut credentials.query,
                KeyPlace::Cookie => &mut credentials.cookies,
            };
            list.push((name.clone(), value));
            Ok(())
        }
        Scheme::OAuth2 { .. } | Scheme::OpenId { .. } => {
            if let Some(token) = bearer {
                return credentials.set_authorization("Bearer", token.expose());
            }
            let source =
                Source::from_scheme(scheme).ok_or("it names no place where tokens are given")?;
            let (key, token) = tokens.token(transport, &source, &asked.scopes).await?;
            credentials.set_authorization("Bearer", token.expose())?;
            credentials.tokens.push((key, token));
            Ok(())
        }
        Scheme::Unknown(found) => {
            Err(format!("expected a scheme that is spoken here, found {found}"))
        }
    }
}
