//! What a request for a file is answered: the head, and where the bytes come from.
//!
//! Not when they leave. Opening and looking may block, so all of it is one errand for a thread that may wait.
//!
//! Invariant: what the head says of a file was true of the descriptor that its bytes come from.

use std::time::SystemTime;

use bridgehead_coding::{Accepted, Coding};
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderMap, Method, Response, StatusCode, request};

use crate::beneath::{Found, Nothing, Tree};
use crate::mount::Asked;
use crate::name::{End, Name};
use crate::precondition::{self, Verdict};
use crate::range::Range;
use crate::reading::{PIECE, Reading};
use crate::version::Version;
use crate::{media_type, precondition::range_fits};

/// What a directory is looked for.
const INDEX: &str = "index.html";

/// Of equal ones the first: brotli's are made with time to spare, and are the smallest.
const CODINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// What becomes of a request for a file.
#[derive(Debug)]
pub enum Outcome {
    /// It is answered.
    Reply(Box<Reply>),
    /// There is no such file, and the application may know better.
    Elsewhere,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// With a length where one is due.
    pub head: Response<()>,
    /// Its body.
    pub content: Content,
    /// Why it is not what was asked for.
    pub refusal: Option<&'static str>,
}

/// Where a body comes from.
#[derive(Debug)]
pub enum Content {
    /// Nowhere.
    Nothing,
    /// It is here.
    Whole(Bytes),
    /// It is read as the client takes it.
    File(Reading),
}

/// A file that is open, with what clients are told of it.
struct Picked {
    file: std::fs::File,
    size: u64,
    version: Version,
    kind: HeaderValue,
    coding: Option<Coding>,
    /// Whether a client with other wishes gets another coding of it.
    varies: bool,
}

impl Asked {
    /// Whether it is answered at all, as far as that can be seen without looking: what changes something is for the
    /// application, where that shares the path.
    #[must_use]
    pub fn concerns(&self, method: &Method) -> bool {
        self.is_alone() || is_safe(method)
    }

    /// Opens what is asked for, and answers. `prefix` is the path below which clients see us. May block.
    #[must_use]
    pub fn answer(self, head: &request::Parts, prefix: &str) -> Outcome {
        if !is_safe(&head.method) {
            return Outcome::Reply(Reply::of(refusal(StatusCode::METHOD_NOT_ALLOWED)).into());
        }
        let mut reply = match self.look(head, prefix) {
            Ok(reply) => reply,
            Err(Nothing::NotThere) if !self.is_alone() => return Outcome::Elsewhere,
            Err(Nothing::NotThere) => Reply::of(refusal(StatusCode::NOT_FOUND)),
            Err(Nothing::Forbidden) => Reply::of(refusal(StatusCode::FORBIDDEN)),
            Err(Nothing::Shortage) => Reply::of(refusal(StatusCode::SERVICE_UNAVAILABLE)),
            Err(Nothing::Broken) => Reply::of(refusal(StatusCode::INTERNAL_SERVER_ERROR)),
        };
        if head.method == Method::HEAD {
            reply.content = Content::Nothing;
        }
        Outcome::Reply(reply.into())
    }

    fn look(&self, head: &request::Parts, prefix: &str) -> Result<Reply, Nothing> {
        let tree = Tree::open(self.mount.folder.as_deref().ok_or(Nothing::NotThere)?)?;
        let name = self.name.as_ref().ok_or(Nothing::NotThere);
        let looked = name.and_then(|name| self.look_in(&tree, name, head, prefix));
        match (&looked, &self.mount.fallback) {
            (Err(Nothing::NotThere), Some(fallback)) if wants_page(&head.headers) => {
                let picked = pick(&tree, fallback.as_bytes(), &head.headers)?;
                self.send(picked, head)
            }
            _ => looked,
        }
    }

    fn look_in(
        &self,
        tree: &Tree,
        name: &Name,
        head: &request::Parts,
        prefix: &str,
    ) -> Result<Reply, Nothing> {
        // A file with a slash behind it is none, as everywhere.
        let path = if name.end == End::Slash { name.join(INDEX) } else { name.path.clone() };
        match pick(tree, &path, &head.headers) {
            Ok(picked) => self.send(picked, head),
            Err(Missing::Folder) if name.end == End::Bare => {
                let index = tree.find(&name.join(INDEX))?;
                let Found::File(..) = index else { return Err(Nothing::NotThere) };
                redirect(head, prefix)
            }
            Err(missing) => Err(missing.into()),
        }
    }

