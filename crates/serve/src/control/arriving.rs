//! Limits on messages: the memory and the time that each call may use until its message is
//! complete, and the number of answers that a client has not read.
//!
//! The gRPC library decodes a message once all of it has arrived. It buffers the message until then
//! and keeps the buffer for the next message of the same call. Calls other than sessions send one
//! short message with a short deadline. A session's messages may be long: its longest message
//! counts towards a limit for all sessions.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::MAX_MESSAGE;
use super::incoming::Calls;

/// The longest message of a call that is not a session, bytes.
pub const MAX_CALL: u64 = 64 << 10;
/// The time limit for the message of a call and for the first message of a session.
pub const MAX_TIME: Duration = Duration::from_secs(10);
/// The sum of the longest messages of all sessions, bytes.
pub const MAX_LONGEST: u64 = 1 << 30;

/// The refusal of a call whose client does not read earlier answers.
const UNREAD_STATUS: &str = "the answers of earlier calls on this connection were not read within 10 s";

/// Length of a message header in bytes: the compression flag and the message length.
const HEAD: usize = 5;

/// A layer that bounds the incoming messages of a server's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounded {
    longest: Arc<AtomicU64>,
}

impl<S> Layer<S> for Bounded {
    type Service = Bounding<S>;

    fn layer(&self, inner: S) -> Bounding<S> {
        Bounding { inner, bounded: self.clone() }
    }
}

/// A service whose calls are bounded and counted for their connection.
#[derive(Clone, Debug)]
pub(crate) struct Bounding<S> {
    inner: S,
    bounded: Bounded,
}

impl<S> Service<Request<Body>> for Bounding<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let under_way = request.extensions().get::<Calls>().map(Calls::begin);
        let is_session = request.uri().path().ends_with("/Session");
        let request = request.map(|body| Body::new(Arriving::new(body, is_session, &self.bounded)));
        let calls = request.extensions().get::<Calls>().filter(|_| !is_session).cloned();
        // The service that is ready, not its clone.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let place = match &calls {
                Some(calls) => match calls.may_answer().await {
                    Some(place) => Some(place),
                    None => return Ok(Status::resource_exhausted(UNREAD_STATUS).into_http()),
                },
                None => None,
            };
            let answer = inner.call(request).await?;
            // The call is in progress until its response body is dropped, which holds the guards.
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _held = (&under_way, &place);
                    frame
                }))
            }))
        })
    }
}

