//! Requests on their way out, and what comes back, before its meaning is read.

use std::sync::Arc;
use std::time::Duration;

use chio_net::client::{
    ClientError, ClientOptions, HttpClient, Limits, Request, Response, ResponseStream,
};
use http::{Method, StatusCode, header};
use url::Url;

use crate::auth::Credentials;
use crate::config::A2aAdapterConfig;
use crate::error::AgentError;
use crate::place::{Places, origin};
use crate::secret::{Secret, remote_words};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The most bytes of a card, of metadata or of a token.
const MAX_DOCUMENT: usize = 1 << 20;
/// How often a request is sent on within its origin.
const MAX_HOPS: usize = 3;

/// The way to an agent and to its authorization servers.
pub(crate) struct Transport {
    config: Arc<A2aAdapterConfig>,
    places: Places,
    plain: HttpClient,
    /// Shows our certificate.
    mutual: Option<HttpClient>,
    capability: Option<Secret>,
}

/// A request to an agent.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) verb: Method,
    pub(crate) url: &'a Url,
    pub(crate) body: Option<&'a [u8]>,
    pub(crate) accept: &'static str,
    pub(crate) version: &'static str,
}

impl Transport {
    /// The way to the agent of a configuration.
    ///
    /// # Errors
    /// When certificates or keys cannot be used.
    pub(crate) fn new(config: Arc<A2aAdapterConfig>) -> Result<Self, AgentError> {
        let endpoint = config.oauth.token_endpoint.as_deref();
        let places = Places::new(&config.target, endpoint, &config.addresses);
        let limits = Limits {
            connect: CONNECT.min(config.timeout),
            total: config.timeout,
            idle: config.timeout,
            max_body: config.limits.body,
            ..Limits::default()
        };
        let options = |identity| -> Result<ClientOptions, AgentError> {
            let (rules, roots) = (places.rules().clone(), config.roots()?);
            Ok(ClientOptions { rules, limits, roots, identity, ..ClientOptions::default() })
        };
        let unusable =
            |error: ClientError| AgentError::Configuration(format!("the TLS material: {error}"));
        let plain = HttpClient::new(options(None)?).map_err(unusable)?;
        let identity = config.identity()?;
        let mutual =
            identity.map(|identity| HttpClient::new(options(Some(identity))?).map_err(unusable));
        let (mutual, capability) = (mutual.transpose()?, config.capability_text()?);
        Ok(Self { places, plain, mutual, capability, config })
    }

    pub(crate) const fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn config(&self) -> &A2aAdapterConfig {
        &self.config
    }

    /// Whether there is a certificate to show.
    pub(crate) const fn has_identity(&self) -> bool {
        self.mutual.is_some()
    }