    /// The file, a part of it, or the word that the client has it.
    fn send(&self, picked: Picked, head: &request::Parts) -> Result<Reply, Nothing> {
        let Picked { file, size, version, kind, coding, varies } = picked;
        let mut answer = Response::new(());
        let headers = answer.headers_mut();
        insert(headers, ETAG, version.tag_value());
        insert(headers, LAST_MODIFIED, version.modified_value());
        insert(headers, VARY, varies.then_some(HeaderValue::from_static("accept-encoding")));
        if let Some(age) = &self.max_age {
            let page = media_type::is_page(&kind);
            headers
                .insert(CACHE_CONTROL, if page { HeaderValue::from_static("no-cache") } else { age.clone() });
        }
        match precondition::judge(&head.headers, &version) {
            Verdict::Send => {}
            Verdict::NotModified => {
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
                return Ok(Reply { head: answer, content: Content::Nothing, refusal: None });
            }
            Verdict::Failed => return Ok(Reply::of(refusal(StatusCode::PRECONDITION_FAILED))),
        }
        let wants_part = head.method == Method::GET && range_fits(&head.headers, &version, SystemTime::now());
        let range = if wants_part { Range::of(&head.headers, size) } else { Range::Whole };
        let (first, length) = match range {
            Range::Whole => (0, size),
            Range::Part { first, last } => {
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                let said = HeaderValue::try_from(format!("bytes {first}-{last}/{size}")).ok();
                insert(answer.headers_mut(), CONTENT_RANGE, said);
                (first, last - first + 1)
            }
            Range::Unsatisfiable => {
                let mut refused = Reply::of(refusal(StatusCode::RANGE_NOT_SATISFIABLE));
                let said = HeaderValue::try_from(format!("bytes */{size}")).ok();
                insert(refused.head.headers_mut(), CONTENT_RANGE, said);
                return Ok(refused);
            }
        };
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CONTENT_LENGTH, length.into());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        insert(headers, CONTENT_ENCODING, coding.map(Coding::value));
        let content =
            if head.method == Method::HEAD { Content::Nothing } else { content(file, first, length)? };
        Ok(Reply { head: answer, content, refusal: None })
    }
}

impl Reply {
    fn of((head, text): (Response<()>, &'static str)) -> Self {
        Self { head, content: Content::Whole(Bytes::from_static(text.as_bytes())), refusal: Some(text) }
    }
}

/// Why there is no file.
enum Missing {
    /// There is a directory.
    Folder,
    Nothing(Nothing),
}

impl From<Nothing> for Missing {
    fn from(nothing: Nothing) -> Self {
        Self::Nothing(nothing)
    }
}

impl From<Missing> for Nothing {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Folder => Self::NotThere,
            Missing::Nothing(nothing) => nothing,
        }
    }
}

/// The coding of a file that a client likes best.
fn pick(tree: &Tree, path: &[u8], headers: &HeaderMap) -> Result<Picked, Missing> {
    let Found::File(file, stat) = tree.find(path)? else { return Err(Missing::Folder) };
    let (mut file, mut stat, mut coding, mut varies) = (file, stat, None, false);
    let liked: Vec<Coding> = Accepted::of(headers).choices(&CODINGS).collect();
    // The others only say whether there is a choice.
    let others = CODINGS.iter().copied().filter(|each| !liked.contains(each));
    for each in liked.iter().copied().chain(others) {
        let sibling = [path, each.suffix().as_bytes()].concat();
        if let Ok(Found::File(other, its)) = tree.find(&sibling) {
            varies = true;
            if liked.contains(&each) {
                (file, stat, coding) = (other, its, Some(each));
            }
            break;
        }
    }
    Ok(Picked {
        file,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        version: Version::of(&stat, coding, SystemTime::now()),
        kind: media_type::of(path),
        coding,
        varies,
    })
}