/// A request body.
struct Arriving {
    body: Body,
    messages: Messages,
    /// The deadline for the complete request body, or for the first message of a session.
    due: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    fn new(body: Body, is_session: bool, bounded: &Bounded) -> Arriving {
        Arriving { body, messages: Messages::new(is_session, bounded), due: Some(Box::pin(sleep(MAX_TIME))) }
    }
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref()
                    && let Err(why) = this.messages.come(data)
                {
                    return Poll::Ready(Some(Err(why)));
                }
                if this.messages.is_session && this.messages.whole > 0 {
                    this.due = None;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending if this.due.as_mut().is_some_and(|due| due.as_mut().poll(cx).is_ready()) => {
                let why = format!("expected a whole message within {} s", MAX_TIME.as_secs());
                Poll::Ready(Some(Err(Status::deadline_exceeded(why))))
            }
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The messages of a call: progress of the transfer, and the memory they use.
struct Messages {
    is_session: bool,
    /// Complete messages.
    whole: u64,
    /// The part of the next header that has arrived.
    head: Vec<u8>,
    /// Bytes of the current message that are still to arrive.
    left: u64,
    /// Bytes counted towards the limit: the longest message, or 0 while all are short.
    held: u64,
    bounded: Bounded,
}

impl Messages {
    fn new(is_session: bool, bounded: &Bounded) -> Messages {
        Messages { is_session, whole: 0, head: Vec::new(), left: 0, held: 0, bounded: bounded.clone() }
    }

    /// Takes received bytes.
    fn come(&mut self, mut data: &[u8]) -> Result<(), Status> {
        while !data.is_empty() {
            if self.left > 0 {
                let some = data.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= some as u64;
                data = &data[some..];
            } else {
                let some = data.len().min(HEAD - self.head.len());
                self.head.extend_from_slice(&data[..some]);
                data = &data[some..];
                let &[_, a, b, c, d] = &self.head[..] else { continue };
                self.head.clear();
                self.left = u32::from_be_bytes([a, b, c, d]).into();
                self.begins(self.left)?;
            }
            if self.left == 0 {
                self.whole += 1;
            }
        }
        Ok(())
    }

    /// Starts a message of `bytes` bytes.
    fn begins(&mut self, bytes: u64) -> Result<(), Status> {
        let most = if self.is_session { MAX_MESSAGE as u64 } else { MAX_CALL };
        if bytes > most {
            return Err(Status::out_of_range(format!("a message: expected at most {most} bytes, found {bytes}")));
        }
        if bytes <= MAX_CALL.max(self.held) {
            return Ok(());
        }
        let more = bytes - self.held;
        let fits = |all: u64| all.checked_add(more).filter(|&all| all <= MAX_LONGEST);
        if self.bounded.longest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            let why =
                format!("no room for a message of {bytes} bytes: the longest of all sessions, {MAX_LONGEST} at most");
            return Err(Status::resource_exhausted(why));
        }
        self.held = bytes;
        Ok(())
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.bounded.longest.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(bytes: u32) -> Vec<u8> {
        [&[0][..], &bytes.to_be_bytes()].concat()
    }

    #[test]
    fn messages_are_separated_in_whatever_pieces_they_arrive() {
        let three = [head(3), vec![9; 3], head(0), head(70_000), vec![8; 70_000]].concat();
        for piece in [1, 2, 5, 7, 1000, three.len()] {
            let bounded = Bounded::default();
            let mut m = Messages::new(true, &bounded);
            for data in three.chunks(piece) {
                assert!(m.whole < 3 && m.come(data).is_ok());
            }
            assert_eq!((m.whole, m.left, m.head.len(), m.held), (3, 0, 0, 70_000), "pieces of {piece}");
            drop(m);
            assert_eq!(bounded.longest.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn long_messages_are_for_sessions_and_all_sessions_share_the_room() {
        let bounded = Bounded::default();
        let refused = |m: &mut Messages, bytes| m.come(&head(bytes)).expect_err("too long").code();
        assert!(Messages::new(false, &bounded).come(&head(MAX_CALL as u32)).is_ok());
        assert_eq!(refused(&mut Messages::new(false, &bounded), MAX_CALL as u32 + 1), tonic::Code::OutOfRange);
        assert_eq!(refused(&mut Messages::new(true, &bounded), MAX_MESSAGE as u32 + 1), tonic::Code::OutOfRange);
        let n = MAX_LONGEST / MAX_MESSAGE as u64;
        let mut all: Vec<Messages> = (0..n).map(|_| Messages::new(true, &bounded)).collect();
        assert!(all.iter_mut().all(|m| m.come(&head(MAX_MESSAGE as u32)).is_ok()));
        // Longest messages keep counting; short messages are still accepted.
        let mut late = Messages::new(true, &bounded);
        assert_eq!(refused(&mut late, MAX_CALL as u32 + 1), tonic::Code::ResourceExhausted);
        assert!(Messages::new(true, &bounded).come(&head(MAX_CALL as u32)).is_ok());
        all.pop();
        assert!(Messages::new(true, &bounded).come(&head(MAX_MESSAGE as u32)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_and_the_first_message_of_a_session_must_be_there_in_time() {
        use http_body::Body as _;
        use http_body_util::StreamBody;
        for (is_session, sent, lasts) in [
            (false, vec![], false),
            (false, head(10), false),
            // The message is complete, the request body is not.
            (false, head(0), false),
            (true, head(10), false),
            (true, head(0), true),
        ] {
            let some = (!sent.is_empty()).then(|| Ok::<_, Status>(Frame::data(Bytes::from(sent.clone()))));
            let never = tokio_stream::pending::<Result<Frame<Bytes>, Status>>();
            let body = StreamBody::new(tokio_stream::StreamExt::chain(tokio_stream::iter(some), never));
            let mut arriving = Arriving::new(Body::new(body), is_session, &Bounded::default());
            assert!(!arriving.is_end_stream());
            if !sent.is_empty() {
                assert!(arriving.frame().await.unwrap().is_ok());
            }
            let next = tokio::time::timeout(10 * MAX_TIME, arriving.frame()).await;
            assert_eq!(next.is_err(), lasts, "{is_session}, {sent:?}");
            if let Ok(next) = next {
                assert_eq!(next.unwrap().expect_err("too late").code(), tonic::Code::DeadlineExceeded);
            }
        }
    }
}