    /// Fetches the agent's card, with everything that goes along with every request and without
    /// any credentials but the certificate.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn card(&self, url: &Url) -> Result<Vec<u8>, AgentError> {
        let credentials = Credentials::default();
        let call =
            Call { verb: Method::GET, url, body: None, accept: "application/json", version: "1.0" };
        let request = self.request(&call, url, &credentials)?.with_max_body(MAX_DOCUMENT);
        let client = self.mutual.as_ref().unwrap_or(&self.plain);
        let answer = client.send(request).await;
        let answer = answer.map_err(|error| AgentError::unanswered("the agent card", &error))?;
        if answer.status != StatusCode::OK {
            return Err(self.refused("the agent card", &answer, &credentials));
        }
        Ok(answer.body.to_vec())
    }

    /// Sends a request to the agent and reads the head of the answer.
    ///
    /// # Errors
    /// When there is none, or it leads to another origin.
    pub(crate) async fn open(
        &self,
        call: &Call<'_>,
        credentials: &Credentials,
    ) -> Result<ResponseStream, AgentError> {
        let client = match (&self.mutual, credentials.mutual) {
            (Some(mutual), true) => mutual,
            _ => &self.plain,
        };
        let mut to = call.url.clone();
        for _ in 0..=MAX_HOPS {
            let request = self.request(call, &to, credentials)?.without_redirects();
            let answer = client.open(request).await;
            let answer = answer.map_err(|error| AgentError::unanswered("the agent", &error))?;
            match redirected(call, &to, &answer)? {
                None => return Ok(answer),
                Some(next) => to = next,
            }
        }
        Err(redirect_error("too many of them"))
    }

    fn request(
        &self,
        call: &Call<'_>,
        url: &Url,
        credentials: &Credentials,
    ) -> Result<Request, AgentError> {
        let failed = |error| AgentError::unanswered("the agent", &error);
        let mut request = Request::new(call.verb.clone(), self.with_query(url, credentials));
        let extras = self.config.headers.iter().chain(&credentials.headers);
        for (name, value) in extras {
            request = request.with_header(name, value.expose()).map_err(failed)?;
        }
        let own = credentials.cookies.iter();
        let mut cookies: Vec<(&str, &str)> =
            own.map(|(name, value)| (name.as_str(), value.expose())).collect();
        for (name, value) in &self.config.cookies {
            if !cookies.iter().any(|(known, _)| known == name) {
                cookies.push((name, value.expose()));
            }
        }
        request = request.with_cookies(cookies).map_err(failed)?;
        request = request.with_header("a2a-version", call.version).map_err(failed)?;
        request = request.with_header("accept", call.accept).map_err(failed)?;
        if credentials.capability
            && let Some(capability) = &self.capability
        {
            let capability = capability.expose();
            request = request.with_header("x-chio-capability", capability).map_err(failed)?;
        }
        if let Some(body) = call.body {
            request = request.with_header("content-type", "application/json").map_err(failed)?;
            request = request.with_body(body.to_vec());
        }
        Ok(request)
    }

    fn with_query(&self, url: &Url, credentials: &Credentials) -> String {
        let mut url = url.clone();
        let taken = |name: &str| credentials.query.iter().any(|(known, _)| known == name);
        let extras = self.config.query.iter().filter(|(name, _)| !taken(name));
        let pairs: Vec<_> = extras.chain(&credentials.query).collect();
        // A URL without a query keeps having none.
        if !pairs.is_empty() {
            let mut query = url.query_pairs_mut();
            for (name, value) in pairs {
                query.append_pair(name, value.expose());
            }
        }
        url.into()
    }

    /// Sends a request to an authorization server, with nothing of what goes to the agent.
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, ClientError> {
        self.plain.send(request.with_max_body(MAX_DOCUMENT)).await
    }

    /// The error of an answer that is no success, in words that may be repeated.
    pub(crate) fn refused(
        &self,
        whom: &str,
        answer: &Response,
        credentials: &Credentials,
    ) -> AgentError {
        let status = answer.status.as_u16();
        let words = self.words(&String::from_utf8_lossy(&answer.body), credentials);
        let detail = format!("{whom}: HTTP {status}: {words}");
        AgentError::RemoteRequestFailed { status: Some(status), code: None, detail }
    }

    /// What the agent said, as an error may repeat it.
    pub(crate) fn words(&self, text: &str, credentials: &Credentials) -> String {
        let own = self.config.secrets().chain(&self.capability);
        remote_words(text, own.chain(credentials.secrets()))
    }
}

/// Where an answer leads on to, if it does: only within the origin, and only with the same method.
fn redirected(
    call: &Call<'_>,
    from: &Url,
    answer: &ResponseStream,
) -> Result<Option<Url>, AgentError> {
    let keeps = match answer.status() {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => call.verb != Method::POST,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::SEE_OTHER => false,
        _ => return Ok(None),
    };
    let place = answer.headers().get(header::LOCATION).and_then(|place| place.to_str().ok());
    let next = place.and_then(|place| from.join(place).ok());
    let next = next.ok_or_else(|| redirect_error("one to nowhere"))?;
    // SECURITY: what was said to one origin, and the credentials for it, are for that one alone.
    if origin(&next) != origin(from) {
        return Err(redirect_error("one to another origin"));
    }
    if !keeps {
        return Err(redirect_error("one that changes the method"));
    }
    Ok(Some(next))
}

fn redirect_error(found: &str) -> AgentError {
    let detail =
        format!("the agent: expected an answer or a redirect within the origin, found {found}");
    AgentError::RemoteRequestFailed { status: None, code: None, detail }
}