/// What fits into one piece is read at once, so that nothing stays open for it.
fn content(file: std::fs::File, first: u64, length: u64) -> Result<Content, Nothing> {
    let mut reading = Reading::new(file, first, length);
    if length > PIECE as u64 {
        return Ok(Content::File(reading));
    }
    let mut whole = Vec::new();
    while reading.left() > 0 {
        // Nothing has been said yet of a file that is cut off just now.
        let piece = reading.read().map_err(|_| Nothing::Broken)?;
        if reading.left() == 0 && whole.is_empty() {
            return Ok(Content::Whole(piece));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Content::Whole(whole.into()))
}

/// A directory's links are relative to its name with a slash.
fn redirect(head: &request::Parts, prefix: &str) -> Result<Reply, Nothing> {
    let query = head.uri.query().map_or(String::new(), |query| format!("?{query}"));
    // It begins with the path of a mount, never with two slashes: no other host.
    let target = format!("{prefix}{}/{query}", head.uri.path());
    let mut answer = Response::new(());
    *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = answer.headers_mut();
    headers.insert(LOCATION, HeaderValue::try_from(target).map_err(|_| Nothing::NotThere)?);
    headers.insert(CONTENT_LENGTH, 0.into());
    Ok(Reply { head: answer, content: Content::Nothing, refusal: None })
}

/// Whether a browser would show what comes as a page. What a page itself asks for (scripts, pictures, data) is not
/// answered by another.
fn wants_page(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        kind.eq_ignore_ascii_case("text/html") && !parts.any(is_refusal)
    })
}

/// `q=0`, with as many noughts as there may be (RFC 9110 section 12.4.2).
fn is_refusal(parameter: &str) -> bool {
    let Some((name, weight)) = parameter.split_once('=') else { return false };
    let weight = weight.trim();
    name.trim().eq_ignore_ascii_case("q")
        && weight.starts_with('0')
        && weight.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
}

