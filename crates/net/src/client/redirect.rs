//! Where an answer leads on to, and what of the request may go there.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

use super::error::ClientError;
use crate::address::{AddressRules, Destination};

/// What may go to another origin. A list of what may not would miss a header that a caller
/// invented for a key.
const PORTABLE: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT];

/// What a chain of redirects must keep to.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// Where it may lead.
    pub(super) rules: &'a AddressRules,
    /// Whether servers are shown a certificate of ours.
    pub(super) has_identity: bool,
}

/// One request of a chain of redirects.
#[derive(Clone)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) to: Destination,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Hop {
    /// The request that an answer leads to; none when it is the answer.
    pub(super) fn next(
        &self,
        terms: Terms<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, ClientError> {
        let keeps_method = match status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method != Method::POST,
            StatusCode::SEE_OTHER => matches!(self.method, Method::GET | Method::HEAD),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            _ => return Ok(None),
        };
        let mut places = headers.get_all(header::LOCATION).iter();
        let (place, other) = (places.next(), places.next());
        let Some(place) = place else { return Ok(None) };
        let place = place.to_str().ok().filter(|_| other.is_none()).ok_or(ClientError::Location)?;
        if self.to.is_https() && is_plain(place) {
            return Err(ClientError::Downgrade);
        }
        let to = terms.rules.judge_from(&self.to, place)?;
        let mut next = Self { to, ..self.clone() };
        if !self.to.is_same_origin(&next.to) {
            // SECURITY: the first server was trusted with these, and names the second one alone.
            if terms.has_identity {
                return Err(ClientError::OtherOrigin { carried: "a client certificate" });
            }
            if keeps_method && !self.body.is_empty() {
                return Err(ClientError::OtherOrigin { carried: "a body" });
            }
            next.headers = portable(&self.headers);
        }
        if !keeps_method {
            next.method = Method::GET;
            next.body = Bytes::new();
            next.headers.remove(header::CONTENT_TYPE);
        }
        Ok(Some(next))
    }
}

/// Whether a place is one over http. Said before the rules are asked, which may allow http.
fn is_plain(place: &str) -> bool {
    place.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"))
}