fn refusal(status: StatusCode) -> (Response<()>, &'static str) {
    let text = match status {
        StatusCode::METHOD_NOT_ALLOWED => "Method Not Allowed: files are read by GET and HEAD",
        StatusCode::FORBIDDEN => "Forbidden: the server may not read this file",
        StatusCode::PRECONDITION_FAILED => "Precondition Failed: the file is another one by now",
        StatusCode::RANGE_NOT_SATISFIABLE => "Range Not Satisfiable: the file ends before it",
        StatusCode::SERVICE_UNAVAILABLE => "Service Unavailable: too many files are open",
        StatusCode::NOT_FOUND => "Not Found",
        _ => "Internal Server Error: the file cannot be read",
    };
    let mut head = Response::new(());
    *head.status_mut() = status;
    let headers = head.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONTENT_LENGTH, text.len().into());
    match status {
        StatusCode::METHOD_NOT_ALLOWED => headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD")),
        StatusCode::SERVICE_UNAVAILABLE => headers.insert(RETRY_AFTER, HeaderValue::from_static("1")),
        _ => None,
    };
    (head, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::tests::Folder;
    use crate::mount::{Mount, Mounts};
    use http::Request;
    use http::header::ACCEPT_ENCODING;
    use std::os::unix::fs::symlink;

    fn mounts(folder: &Folder, url: &str, fallback: Option<&str>) -> Mounts {
        let fallback = fallback.map(str::to_owned);
        Mounts::new(vec![Mount { url: url.to_owned(), folder: Some(folder.public()), fallback }], Some(60))
    }

    fn asked(mounts: &Mounts, target: &str, headers: &[(HeaderName, &str)]) -> Option<Reply> {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        answered(mounts, request.body(()).expect("a request").into_parts().0)
    }

    fn answered(mounts: &Mounts, head: request::Parts) -> Option<Reply> {
        match mounts.find(head.uri.path())?.answer(&head, "/below") {
            Outcome::Reply(reply) => Some(*reply),
            Outcome::Elsewhere => None,
        }
    }

    fn status(mounts: &Mounts, target: &str) -> u16 {
        asked(mounts, target, &[]).map_or(0, |reply| reply.head.status().as_u16())
    }

    fn text(reply: Reply) -> String {
        match reply.content {
            Content::Nothing => String::new(),
            Content::Whole(body) => String::from_utf8(body.to_vec()).expect("text"),
            Content::File(mut reading) => {
                let mut body = Vec::new();
                while reading.left() > 0 {
                    body.extend(reading.read().expect("it is there"));
                }
                String::from_utf8(body).expect("text")
            }
        }
    }

    fn header<'a>(reply: &'a Reply, name: &HeaderName) -> &'a str {
        reply.head.headers().get(name).map_or("", |value| value.to_str().expect("text"))
    }

    #[test]
    fn a_file_is_answered_with_all_that_is_known_of_it() {
        let folder = Folder::new();
        let reply = asked(&mounts(&folder, "/s", None), "/s/page.html", &[]).expect("a reply");
        assert_eq!(reply.head.status(), 200);
        assert_eq!(header(&reply, &CONTENT_TYPE), "text/html; charset=utf-8");
        assert_eq!(header(&reply, &CONTENT_LENGTH), "4");
        assert_eq!(header(&reply, &ACCEPT_RANGES), "bytes");
        assert_eq!(header(&reply, &CACHE_CONTROL), "no-cache");
        assert!(header(&reply, &ETAG).starts_with('"'));
        assert!(header(&reply, &LAST_MODIFIED).ends_with("GMT"));
        assert_eq!(header(&reply, &VARY), "");
        assert_eq!(text(reply), "page");
        let reply = asked(&mounts(&folder, "/s", None), "/s/inner/deep.txt", &[]).expect("a reply");
        assert_eq!(header(&reply, &CACHE_CONTROL), "max-age=60");
    }

    #[test]
    fn a_directory_is_its_index_and_is_named_with_a_slash() {
        let folder = Folder::new();
        let mounts = mounts(&folder, "/s", None);
        assert_eq!(status(&mounts, "/s/inner/"), 404);
        assert_eq!(status(&mounts, "/s/inner"), 404);
        std::fs::write(folder.public().join("inner/index.html"), "inside").expect("a file");
        let reply = asked(&mounts, "/s/inner?a=b", &[]).expect("a reply");
        assert_eq!(reply.head.status(), 307);
        assert_eq!(header(&reply, &LOCATION), "/below/s/inner/?a=b");
        assert_eq!(text(asked(&mounts, "/s/inner/", &[]).expect("a reply")), "inside");
        assert_eq!(status(&mounts, "/s/page.html/"), 404);
        assert_eq!(status(&mounts, "/s"), 404);
    }

    #[test]
    fn what_is_below_no_directory_is_the_applications_where_they_share_a_path() {
        let folder = Folder::new();
        let (own, shared) = (mounts(&folder, "/s", None), mounts(&folder, "/", None));
        for target in ["/s/none", "/s/inner/", "/s/%2e%2e/secret", "/s/.git", "/s/page.html%00"] {
            assert_eq!(status(&own, target), 404, "{target}");
        }
        for target in ["/none", "/inner/", "/..%2fsecret", "/.git", "/page.html%00", "/"] {
            assert_eq!(status(&shared, target), 0, "{target}");
        }
        assert_eq!(status(&shared, "/page.html"), 200);
    }

    #[test]
    fn an_index_or_a_sibling_that_is_a_link_out_is_not_there() {
        let folder = Folder::new();
        let public = folder.public();
        symlink("../../secret", public.join("inner/index.html")).expect("a link");
        symlink("../secret", public.join("page.html.gz")).expect("a link");
        let mounts = mounts(&folder, "/s", None);
        assert_eq!(status(&mounts, "/s/inner/"), 404);
        assert_eq!(status(&mounts, "/s/inner"), 404);
        let reply = asked(&mounts, "/s/page.html", &[(ACCEPT_ENCODING, "gzip")]).expect("a reply");
        assert_eq!(header(&reply, &CONTENT_ENCODING), "");
        assert_eq!(text(reply), "page");
    }

    #[test]
    fn a_page_that_is_not_there_is_the_fallback_and_nothing_else_is() {
        let folder = Folder::new();
        let mounts = mounts(&folder, "/", Some("page.html"));
        let browser = (ACCEPT, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
        let reply = asked(&mounts, "/users/5", std::slice::from_ref(&browser)).expect("a reply");
        assert_eq!(reply.head.status(), 200);
        assert_eq!(text(reply), "page");
        for accepted in
            ["", "*/*", "application/json", "text/html;q=0", "text/html; level=1; Q=0.000, */*", "text/htmlx"]
        {
            assert!(asked(&mounts, "/users/5", &[(ACCEPT, accepted)]).is_none(), "{accepted}");
        }
        assert!(asked(&mounts, "/users/5", &[]).is_none());
        for accepted in ["text/html;q=0.001", "*/*;q=0, TEXT/HTML;q=1"] {
            assert!(asked(&mounts, "/users/5", &[(ACCEPT, accepted)]).is_some(), "{accepted}");
        }
        // What no file is called is not there either.
        for target in ["/.git", "/users/.me", "/a//b", "/x%5cy", "/..%2fsecret", "/page.html/"] {
            let reply = asked(&mounts, target, std::slice::from_ref(&browser)).expect("a reply");
            assert_eq!((reply.head.status().as_u16(), text(reply).as_str()), (200, "page"), "{target}");
            assert!(asked(&mounts, target, &[]).is_none(), "{target}");
        }
    }

    #[test]
    fn the_coding_that_a_client_likes_best_is_taken_from_beside_the_file() {
        let folder = Folder::new();
        let public = folder.public();
        std::fs::write(public.join("page.html.gz"), "gz").expect("a file");
        std::fs::write(public.join("page.html.zst"), "zst").expect("a file");
        let mounts = mounts(&folder, "/s", None);
        for (liked, coding, body) in [
            ("gzip, br, zstd", "zstd", "zst"),
            ("gzip", "gzip", "gz"),
            ("br", "", "page"),
            ("zstd;q=0.1, gzip;q=0.2", "gzip", "gz"),
            ("gzip;q=0", "", "page"),
        ] {
            let reply = asked(&mounts, "/s/page.html", &[(ACCEPT_ENCODING, liked)]).expect("a reply");
            assert_eq!(header(&reply, &CONTENT_ENCODING), coding, "{liked}");
            assert_eq!(header(&reply, &VARY), "accept-encoding", "{liked}");
            assert_eq!(header(&reply, &CONTENT_TYPE), "text/html; charset=utf-8");
            assert!(header(&reply, &ETAG).contains(coding), "{liked}");
            assert_eq!(text(reply), body, "{liked}");
        }
    }

    #[test]
    fn parts_of_large_and_small_files_are_those_bytes() {
        let folder = Folder::new();
        let large = "0123456789".repeat(20_000);
        std::fs::write(folder.public().join("large"), &large).expect("a file");
        let mounts = mounts(&folder, "/s", None);
        for (range, first, last) in [("0-0", 0, 0), ("5-150004", 5, 150_004), ("-7", 199_993, 199_999)] {
            let asks = [(http::header::RANGE, &*format!("bytes={range}"))];
            let reply = asked(&mounts, "/s/large", &asks).expect("a reply");
            assert_eq!(reply.head.status(), 206);
            assert_eq!(header(&reply, &CONTENT_RANGE), format!("bytes {first}-{last}/200000"));
            assert_eq!(header(&reply, &CONTENT_LENGTH), (last - first + 1).to_string());
            assert_eq!(text(reply), large[first..=last]);
        }
        let reply = asked(&mounts, "/s/large", &[(http::header::RANGE, "bytes=200000-")]).expect("a reply");
        assert_eq!(reply.head.status(), 416);
        assert_eq!(header(&reply, &CONTENT_RANGE), "bytes */200000");
    }

    #[test]
    fn other_methods_are_refused_and_head_has_no_body() {
        let folder = Folder::new();
        let mounts = mounts(&folder, "/s", None);
        let ask = |method: Method, target: &str| {
            let request = Request::builder().method(method).uri(target).body(()).expect("a request");
            answered(&mounts, request.into_parts().0).expect("a reply")
        };
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let reply = ask(method, "/s/page.html");
            assert_eq!(reply.head.status(), 405);
            assert_eq!(header(&reply, &ALLOW), "GET, HEAD");
        }
        for (target, status) in [("/s/page.html", 200), ("/s/none", 404)] {
            let reply = ask(Method::HEAD, target);
            assert_eq!(reply.head.status(), status);
            assert!(header(&reply, &CONTENT_LENGTH) != "0");
            assert!(matches!(reply.content, Content::Nothing));
        }
    }

    #[test]
    fn a_file_that_may_not_be_read_says_so_and_a_folder_that_is_gone_has_no_files() {
        assert_eq!(refusal(StatusCode::FORBIDDEN).0.status(), 403);
        let folder = Folder::new();
        let mounts = mounts(&folder, "/s", None);
        std::fs::remove_dir_all(folder.public()).expect("it was there");
        assert_eq!(status(&mounts, "/s/page.html"), 404);
    }
}