fn portable(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| PORTABLE.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, Method, StatusCode};

    use super::{AddressRules, ClientError, Hop, Terms};

    fn hop(method: Method, headers: &[&'static str]) -> Hop {
        let to = AddressRules::public_only().with_http().judge("https://a.example/x").unwrap();
        let headers = headers.iter().map(|name| (name.parse().unwrap(), "v".parse().unwrap()));
        Hop { method, to, headers: headers.collect(), body: Bytes::from_static(b"body") }
    }

    fn next(hop: &Hop, status: u16, places: &[&str]) -> Result<Option<Hop>, ClientError> {
        next_on(hop, status, places, false)
    }

    fn next_on(
        hop: &Hop,
        status: u16,
        places: &[&str],
        has_identity: bool,
    ) -> Result<Option<Hop>, ClientError> {
        let mut headers = HeaderMap::new();
        for place in places {
            headers.append("location", place.parse().unwrap());
        }
        let rules = AddressRules::public_only().with_http();
        let terms = Terms { rules: &rules, has_identity };
        hop.next(terms, StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn each_status_keeps_or_changes_the_method() {
        for (status, method, expected) in [
            (301, Method::POST, Method::GET),
            (302, Method::POST, Method::GET),
            (303, Method::POST, Method::GET),
            (303, Method::PUT, Method::GET),
            (303, Method::HEAD, Method::HEAD),
            (301, Method::GET, Method::GET),
            (302, Method::PUT, Method::PUT),
            (307, Method::POST, Method::POST),
            (308, Method::POST, Method::POST),
            (308, Method::DELETE, Method::DELETE),
        ] {
            let next = next(&hop(method.clone(), &["content-type"]), status, &["/y"]);
            let next = next.unwrap().unwrap();
            assert_eq!(next.method, expected, "{status} {method}");
            assert_eq!(next.to.url().as_str(), "https://a.example/y");
            let kept = expected == method;
            assert_eq!(next.body.is_empty(), !kept, "{status} {method}");
            assert_eq!(next.headers.contains_key("content-type"), kept, "{status} {method}");
        }
    }

    #[test]
    fn other_statuses_and_answers_without_a_place_are_the_answer() {
        for status in [200, 201, 300, 304, 305, 306, 400, 500] {
            assert!(next(&hop(Method::GET, &[]), status, &["/y"]).unwrap().is_none(), "{status}");
        }
        assert!(next(&hop(Method::GET, &[]), 302, &[]).unwrap().is_none());
    }

    #[test]
    fn only_harmless_headers_go_to_another_origin() {
        let all = ["accept", "user-agent", "authorization", "x-api-key", "dpop", "mcp-session-id"];
        for (place, kept) in [
            ("/y", 6),
            ("https://a.example/y", 6),
            ("https://A.example:443/y", 6),
            ("https://a.example:8443/y", 2),
            ("https://b.example/y", 2),
            ("//a.example.b.example/y", 2),
        ] {
            let hop = Hop { body: Bytes::new(), ..hop(Method::GET, &all) };
            let next = next(&hop, 307, &[place]).unwrap().unwrap();
            assert_eq!(next.headers.len(), kept, "{place}");
        }
    }

    #[test]
    fn bodies_and_certificates_stay_with_the_origin_that_they_were_for() {
        let body = Err(ClientError::OtherOrigin { carried: "a body" });
        let certificate = Err(ClientError::OtherOrigin { carried: "a client certificate" });
        let mut empty = hop(Method::PUT, &[]);
        empty.body = Bytes::new();
        for (hop, status, place, has_identity, expected) in [
            (hop(Method::POST, &[]), 307, "https://b.example/", false, body.clone()),
            (hop(Method::POST, &[]), 308, "https://a.example:8443/", false, body.clone()),
            (hop(Method::PUT, &[]), 301, "https://b.example/", false, body.clone()),
            (hop(Method::DELETE, &[]), 302, "https://b.example/", false, body),
            (hop(Method::POST, &[]), 302, "https://b.example/", false, Ok(true)),
            (hop(Method::PUT, &[]), 303, "https://b.example/", false, Ok(true)),
            (hop(Method::POST, &[]), 307, "/y", false, Ok(false)),
            (empty.clone(), 307, "https://b.example/", false, Ok(true)),
            (empty.clone(), 307, "https://b.example/", true, certificate.clone()),
            (empty, 307, "/y", true, Ok(true)),
            (hop(Method::POST, &[]), 303, "https://b.example/", true, certificate),
        ] {
            let outcome = next_on(&hop, status, &[place], has_identity);
            let outcome = outcome.map(|next| next.unwrap().body.is_empty());
            assert_eq!(outcome, expected, "{} {status} {place}", hop.method);
        }
    }

    #[test]
    fn what_was_dropped_stays_dropped_on_the_way_back() {
        let hop = Hop { body: Bytes::new(), ..hop(Method::GET, &["authorization"]) };
        let away = next(&hop, 307, &["https://b.example/"]);
        let back = next(&away.unwrap().unwrap(), 307, &["https://a.example/"]).unwrap().unwrap();
        assert!(back.headers.is_empty());
    }

    #[test]
    fn places_that_may_not_be_followed_are_errors() {
        for place in ["http://a.example/y", "HTTP://b.example/", "http:/y"] {
            let outcome = next(&hop(Method::GET, &[]), 302, &[place]).map(drop);
            assert_eq!(outcome, Err(ClientError::Downgrade), "{place}");
        }
        let outcome = next(&hop(Method::GET, &[]), 302, &["/y", "/z"]).map(drop);
        assert_eq!(outcome, Err(ClientError::Location));
        for place in ["https://127.0.0.1/", "//10.1/", "https://u:p@b.example/", "ftp://b.example/"]
        {
            let outcome = next(&hop(Method::GET, &[]), 302, &[place]).map(drop);
            assert!(matches!(outcome, Err(ClientError::Address(_))), "{place} {outcome:?}");
        }
    }
}
